#include "common/embedding/deterministic_start.h"

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

namespace privatemail {
namespace {

// In (0, 1], so that its logarithm is finite.
double Uniform(std::mt19937_64& bits) { return (static_cast<double>(bits() >> 11) + 1) * 0x1p-53; }

}  // namespace

Matrix DeterministicStart(absl::string_view fingerprint, Eigen::Index n, Eigen::Index k,
                          double stddev, Eigen::Index first) {
  // Bytes as they are, whatever the sign of char.
  const std::vector<unsigned char> seed_bytes(fingerprint.begin(), fingerprint.end());
  std::seed_seq seed(seed_bytes.begin(), seed_bytes.end());
  std::mt19937_64 bits(seed);
  Matrix start(n, k);
  const auto set = [&, begin = first * k](Eigen::Index place, double value) {
    if (place >= begin && place < begin + start.size()) start.data()[place - begin] = value;
  };
  // Two values are made of two draws.
  const Eigen::Index first_pair = first * k / 2;
  bits.discard(static_cast<unsigned long long>(2 * first_pair));
  // std::normal_distribution differs between libraries; this is the same everywhere.
  for (Eigen::Index i = 2 * first_pair; i < (first + n) * k; i += 2) {
    const double radius = stddev * std::sqrt(-2 * std::log(Uniform(bits)));
    const double angle = 2 * std::numbers::pi * Uniform(bits);
    set(i, radius * std::cos(angle));
    set(i + 1, radius * std::sin(angle));
  }
  return start;
}

}  // namespace privatemail
