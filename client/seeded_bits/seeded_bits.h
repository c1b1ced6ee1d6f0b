// Reproducible bits for evaluation and tests. A release made of them hides nothing from anyone with
// the seed, so no program that opens a network channel links this library; a test reads the link
// graph.
#ifndef PRIVATEMAIL_CLIENT_SEEDED_BITS_SEEDED_BITS_H_
#define PRIVATEMAIL_CLIENT_SEEDED_BITS_SEEDED_BITS_H_

#include <cstdint>
#include <random>

#include "absl/strings/string_view.h"
#include "client/privacy/sampling/bit_source.h"

namespace privatemail::client {

// The same seed gives the same bytes on every machine. Not thread-safe.
class SeededBits final : public BitSource {
 public:
  explicit SeededBits(uint64_t seed) : generator_(seed) {}

  absl::Status Fill(absl::Span<uint8_t> bytes) override;

 private:
  std::mt19937_64 generator_;
};

// The seed of one part of an experiment; parts of different names or numbers have unrelated streams
// (the finalizer of SplitMix64, Steele, Lea, Flood 2014).
uint64_t SeedOf(absl::string_view part, uint64_t seed, uint64_t number = 0);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEEDED_BITS_SEEDED_BITS_H_
