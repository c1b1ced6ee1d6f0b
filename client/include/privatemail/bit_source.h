// Where random bits come from.
#ifndef PRIVATEMAIL_BIT_SOURCE_H_
#define PRIVATEMAIL_BIT_SOURCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace privatemail::client {

// A stream of independent uniform bytes. Two implementations: SecureBits below, and the seeded
// source of evaluation and tests (client/seeded_bits/seeded_bits.h), which no program that opens a
// network channel links.
class BitSource {
 public:
  virtual ~BitSource() = default;
  // Fills all of `bytes`. On error none of them may be used.
  virtual absl::Status Fill(absl::Span<uint8_t> bytes) = 0;
};

// OpenSSL's private generator, which reseeds itself after a fork. Holds no buffer of its own, so
// there is nothing a forked child could share. Thread-safe.
class SecureBits final : public BitSource {
 public:
  // UNAVAILABLE with OpenSSL's reason when RAND_priv_bytes_ex does not report success.
  absl::Status Fill(absl::Span<uint8_t> bytes) override;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_BIT_SOURCE_H_
