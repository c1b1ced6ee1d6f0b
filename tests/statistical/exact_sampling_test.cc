// Every test here is seeded, so it either always passes or never. The probability with which it
// would reject a right sampler under fresh bits is stated; all are below 1e-6.
#include "client/privacy/exact_sampling.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail {
namespace {

constexpr double kFalseAlarm = 1e-7;

double ChiSquareThreshold(int cells) {
  return boost::math::quantile(
      boost::math::complement(boost::math::chi_squared(cells - 1), kFalseAlarm));
}

// Chi-square of draws against the closed form `weight` (not normalised) over low .. high; cells
// with fewer than 10 expected draws are merged into one. Catches a relative error of about one per
// cent in the probability of any common value. A draw outside low .. high fails the test at once.
void ExpectLaw(const std::vector<int64_t>& draws, int64_t low, int64_t high,
               const std::function<double(int64_t)>& weight) {
  std::map<int64_t, double> seen;
  for (const int64_t draw : draws) ++seen[draw];
  ASSERT_GE(seen.begin()->first, low);
  ASSERT_LE(seen.rbegin()->first, high);
  double total = 0;
  for (int64_t x = low; x <= high; ++x) total += weight(x);
  double statistic = 0;
  int cells = 1;
  double rare_seen = 0;
  double rare_expected = 0;
  for (int64_t x = low; x <= high; ++x) {
    const double expected = static_cast<double>(draws.size()) * weight(x) / total;
    if (expected < 10) {
      rare_seen += seen[x];
      rare_expected += expected;
    } else {
      statistic += std::pow(seen[x] - expected, 2) / expected;
      ++cells;
    }
  }
  if (rare_expected > 0) statistic += std::pow(rare_seen - rare_expected, 2) / rare_expected;
  EXPECT_LT(statistic, ChiSquareThreshold(cells));
}

double GaussianWeight(double x, double stddev) { return std::exp(-.5 * x * x / (stddev * stddev)); }

TEST(DiscreteGaussian, HasItsClosedFormForSmallDeviations) {
  for (const int stddev : {1, 2, 3, 11}) {
    SCOPED_TRACE(stddev);
    SeededBits bits(100 + static_cast<uint64_t>(stddev));
    ASSERT_OK_AND_ASSIGN(const auto draws,
                         SampleDiscreteGaussian(400'000, static_cast<uint64_t>(stddev), bits));
    ExpectLaw(draws, -12 * stddev, 12 * stddev,
              [&](int64_t x) { return GaussianWeight(static_cast<double>(x), stddev); });
  }
}

TEST(DiscreteLaplace, HasItsClosedForm) {
  for (const int scale : {1, 2, 5, 16}) {
    SCOPED_TRACE(scale);
    SeededBits bits(200 + static_cast<uint64_t>(scale));
    ASSERT_OK_AND_ASSIGN(const auto draws,
                         SampleDiscreteLaplace(400'000, static_cast<uint64_t>(scale), bits));
    ExpectLaw(draws, -60 * scale, 60 * scale,
              [&](int64_t x) { return std::exp(-std::abs(static_cast<double>(x)) / scale); });
  }
}

// Narrow boxes are proposed from uniformly, wide ones from the Gaussian; a box of 4 deviations and
// one of a step more stand on either side of the border.
TEST(TruncatedGaussian, HasItsClosedFormInNarrowAndWideBoxesWhereverItsCentreLies) {
  constexpr int kStddev = 5;
  for (const int64_t width : {1, 4, 20, 21, 60}) {
    for (const int64_t centre : {int64_t{0}, width / 3, width}) {
      SCOPED_TRACE(absl::StrCat("width ", width, ", centre ", centre));
      constexpr int64_t kShift = -7;  // of the whole box: bounds of either sign
      SeededBits bits(static_cast<uint64_t>(300 + 100 * width + centre));
      ASSERT_OK_AND_ASSIGN(
          const auto draws,
          SampleTruncatedGaussian(
              std::vector<TruncatedCentre>(200'000, {kShift, kShift + width, kShift + centre}),
              kStddev, bits));
      ExpectLaw(draws, kShift, kShift + width, [&](int64_t x) {
        return GaussianWeight(static_cast<double>(x - kShift - centre), kStddev);
      });
    }
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
// Here all low bytes are uniform, in the middle and beyond `tail` alike.
void ExpectUniformLowBytes(const std::vector<int64_t>& draws, int64_t tail) {
  for (const bool in_tail : {false, true}) {
    std::vector<double> seen(256, 0);
    double total = 0;
    for (const int64_t draw : draws) {
      if ((std::abs(draw) > tail) != in_tail) continue;
      ++seen[static_cast<uint64_t>(draw) & 255];
      ++total;
    }
    ASSERT_GT(total, 40'000);
    double statistic = 0;
    for (const double count : seen) statistic += std::pow(count - total / 256, 2) / (total / 256);
    EXPECT_LT(statistic, ChiSquareThreshold(256)) << (in_tail ? "tail" : "middle");
  }
}

TEST(DiscreteGaussian, LowBitsAreUniformAlsoInTheTail) {
  constexpr uint64_t kStddev = 1'500'000'007;
  SeededBits bits(8);
  ASSERT_OK_AND_ASSIGN(const auto draws, SampleDiscreteGaussian(1'000'000, kStddev, bits));
  ExpectUniformLowBytes(draws, 2 * kStddev);
}

TEST(DiscreteLaplace, LowBitsAreUniformAlsoInTheTail) {
  constexpr uint64_t kScale = 1'500'000'007;
  SeededBits bits(10);
  ASSERT_OK_AND_ASSIGN(const auto draws, SampleDiscreteLaplace(1'000'000, kScale, bits));
  ExpectUniformLowBytes(draws, 3 * kScale);
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
