// Bits for tests: reproducible ones (of the room seeded_bits), and ones that run out.
#ifndef PRIVATEMAIL_TESTS_TESTING_SEEDED_BITS_H_
#define PRIVATEMAIL_TESTS_TESTING_SEEDED_BITS_H_

#include "client/seeded_bits/seeded_bits.h"
#include "privatemail/bit_source.h"

namespace privatemail::client {

// Answers a number of calls, then fails.
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
