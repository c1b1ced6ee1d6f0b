// Bit sources for tests: SeededBits, and one that fails.
#ifndef PRIVATEMAIL_TESTS_TESTING_SEEDED_BITS_H_
#define PRIVATEMAIL_TESTS_TESTING_SEEDED_BITS_H_

#include "client/privacy/sampling/bit_source.h"
#include "client/seeded_bits/seeded_bits.h"

namespace privatemail::client {

// Fails after a number of calls.
class FailingBits final : public BitSource {
 public:
  explicit FailingBits(int calls_before_failure) : left_(calls_before_failure), good_(1) {}

  absl::Status Fill(absl::Span<uint8_t> bytes) override {
    if (left_-- <= 0) return absl::UnavailableError("no bits");
    return good_.Fill(bytes);
  }

 private:
  int left_;
  SeededBits good_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_TESTING_SEEDED_BITS_H_
