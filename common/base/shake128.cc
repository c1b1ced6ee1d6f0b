#include "common/base/shake128.h"

#include <openssl/evp.h>

#include <memory>

namespace privatemail {

bool Shake128(std::string_view input, uint8_t* output, size_t size) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> state(EVP_MD_CTX_new(),
                                                                      &EVP_MD_CTX_free);
  return state != nullptr && EVP_DigestInit_ex(state.get(), EVP_shake128(), nullptr) == 1 &&
         EVP_DigestUpdate(state.get(), input.data(), input.size()) == 1 &&
         EVP_DigestFinalXOF(state.get(), output, size) == 1;
}

}  // namespace privatemail
