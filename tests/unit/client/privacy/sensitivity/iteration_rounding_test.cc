// The production iteration beside the same one in fifty digits.
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <string>

#include "common/base/validate.h"
#include "tests/testing/matchers.h"
#include "tests/unit/client/privacy/adversary.h"

namespace privatemail::client::iteration_rounding_test {
namespace {

using Exact = boost::multiprecision::cpp_bin_float_50;
using ExactRow = std::vector<Exact>;

ExactRow ScaledToLengthOne(const Eigen::RowVectorXf& row) {
  Exact squares = 0;
  for (const float value : row) squares += Exact(value) * value;
  const Exact length = sqrt(squares);
  ExactRow unit;
  for (const float value : row) unit.push_back(value / length);
  return unit;
}

Exact Affinity(const ExactRow& x, const ExactRow& y, const Exact& denominator) {
  Exact squared_distance = 0;
  for (size_t k = 0; k < x.size(); ++k) squared_distance += (x[k] - y[k]) * (x[k] - y[k]);
  return exp(-squared_distance / denominator);
}

// |computed - exact|_F, over features as they come. The computed L_Y Q is part of what is exact.
double ErrorOf(const Setting& setting, const FloatMatrix& features) {
  const Matrix computed = setting.Iterate(*UnitRows("features", features));
  const Matrix pull = setting.graph.MultiplyLaplacian(setting.start);
  std::vector<ExactRow> unit;
  for (const auto& row : features.rowwise()) unit.push_back(ScaledToLengthOne(row));
  Exact squares = 0;
  for (Eigen::Index i = 0; i < pull.rows(); ++i) {
    Exact degree = 0;
    ExactRow sum;
    for (const double value : pull.row(i)) sum.push_back(Exact(setting.alpha) * value);
    for (Eigen::Index j = 0; j < pull.rows(); ++j) {
      if (i == j) continue;
      const Exact w =
          Affinity(unit[static_cast<size_t>(i)], unit[static_cast<size_t>(j)], setting.c);
      degree += w;
      for (Eigen::Index k = 0; k < pull.cols(); ++k)
        sum[static_cast<size_t>(k)] += w * setting.start(j, k);
    }
    for (Eigen::Index k = 0; k < pull.cols(); ++k) {
      const Exact f = (sum[static_cast<size_t>(k)] / degree + setting.start(i, k)) / 2;
      squares += (f - computed(i, k)) * (f - computed(i, k));
    }
  }
  return static_cast<double>(sqrt(squares));
}

double ErrorOverBound(const Setting& setting, const FloatMatrix& features) {
  return ErrorOf(setting, features) / *IterationRoundingError(setting.Inputs(), features.cols());
}

// Rows in general position, all alike, opposite, closer than their rounding, and with coordinates
// of every magnitude.
std::vector<FloatMatrix> HardFeatures(Adversary& adversary, Eigen::Index n, Eigen::Index d) {
  const FloatMatrix random = adversary.Normal(n, d).cast<float>();
  FloatMatrix alike = random.row(0).replicate(n, 1);
  FloatMatrix opposite = alike;
  for (Eigen::Index i = 0; i < n; i += 2) opposite.row(i) *= -1;
  FloatMatrix close = alike + 1e-7F * random;
  FloatMatrix uneven = random;
  for (float& value : uneven.reshaped()) value = std::ldexp(value, 20 * static_cast<int>(value));
  return {random, alike, opposite, close, uneven};
}

TEST(IterationRoundingError, BoundsErrorInFiftyDigits) {
  Adversary adversary(1);
  for (const Eigen::Index n : {2, 3, 12}) {
    for (const Eigen::Index d : {1, 3, 64, 256}) {
      for (const double bandwidth : {.1, .3, 1.0, 6.0, 7e5}) {
        for (const double alpha : {0.0, .6, 1e9}) {
          const Setting setting(adversary.Normal(n, 2), bandwidth, alpha, 2);
          for (const FloatMatrix& features : HardFeatures(adversary, n, d)) {
            EXPECT_LE(ErrorOverBound(setting, features), 1)
                << n << " " << d << " " << bandwidth << " " << alpha;
          }
        }
      }
    }
  }
}

// Products of equal coordinates err to one side in many additions. Rows that differ in the signs of
// an eighth of them err by less, which the mean over both does not forgive: the start tells them
// apart. The dimension's part of the bound is needed here.
TEST(IterationRoundingError, BoundsOneSidedErrors) {
  double furthest = 0;
  for (const Eigen::Index d : {60'001, 65'003, 70'007}) {
    const Setting setting(Matrix{{1}, {1}, {-1}, {-1}}, .5, 0, 2);
    FloatMatrix features = FloatMatrix::Ones(4, d);
    features.bottomRightCorner(2, d / 8) *= -1;
    const double error = ErrorOf(setting, features);
    EXPECT_LE(error, *IterationRoundingError(setting.Inputs(), d)) << d;
    furthest = std::max(furthest, error / *IterationRoundingError(setting.Inputs(), 1));
  }
  RecordProperty("furthest", std::to_string(furthest));
  EXPECT_GT(furthest, 2) << "additions do not err to one side";
}

// Starts at the ends of what is taken, and one whose average cancels.
TEST(IterationRoundingError, BoundsUnderflowingAndCancellingStarts) {
  Adversary adversary(2);
  for (const auto& [scale, bandwidth] : {std::pair(1e-99, .0762), {1e-99, 1.0}, {1e98, 1.0}}) {
    Matrix start = scale * adversary.Normal(6, 2);
    start.col(1) << scale, -scale, scale, -scale, 1e-300 * scale, 0;
    const Setting setting(start, bandwidth, .6, 2);
    for (const FloatMatrix& features : HardFeatures(adversary, 6, 8)) {
      EXPECT_LE(ErrorOverBound(setting, features), 1) << scale << " " << bandwidth;
    }
  }
}

// Ascent over the features themselves, where single roundings count.
TEST(IterationRoundingError, AscentDoesNotExceedBound) {
  Adversary adversary(3);
  double closest = 0;
  for (const Eigen::Index d : {1, 2, 6}) {
    for (const double bandwidth : {.0762, 1.0, 6.0}) {
      const Setting setting(adversary.Normal(4, 1), bandwidth, .6, 2);
      FloatMatrix features = adversary.Normal(4, d).cast<float>();
      const double ratio = Climb(
          features, 300,
          [&](const FloatMatrix& best, double scale) {
            return FloatMatrix(best +
                               static_cast<float>(scale) * adversary.Normal(4, d).cast<float>());
          },
          [&](const FloatMatrix& tried) { return ErrorOverBound(setting, tried); });
      EXPECT_LE(ratio, 1) << d << " " << bandwidth;
      closest = std::max(closest, ratio);
    }
  }
  RecordProperty("closest", std::to_string(closest));
  EXPECT_GT(closest, .01) << "the search is too weak to show anything";
}

// Without labels, and few rows, so that each term of the bound counts.
TEST(IterationRoundingError, MatchesItsFormula) {
  const Setting setting(Matrix::Constant(5, 1, 2), 1, 0, 2);
  const Exact u = ldexp(Exact(1), -53);
  const Exact terms = exp((Exact(9) * (3 + 6) / 2 + 8 + 5) * u) - 1;
  const Exact expected = (terms / (1 - terms) + 3 * u) * 2 * sqrt(Exact(5));
  const double computed = *IterationRoundingError(setting.Inputs(), 3);
  EXPECT_GE(computed, expected);
  EXPECT_LE(computed, expected * (1 + 1e-11));
}

TEST(IterationRoundingError, DimensionOutOfRangeIsRefused) {
  const Setting setting(Adversary(4).Normal(4, 2), 1, .6, 2);
  for (const int64_t dim : {int64_t{0}, (int64_t{1} << 40) + 1}) {
    EXPECT_THAT(IterationRoundingError(setting.Inputs(), dim), FailsWith(kInvalid, "feature_dim"));
  }
}

}  // namespace
}  // namespace privatemail::client::iteration_rounding_test
