// Sources of random bits.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_BIT_SOURCE_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_BIT_SOURCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace privatemail::client {

// A stream of independent uniform bytes. Implementations: SecureBits below, and the seeded source
// of evaluation and tests (client/seeded_bits/seeded_bits.h), which no program that opens a network
// channel links.
class BitSource {
 public:
  virtual ~BitSource() = default;
  // Fills all of `bytes`. After an error none of them may be used.
  virtual absl::Status Fill(absl::Span<uint8_t> bytes) = 0;
};

// OpenSSL's private generator, which reseeds after a fork. Unbuffered, so a forked child shares no
// bits with its parent. Thread-safe.
class SecureBits final : public BitSource {
 public:
  // UNAVAILABLE with OpenSSL's reason: RAND_priv_bytes_ex did not report success.
  absl::Status Fill(absl::Span<uint8_t> bytes) override;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_BIT_SOURCE_H_
