#include "common/image/score_shares.h"

#include <openssl/evp.h>

#include <cstdlib>
#include <memory>

namespace privatemail {

std::vector<uint32_t> ExpandScoreSeed(absl::string_view seed, int64_t dim) {
  std::vector<uint32_t> words(static_cast<size_t>(dim));
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> cipher(EVP_CIPHER_CTX_new(),
                                                                               EVP_CIPHER_CTX_free);
  const unsigned char counter[16] = {};
  auto* const bytes = reinterpret_cast<unsigned char*>(words.data());
  const int size = static_cast<int>(words.size() * sizeof(uint32_t));
  int written = 0;
  // The cipher stream is what it makes of zeros. AES fails only if OpenSSL was built without it.
  if (seed.size() != kScoreSeedBytes || cipher == nullptr ||
      EVP_EncryptInit_ex(cipher.get(), EVP_aes_128_ctr(), nullptr,
                         reinterpret_cast<const unsigned char*>(seed.data()), counter) != 1 ||
      EVP_EncryptUpdate(cipher.get(), bytes, &written, bytes, size) != 1 || written != size) {
    std::abort();
  }
  return words;
}

}  // namespace privatemail
