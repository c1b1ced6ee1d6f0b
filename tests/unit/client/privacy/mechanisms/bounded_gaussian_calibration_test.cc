#include "client/privacy/mechanisms/bounded_gaussian_calibration.h"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "tests/testing/matchers.h"

namespace privatemail::client::bounded_gaussian_calibration_test {
namespace {

using Real = boost::multiprecision::cpp_bin_float_50;

// The mechanism's density along one side, from its definition, in fifty digits.
Real LnMass(double w, const Real& v, double s) {
  const Real root = s * sqrt(Real(2));
  return log((boost::math::erf(Real((w - v) / root)) - boost::math::erf(Real(-v / root))) / 2);
}
Real LnDensity(double z, const Real& v, double w, double s) {
  return -pow(Real((z - v) / s), 2) / 2 - LnMass(w, v, s);
}

// Widths and sensitivity over several orders of magnitude.
struct RandomBox {
  std::vector<double> widths;
  double sensitivity;
};

RandomBox Draw(std::mt19937& bits, int largest_dimension) {
  std::uniform_real_distribution<double> log_scale(-3, 3);
  const int m = std::uniform_int_distribution<int>(1, largest_dimension)(bits);
  RandomBox box;
  double diagonal = 0;
  for (int i = 0; i < m; ++i) {
    box.widths.push_back(std::exp(log_scale(bits) / 2));
    diagonal = std::hypot(diagonal, box.widths.back());
  }
  box.sensitivity = diagonal * std::exp(log_scale(bits) - 1);
  return box;
}

double DrawEpsilon(std::mt19937& bits) {
  return std::exp(std::uniform_real_distribution<double>(std::log(1e-6), std::log(1e3))(bits));
}

// Two values in the box at most the sensitivity apart, and an output: uniform, or at the ends of
// the box, where the loss is large.
TEST(BoundedGaussianStddev, CoversRandomPairsAndOutputs) {
  std::mt19937 bits(20240607);
  std::uniform_real_distribution<double> uniform;
  for (int trial = 0; trial < 120; ++trial) {
    const RandomBox box = Draw(bits, 5);
    const double epsilon = DrawEpsilon(bits);
    ASSERT_OK_AND_ASSIGN(const double stddev,
                         BoundedGaussianStddev(box.widths, box.sensitivity, epsilon));
    for (int pair = 0; pair < 12; ++pair) {
      std::vector<double> move(box.widths.size());
      double length = 0;
      for (double& c : move) length = std::hypot(length, c = uniform(bits) - (pair < 6 ? 0 : .5));
      Real loss = 0;
      for (size_t i = 0; i < move.size(); ++i) {
        const double w = box.widths[i];
        // A few units in the last place inside the ball: the move is computed with rounding, too.
        const double c = std::clamp(move[i] / length * box.sensitivity * (1 - 1e-15), -w, w);
        const double room = w - std::abs(c);
        const double start = (c < 0 ? -c : 0) + (pair % 3 == 0 ? 0 : uniform(bits) * room);
        const double output = pair % 2 == 0 ? (c > 0 ? w : 0) : uniform(bits) * w;
        loss += LnDensity(output, Real(start) + c, w, stddev) - LnDensity(output, start, w, stddev);
      }
      EXPECT_LE(loss, Real(epsilon));
    }
  }
}

// Scans all directions, then finer around the worst one, in long double; judges the worst direction
// in fifty digits.
TEST(BoundedGaussianStddev, BruteForceInTwoDimensionsSpendsEpsilon) {
  std::mt19937 bits(7);
  for (int trial = 0; trial < 60; ++trial) {
    RandomBox box = Draw(bits, 1);
    box.widths.push_back(Draw(bits, 1).widths[0]);
    const double epsilon = DrawEpsilon(bits);
    const double stddev = *BoundedGaussianStddev(box.widths, box.sensitivity, epsilon);
    const auto loss = [&](double angle, auto ln_mass) {
      decltype(ln_mass(1., 1.)) sum = 0;
      for (int i = 0; i < 2; ++i) {
        const double w = box.widths[static_cast<size_t>(i)];
        const double c =
            std::clamp(box.sensitivity * (i == 0 ? std::cos(angle) : std::sin(angle)), 0., w);
        const decltype(sum) s = stddev;
        sum +=
            (decltype(sum)(w) * w - (decltype(sum)(w) - c) * (decltype(sum)(w) - c)) / (2 * s * s);
        sum += ln_mass(w, 0) - ln_mass(w, c);
      }
      return sum;
    };
    double worst_angle = std::acos(-1) / 4;
    double half_fan = worst_angle;
    for (int refinement = 0; refinement < 3; ++refinement, half_fan /= 400) {
      const double centre = worst_angle;
      long double worst = 0;
      for (int step = -800; step <= 800; ++step) {
        const double angle = centre + half_fan * step / 800;
        const long double here = loss(angle, [&](double w, double v) {
          const long double root = stddev * std::sqrt(2.L);
          return std::log(std::erf((w - static_cast<long double>(v)) / root) + std::erf(v / root));
        });
        if (here > worst) {
          worst = here;
          worst_angle = angle;
        }
      }
    }
    const Real judged = loss(worst_angle, [&](double w, double v) { return LnMass(w, v, stddev); });
    EXPECT_LE(judged, Real(epsilon));
    EXPECT_GE(judged, Real(epsilon) * (1 - 1e-6)) << "not tight";
  }
}

// By symmetry the loss is m times that of a side moved by D / sqrt(m).
TEST(BoundedGaussianStddev, CubeSplitsMoveEvenly) {
  for (const int m : {1, 3, 50, 4096}) {
    for (const double epsilon : {.2, 5.}) {
      const std::vector<double> cube(static_cast<size_t>(m), 2.0);
      const double stddev = *BoundedGaussianStddev(cube, .7, epsilon);
      const Real c = Real(.7) / sqrt(Real(m));
      const auto loss = [&](double s) -> Real {
        return m * (LnDensity(2, c, 2, s) - LnDensity(2, 0, 2, s));
      };
      EXPECT_LE(loss(stddev), Real(epsilon)) << m;
      EXPECT_GT(loss(stddev * (1 - 1e-7)), Real(epsilon)) << m;
    }
  }
}

TEST(BoundedGaussianStddev, OneSideIsTightInFiftyDigits) {
  std::mt19937 bits(11);
  for (int trial = 0; trial < 400; ++trial) {
    const double w = Draw(bits, 1).widths[0];
    const double sensitivity = Draw(bits, 1).sensitivity;
    const double epsilon = DrawEpsilon(bits);
    ASSERT_OK_AND_ASSIGN(const double stddev, BoundedGaussianStddev({w}, sensitivity, epsilon));
    const double c = std::min(sensitivity, w);
    const auto loss = [&](double s) -> Real {
      return LnDensity(w, c, w, s) - LnDensity(w, 0, w, s);
    };
    EXPECT_LE(loss(stddev), Real(epsilon)) << w << " " << sensitivity << " " << epsilon;
    EXPECT_GT(loss(stddev * (1 - 1e-6)), Real(epsilon));
  }
}

// Enumerates every pair of grid points that rounded values can reach, and every output.
double LargestDiscreteLoss(int points, double g, double reach, double s, int dimension) {
  std::vector<std::vector<double>> ln_density(static_cast<size_t>(points));
  for (int v = 0; v < points; ++v) {
    double sum = 0;
    for (int z = 0; z < points; ++z) sum += std::exp(-std::pow((z - v) * g / s, 2) / 2);
    for (int z = 0; z < points; ++z) {
      ln_density[static_cast<size_t>(v)].push_back(-std::pow((z - v) * g / s, 2) / 2 -
                                                   std::log(sum));
    }
  }
  // Worst loss of one coordinate for a move of c steps.
  std::vector<double> worst(static_cast<size_t>(points), 0);
  for (size_t v = 0; v < ln_density.size(); ++v) {
    for (size_t u = 0; u < ln_density.size(); ++u) {
      for (size_t z = 0; z < ln_density.size(); ++z) {
        double& entry = worst[v > u ? v - u : u - v];
        entry = std::max(entry, ln_density[v][z] - ln_density[u][z]);
      }
    }
  }
  double loss = 0;
  for (int a = 0; a < points && a * g <= reach; ++a) {
    loss = std::max(loss, worst[static_cast<size_t>(a)]);
    for (int b = 0; dimension == 2 && b < points && std::hypot(a, b) * g <= reach; ++b) {
      loss = std::max(loss, worst[static_cast<size_t>(a)] + worst[static_cast<size_t>(b)]);
    }
  }
  return loss;
}

TEST(BoundedGaussianStddevOnGrid, CoversEnumeratedPairsOfRoundedValues) {
  double closest = 0;
  for (const int dimension : {1, 2}) {
    for (const int points : {3, 9, 33, 65}) {
      for (const double epsilon : {.05, 1.0, 6.0}) {
        for (const double share : {.05, .3, 2.0}) {
          const double g = .25;
          const double w = g * (points - 1);
          const double sensitivity = share * w;
          const std::vector<double> widths(static_cast<size_t>(dimension), w);
          ASSERT_OK_AND_ASSIGN(const double stddev,
                               BoundedGaussianStddev(widths, sensitivity, epsilon, g));
          const double reach = sensitivity + g * std::sqrt(dimension) + 1e-12;
          const double loss = LargestDiscreteLoss(points, g, reach, stddev, dimension);
          EXPECT_LE(loss, epsilon) << dimension << " " << points << " " << share;
          closest = std::max(closest, loss / epsilon);
        }
      }
    }
  }
  EXPECT_GT(closest, .97) << "the surplus would hide a real error";
}

TEST(BoundedGaussianStddevOnGrid, FineGridAddsNoNoise) {
  const double free = *BoundedGaussianStddev({3, 4}, .5, 1);
  const double fine = *BoundedGaussianStddev({3, 4}, .5, 1, 0x1p-30);
  EXPECT_GT(fine, free);
  EXPECT_LT(fine, free * (1 + 1e-7));
}

TEST(BoxWidths, AreRoundedUp) {
  EXPECT_EQ(*BoxWidths({0, 1}, {10, 9}), (std::vector<double>{10, 8}));
  // 1 + 2^-53 needs one bit more than a double has.
  EXPECT_GT((*BoxWidths({-0x1p-53}, {1}))[0], 1);
}

TEST(BoundedGaussian, BadParametersAreNamed) {
  const double nan = std::nan("");
  EXPECT_THAT(BoxWidths({0}, {1, 2}), FailsWith(kInvalid, "as many"));
  EXPECT_THAT(BoxWidths({0, 1}, {1, 1}), FailsWith(kInvalid, "side 1"));
  EXPECT_THAT(BoxWidths({nan}, {1}), FailsWith(kInvalid, "side 0"));
  EXPECT_THAT(BoxWidths({0}, {INFINITY}), FailsWith(kInvalid, "side 0"));
  for (const bool published : {false, true}) {
    const auto calibrate = [&](std::vector<double> widths, double sensitivity, double epsilon) {
      return published ? PublishedBoundedGaussianStddev(widths, sensitivity, epsilon)
                       : BoundedGaussianStddev(widths, sensitivity, epsilon);
    };
    EXPECT_THAT(calibrate({}, 1, 1), FailsWith(kInvalid, "number of sides"));
    EXPECT_THAT(calibrate({1, nan}, 1, 1), FailsWith(kInvalid, "width of side 1"));
    EXPECT_THAT(calibrate({1}, nan, 1), FailsWith(kInvalid, "sensitivity"));
    EXPECT_THAT(calibrate({1}, 1, nan), FailsWith(kInvalid, "epsilon"));
    EXPECT_THAT(calibrate({1}, 1, 0), FailsWith(kInvalid, "epsilon"));
    EXPECT_THAT(calibrate({1}, 1, 1e7), FailsWith(kInvalid, "epsilon"));
  }
}

// s^2 lies between |w| D / 2 epsilon, where a move crosses the whole box, and |w| D / epsilon
// (bounded_gaussian_calibration.h, 5).
TEST(BoundedGaussianStddev, ExtremesAreSolvedOrRefused) {
  const double diagonal = std::sqrt(1e6 + 1 + 1e-6);
  for (const double sensitivity : {1e-9, 1e-3, 1e6}) {
    for (const double epsilon : {1e-9, 1e6}) {
      const auto stddev = BoundedGaussianStddev({1e-3, 1, 1e3}, sensitivity, epsilon);
      if (!stddev.ok()) {
        EXPECT_EQ(stddev.status().code(), absl::StatusCode::kFailedPrecondition);
        continue;
      }
      const double least = diagonal * std::min(sensitivity, diagonal) / (2 * epsilon);
      EXPECT_GE(*stddev * *stddev, least * (1 - 1e-14));
      EXPECT_LE(*stddev * *stddev, (sensitivity == 1e6 ? least : 2 * least) * (1 + 1e-7));
    }
  }
}

}  // namespace
}  // namespace privatemail::client::bounded_gaussian_calibration_test
