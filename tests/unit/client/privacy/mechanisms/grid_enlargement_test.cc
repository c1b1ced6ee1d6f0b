// Noise added for rounding to a grid. On the grids of releases it is lost in the last digits, so
// these are as coarse as the mechanisms accept.
#include <algorithm>
#include <cmath>

#include "client/privacy/mechanisms/additive_mechanism.h"
#include "client/privacy/mechanisms/bounded_gaussian_calibration.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "tests/testing/matchers.h"

namespace privatemail::client::grid_enlargement_test {
namespace {

// Values of up to 2^57 leave no room for steps finer than 2^-4: some twenty to a width.
constexpr int kExponent = -4;
constexpr double kLargestValue = 0x1p57;

struct Widths {
  double per_unit;
  double sensitivity;
  int64_t values;

  double InSteps() const { return std::ldexp(per_unit * sensitivity, -kExponent); }
};
constexpr Widths kCases[] = {{1.3, 1, 1}, {1.3, 1, 64}, {.7, 2, 1000}, {3.7, .4, 5}};

// r + r/D sqrt(m), rounded up, one step for the division and one for sqrt(r^2 + 16) <= r + 1. For
// the Laplace law every value's rounding counts in full, and there is no deviation to make up for.
TEST(GridEnlargement, AdditiveNoiseAddsRoundingAndItsSteps) {
  for (const auto law : {MechanismTraits::Law::kGaussian, MechanismTraits::Law::kLaplace}) {
    const bool laplace = law == MechanismTraits::Law::kLaplace;
    for (const Widths& w : kCases) {
      SCOPED_TRACE(absl::StrCat(w.values, laplace ? ", Laplace" : ", Gaussian"));
      ASSERT_OK_AND_ASSIGN(const auto mechanism,
                           MakeAdditiveMechanism(law, w.per_unit, w.sensitivity,
                                                 {w.values, kLargestValue}, Guarantee{}));
      const auto count = static_cast<double>(w.values);
      const double share = w.per_unit * (laplace ? count : std::sqrt(count));
      EXPECT_DOUBLE_EQ(std::ldexp(mechanism->noise_stddev() / (laplace ? M_SQRT2 : 1), -kExponent),
                       std::ceil(w.InSteps() + share) + (laplace ? 1 : 2));
    }
  }
}

// The loss that the deviation was solved for, term by term as the header has it: sides a step
// longer, a move of g sqrt(m) more, which equal sides split evenly, and ((g/s)^2 + (w g / s^2)^2) /
// 8 for every side.
TEST(GridEnlargement, BoundedCalibrationSpendsEpsilonOnEveryTerm) {
  constexpr double kSensitivity = .5;
  const double root_m = std::sqrt(3);
  for (const double epsilon : {.3, 1., 5.}) {
    for (const double g : {.5, .0625}) {
      SCOPED_TRACE(absl::StrCat("epsilon ", epsilon, ", step ", g));
      ASSERT_OK_AND_ASSIGN(const double s,
                           BoundedGaussianStddev({4, 4, 4}, kSensitivity, epsilon, g));
      const double w = 4 + g;
      const double c = (kSensitivity + g * root_m) / root_m;
      // The density of N(v, s^2) on [0, w] at w, up to a factor.
      const auto ln_density = [&](double v) {
        const double root = M_SQRT2 * s;
        return -std::pow((w - v) / root, 2) -
               std::log(std::erf((w - v) / root) + std::erf(v / root));
      };
      const double moves = 3 * (ln_density(c) - ln_density(0));
      // Sums over points lose this against integrals.
      const double points = 3 * (std::pow(g / s, 2) + std::pow(w * g / (s * s), 2)) / 8;
      EXPECT_NEAR((moves + points) / epsilon, 1, 1e-6);
      EXPECT_GT(points / epsilon, 1e-4) << "the test has no power";
    }
  }
}

// exp(-(z - v)^2 / 2 s^2) summed over the grid points of [0, w], by Euler and Maclaurin's formula:
// at 2^32 points the first two terms leave out less than 1e-18 of it.
long double SumOverGrid(long double w, long double v, long double s, long double g) {
  const auto f = [&](long double z) { return std::exp(-(z - v) * (z - v) / (2 * s * s)); };
  const long double root = std::sqrt(2.0L) * s;
  const long double integral =
      s * std::sqrt(M_PIl / 2) * (std::erf((w - v) / root) + std::erf(v / root));
  return integral / g + (f(0) + f(w)) / 2;
}

// At a sensitivity of hardly more than a grid step, two values round to points two steps apart. The
// loss of every such pair at either end of the box, where it is largest, is within epsilon; without
// the grid's share it would be nearly twice that.
TEST(GridEnlargement, BoundedMechanismCoversValuesThatRoundApart) {
  constexpr double kWidth = 4;
  constexpr double kEpsilon = 5e-9;
  constexpr double kSensitivity = .55e-9;
  ASSERT_OK_AND_ASSIGN(const double without_grid,
                       BoundedGaussianStddev({kWidth}, kSensitivity, kEpsilon));
  const double g = std::ldexp(1, std::ilogb(without_grid) - 30);
  ASSERT_GT(kSensitivity, g);
  ASSERT_LT(kSensitivity, 1.4 * g);
  ASSERT_OK_AND_ASSIGN(const auto mechanism, MakeMechanism({.kind = MechanismKind::kBoundedGaussian,
                                                            .epsilon = kEpsilon,
                                                            .sensitivity = kSensitivity,
                                                            .box = {{0}, {kWidth}}},
                                                           {.values = 1, .largest_value = kWidth}));
  const long double s = mechanism->noise_stddev();
  long double worst = 0;
  for (int i = 0; i <= 1000; ++i) {
    const long double v = std::rint((kWidth - 2 * g) * i / 1000 / g) * g;
    const long double u = v + 2 * g;
    const long double sums =
        std::log(SumOverGrid(kWidth, u, s, g)) - std::log(SumOverGrid(kWidth, v, s, g));
    for (const long double z : {0.0L, static_cast<long double>(kWidth)}) {
      // (z - u)^2 - (z - v)^2, factored
      worst = std::max(worst, std::abs((v - u) * (2 * z - u - v) / (2 * s * s) + sums));
    }
  }
  EXPECT_LE(worst, kEpsilon);
  EXPECT_GE(worst, .7 * kEpsilon) << "the test has no power";
}

}  // namespace
}  // namespace privatemail::client::grid_enlargement_test
