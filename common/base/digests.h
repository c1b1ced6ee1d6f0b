// SHA-256 and SHAKE128 by OpenSSL.
#ifndef PRIVATEMAIL_COMMON_BASE_DIGESTS_H_
#define PRIVATEMAIL_COMMON_BASE_DIGESTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace privatemail {

// An incremental SHA-256. Not thread-safe.
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

// SHAKE128 as common/lattice/wire.h wants it: fills `output` with the first `size` bytes of the
// digest of `input`. False: OpenSSL failed, and `output` is undefined.
bool Shake128(std::string_view input, uint8_t* output, size_t size);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_DIGESTS_H_
