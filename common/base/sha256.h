// Incremental SHA-256.
#ifndef PRIVATEMAIL_COMMON_BASE_SHA256_H_
#define PRIVATEMAIL_COMMON_BASE_SHA256_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace privatemail {

// Not thread-safe.
class Sha256 {
 public:
  Sha256();

  void Add(absl::string_view bytes);
  // 32 bytes over everything added so far; more may be added afterwards.
  std::string Digest() const;

  static std::string Of(absl::string_view bytes);

  // Returns the first 8 bytes of a digest, of at least 8 bytes, as a little-endian number. It is a
  // short name of what has the digest.
  static uint64_t Prefix(absl::string_view digest);

 private:
  struct Free {
    void operator()(evp_md_ctx_st* state) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> state_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_SHA256_H_
