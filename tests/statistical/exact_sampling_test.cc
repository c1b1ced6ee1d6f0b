// Every test here is seeded, so it either always passes or never. The probability with which it
// would reject a right sampler under fresh bits is stated; all are below 1e-6.
#include "client/privacy/exact_sampling.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <map>
#include <numeric>

#include "tests/testing/matchers.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail {
namespace {

constexpr double kFalseAlarm = 1e-7;

double ChiSquareThreshold(int cells) {
  return boost::math::quantile(
      boost::math::complement(boost::math::chi_squared(cells - 1), kFalseAlarm));
}

// Chi-square against the closed form, cells with fewer than 10 expected draws merged into the
// tails. Catches a relative error of about one per cent in the probability of any common value.
TEST(DiscreteGaussian, HasItsClosedFormForSmallDeviations) {
  for (const uint64_t stddev : {1, 2, 3, 11}) {
    constexpr size_t kDraws = 400'000;
    SeededBits bits(100 + stddev);
    ASSERT_OK_AND_ASSIGN(const auto draws, SampleDiscreteGaussian(kDraws, stddev, bits));
    std::map<int64_t, double> seen;
    for (const int64_t draw : draws) ++seen[draw];

    const auto reach = static_cast<int64_t>(12 * stddev);
    std::map<int64_t, double> weight;
    for (int64_t x = -reach; x <= reach; ++x)
      weight[x] = std::exp(-.5 * std::pow(double(x) / double(stddev), 2));
    const double total = std::accumulate(weight.begin(), weight.end(), 0.0,
                                         [](double sum, const auto& w) { return sum + w.second; });
    double statistic = 0;
    int cells = 1;
    double tail_seen = 0;
    double tail_expected = 0;
    for (const auto& [x, w] : weight) {
      const double expected = kDraws * w / total;
      if (expected < 10) {
        tail_seen += seen[x];
        tail_expected += expected;
      } else {
        statistic += std::pow(seen[x] - expected, 2) / expected;
        ++cells;
      }
    }
    if (tail_expected > 0) statistic += std::pow(tail_seen - tail_expected, 2) / tail_expected;
    EXPECT_LT(statistic, ChiSquareThreshold(cells)) << "stddev " << stddev;
    for (const auto& [x, count] : seen) EXPECT_LE(std::abs(x), reach);
  }
}

// At the deviation that releases use: 64 cells of equal probability under the normal law, which
// differs from the discrete one by less than 1e-9 here. Catches a deviation off by .5 %.
TEST(DiscreteGaussian, IsNormalAtTheDeviationOfReleases) {
  constexpr uint64_t kStddev = 1'500'000'007;
  constexpr size_t kDraws = 400'000;
  constexpr int kCells = 64;
  SeededBits bits(7);
  ASSERT_OK_AND_ASSIGN(const auto draws, SampleDiscreteGaussian(kDraws, kStddev, bits));
  std::vector<double> seen(kCells, 0);
  for (const int64_t draw : draws) {
    const double probability = .5 * std::erfc(-double(draw) / double(kStddev) / std::sqrt(2.0));
    ++seen[std::min(kCells - 1, static_cast<int>(probability * kCells))];
  }
  double statistic = 0;
  for (const double count : seen)
    statistic += std::pow(count - double(kDraws) / kCells, 2) / (double(kDraws) / kCells);
  EXPECT_LT(statistic, ChiSquareThreshold(kCells));
}

// The fault of samplers that pass through double: low bits that tell where the noise was added.
// Here all low bytes are uniform, in the middle and beyond two deviations alike.
TEST(DiscreteGaussian, LowBitsAreUniformAlsoInTheTail) {
  constexpr uint64_t kStddev = 1'500'000'007;
  SeededBits bits(8);
  ASSERT_OK_AND_ASSIGN(const auto draws, SampleDiscreteGaussian(1'000'000, kStddev, bits));
  for (const bool tail : {false, true}) {
    std::vector<double> seen(256, 0);
    double total = 0;
    for (const int64_t draw : draws) {
      if ((std::abs(draw) > static_cast<int64_t>(2 * kStddev)) != tail) continue;
      ++seen[static_cast<uint64_t>(draw) & 255];
      ++total;
    }
    ASSERT_GT(total, 40'000);
    double statistic = 0;
    for (const double count : seen) statistic += std::pow(count - total / 256, 2) / (total / 256);
    EXPECT_LT(statistic, ChiSquareThreshold(256)) << (tail ? "tail" : "middle");
  }
}

TEST(Uniform, EveryValueIsAsLikelyAsEveryOther) {
  constexpr int kBound = 37;
  constexpr int kDraws = 370'000;
  SeededBits bits(9);
  ASSERT_OK_AND_ASSIGN(const auto draws,
                       SampleUniform(std::vector<uint64_t>(kDraws, kBound), bits));
  std::vector<double> seen(kBound, 0);
  for (const uint64_t draw : draws) ++seen.at(draw);
  double statistic = 0;
  for (const double count : seen) statistic += std::pow(count - 10'000, 2) / 10'000;
  EXPECT_LT(statistic, ChiSquareThreshold(kBound));
}

}  // namespace
}  // namespace privatemail
