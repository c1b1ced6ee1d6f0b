#include "common/base/digests.h"

#include <openssl/evp.h>

#include <cstdlib>
#include <new>

namespace privatemail {
namespace {

evp_md_ctx_st* NewState() {
  evp_md_ctx_st* state = EVP_MD_CTX_new();
  if (state == nullptr) throw std::bad_alloc();
  return state;
}

// SHA-256 fails only if OpenSSL was built without it.
void Require(int outcome) {
  if (outcome != 1) std::abort();
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* state) const { EVP_MD_CTX_free(state); }

Sha256::Sha256() : state_(NewState()) {
  Require(EVP_DigestInit_ex(state_.get(), EVP_sha256(), nullptr));
}

void Sha256::Add(absl::string_view bytes) {
  Require(EVP_DigestUpdate(state_.get(), bytes.data(), bytes.size()));
}

std::string Sha256::Digest() const {
  const std::unique_ptr<evp_md_ctx_st, Free> copy(NewState());
  Require(EVP_MD_CTX_copy_ex(copy.get(), state_.get()));
  std::string digest(32, '\0');
  Require(EVP_DigestFinal_ex(copy.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr));
  return digest;
}

std::string Sha256::Of(absl::string_view bytes) {
  Sha256 sum;
  sum.Add(bytes);
  return sum.Digest();
}

uint64_t Sha256::Prefix(absl::string_view digest) {
  uint64_t prefix = 0;
  for (size_t byte = 8; byte-- > 0;) prefix = prefix << 8 | static_cast<uint8_t>(digest[byte]);
  return prefix;
}

bool Shake128(std::string_view input, uint8_t* output, size_t size) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> state(EVP_MD_CTX_new(),
                                                                      &EVP_MD_CTX_free);
  return state != nullptr && EVP_DigestInit_ex(state.get(), EVP_shake128(), nullptr) == 1 &&
         EVP_DigestUpdate(state.get(), input.data(), input.size()) == 1 &&
         EVP_DigestFinalXOF(state.get(), output, size) == 1;
}

}  // namespace privatemail
