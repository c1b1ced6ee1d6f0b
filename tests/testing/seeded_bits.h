// Reproducible bits for tests. Never linked into a program that opens a network channel.
#ifndef PRIVATEMAIL_TESTS_TESTING_SEEDED_BITS_H_
#define PRIVATEMAIL_TESTS_TESTING_SEEDED_BITS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>

#include "client/privacy/bit_source.h"

namespace privatemail {

class SeededBits final : public BitSource {
 public:
  explicit SeededBits(uint64_t seed) : generator_(seed) {}

  absl::Status Fill(absl::Span<uint8_t> bytes) override {
    for (size_t at = 0; at < bytes.size(); at += 8) {
      const uint64_t word = generator_();
      std::memcpy(bytes.data() + at, &word, std::min<size_t>(8, bytes.size() - at));
    }
    return absl::OkStatus();
  }

 private:
  std::mt19937_64 generator_;
};

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

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_SEEDED_BITS_H_
