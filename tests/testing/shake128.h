// SHAKE128 by OpenSSL, as common/lattice takes it.
#ifndef PRIVATEMAIL_TESTS_TESTING_SHAKE128_H_
#define PRIVATEMAIL_TESTS_TESTING_SHAKE128_H_

#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace privatemail {

inline bool ComputeShake128(std::string_view input, uint8_t* output, size_t size) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  return EVP_DigestInit_ex(context.get(), EVP_shake128(), nullptr) == 1 &&
         EVP_DigestUpdate(context.get(), input.data(), input.size()) == 1 &&
         EVP_DigestFinalXOF(context.get(), output, size) == 1;
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_SHAKE128_H_
