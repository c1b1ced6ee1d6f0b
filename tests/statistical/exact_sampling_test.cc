// Every test here is seeded, so it either always passes or never. Under fresh bits a right sampler
// would fail any of them at all with a probability below 1e-6: kFalseAlarm, times 1.2 for a cell's
// counts being Poisson and not normal (measured for the laws below by convolution).
#include "client/privacy/sampling/exact_sampling.h"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail::client {
namespace {

constexpr double kFalseAlarm = 1e-7;            // of the whole file, by the limit law
constexpr uint64_t kWidth = uint64_t{1} << 30;  // in steps, as releases have it
constexpr size_t kManyDraws = 4'000'000;        // some 250 of them beyond four deviations
constexpr int kComparisons = 50;                // no more are made below

// No cell of a comparison expects fewer draws.
constexpr double kLeastExpected = 100;

struct Cell {
  double seen = 0;
  double expected = 0;
};

void ExpectChiSquare(const std::vector<Cell>& cells) {
  double statistic = 0;
  for (const Cell& cell : cells) {
    ASSERT_GE(cell.expected, kLeastExpected);
    statistic += std::pow(cell.seen - cell.expected, 2) / cell.expected;
  }
  const boost::math::chi_squared law(static_cast<double>(cells.size() - 1));
  EXPECT_LT(statistic,
            boost::math::quantile(boost::math::complement(law, kFalseAlarm / kComparisons)));
}

void ExpectUniform(const std::vector<double>& seen) {
  double total = 0;
  for (const double count : seen) total += count;
  std::vector<Cell> cells;
  for (const double count : seen) cells.push_back({count, total / double(seen.size())});
  ExpectChiSquare(cells);
}

// Chi-square of draws against the closed form `weight` (not normalised) over low .. high;
// neighbours share a cell until it expects kLeastExpected draws. Catches a relative error of about
// one per cent in the probability of any common value. A draw outside low .. high fails the test at
// once.
void ExpectLaw(const std::vector<int64_t>& draws, int64_t low, int64_t high,
               const std::function<double(int64_t)>& weight) {
  std::map<int64_t, double> seen;
  for (const int64_t draw : draws) ++seen[draw];
  ASSERT_GE(seen.begin()->first, low);
  ASSERT_LE(seen.rbegin()->first, high);
  double total = 0;
  for (int64_t x = low; x <= high; ++x) total += weight(x);
  std::vector<Cell> cells(1);
  for (int64_t x = low; x <= high; ++x) {
    if (cells.back().expected >= kLeastExpected) cells.emplace_back();
    cells.back().seen += seen[x];
    cells.back().expected += static_cast<double>(draws.size()) * weight(x) / total;
  }
  if (const Cell rest = cells.back(); rest.expected < kLeastExpected) {
    cells.pop_back();
    cells.back().seen += rest.seen;
    cells.back().expected += rest.expected;
  }
  ExpectChiSquare(cells);
}

double GaussianWeight(double x, double stddev) { return std::exp(-.5 * x * x / (stddev * stddev)); }

TEST(DiscreteGaussian, SmallStddevMatchesClosedForm) {
  for (const int stddev : {1, 2, 3, 11}) {
    SCOPED_TRACE(stddev);
    SeededBits bits(100 + static_cast<uint64_t>(stddev));
    ASSERT_OK_AND_ASSIGN(const auto draws,
                         SampleDiscreteGaussian(400'000, static_cast<uint64_t>(stddev), bits));
    ExpectLaw(draws, -12 * stddev, 12 * stddev,
              [&](int64_t x) { return GaussianWeight(static_cast<double>(x), stddev); });
  }
}

TEST(DiscreteLaplace, MatchesClosedForm) {
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
TEST(TruncatedGaussian, NarrowAndWideBoxesMatchClosedForm) {
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
// differs from the discrete one by less than 1e-8 here. Over a million draws of an untruncated law
// this catches a deviation off by .8 %.
void ExpectUniformRanks(const std::vector<int64_t>& draws,
                        const std::function<double(double)>& distribution) {
  std::vector<double> seen(64, 0);
  for (const int64_t draw : draws) {
    ++seen[static_cast<size_t>(std::clamp(distribution(double(draw)) * 64, 0., 63.))];
  }
  ExpectUniform(seen);
}

double NormalDistribution(double x) { return .5 * std::erfc(-x / std::sqrt(2.0)); }

TEST(DiscreteGaussian, ReleaseStddevIsNormal) {
  SeededBits bits(7);
  ASSERT_OK_AND_ASSIGN(const auto draws, SampleDiscreteGaussian(1'000'000, kWidth, bits));
  ExpectUniformRanks(draws, [](double x) { return NormalDistribution(x / double(kWidth)); });
}

// The fault of samplers that pass through double: low bits that tell where the noise was added.
// Here all low bytes are uniform, in the middle and beyond `tail` alike, and even and odd values
// are equally likely beyond `far`, where no sampler is exercised often. With n draws there, a share
// of even values further than 3 / sqrt(n) from one half is caught: .19 for the 250 draws that lie
// so far out in the untruncated laws.
void ExpectUniformLowBits(const std::vector<int64_t>& draws, int64_t centre, double tail,
                          double far) {
  std::vector<double> bytes[2] = {std::vector<double>(256, 0), std::vector<double>(256, 0)};
  std::vector<double> parity(2, 0);
  for (const int64_t draw : draws) {
    const auto distance = std::abs(double(draw - centre));
    ++bytes[distance > tail * double(kWidth)][static_cast<uint64_t>(draw) & 255];
    if (distance > far * double(kWidth)) ++parity[static_cast<uint64_t>(draw) & 1];
  }
  for (const bool in_tail : {false, true}) {
    SCOPED_TRACE(in_tail ? "tail" : "middle");
    ExpectUniform(bytes[in_tail]);
  }
  SCOPED_TRACE("far tail");
  ExpectUniform(parity);
}

TEST(DiscreteGaussian, LowBitsAreUniformBeyondFourStddevs) {
  SeededBits bits(8);
  ASSERT_OK_AND_ASSIGN(const auto draws, SampleDiscreteGaussian(kManyDraws, kWidth, bits));
  ExpectUniformLowBits(draws, 0, 2, 4);
}

// Beyond 9.66 scales lies as much of the Laplace law as beyond four deviations of the Gaussian.
TEST(DiscreteLaplace, LowBitsAreUniformBeyondTenScales) {
  SeededBits bits(10);
  ASSERT_OK_AND_ASSIGN(const auto draws, SampleDiscreteLaplace(kManyDraws, kWidth, bits));
  ExpectUniformLowBits(draws, 0, 3, 9.66);
}

// A box of three deviations is proposed from uniformly, one of six from the Gaussian; in either the
// centre stands at one end, so that the other end has the largest distance.
TEST(TruncatedGaussian, ReleaseStddevHasItsLawAndUniformLowBits) {
  constexpr auto kSteps = static_cast<int64_t>(kWidth);
  struct Case {
    int64_t deviations;
    double tail;
    double far;
  };
  for (const Case& box : {Case{3, 1, 2.9}, Case{6, 2, 3.5}}) {
    for (const int64_t at_end : {0, 1}) {
      SCOPED_TRACE(absl::StrCat(box.deviations, " deviations, centre at end ", at_end));
      const TruncatedCentre where{-7, box.deviations * kSteps + 5,
                                  at_end ? box.deviations * kSteps + 5 : -7};
      SeededBits bits(static_cast<uint64_t>(20 + 2 * box.deviations + at_end));
      ASSERT_OK_AND_ASSIGN(
          const auto draws,
          SampleTruncatedGaussian(std::vector<TruncatedCentre>(1'000'000, where), kWidth, bits));
      for (const int64_t draw : draws) {
        ASSERT_GE(draw, where.low);
        ASSERT_LE(draw, where.high);
      }
      const auto below = [&](double x) {
        return NormalDistribution((x - double(where.centre)) / double(kWidth));
      };
      const double low = below(double(where.low));
      const double high = below(double(where.high));
      ExpectUniformRanks(draws, [&](double x) { return (below(x) - low) / (high - low); });
      ExpectUniformLowBits(draws, where.centre, box.tail, box.far);
    }
  }
}

TEST(UniformInteger, ValuesAreEquallyLikely) {
  constexpr int kBound = 37;
  SeededBits bits(9);
  ASSERT_OK_AND_ASSIGN(const auto draws,
                       SampleUniform(std::vector<uint64_t>(370'000, kBound), bits));
  std::vector<double> seen(kBound, 0);
  for (const uint64_t draw : draws) ++seen.at(draw);
  ExpectUniform(seen);
}

}  // namespace
}  // namespace privatemail::client
