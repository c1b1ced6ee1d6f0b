#include "client/privacy/sensitivity/anchored_bounds.h"

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <string>

#include "common/base/validate.h"
#include "common/embedding/affinity.h"
#include "tests/testing/matchers.h"
#include "tests/unit/client/privacy/adversary.h"

namespace privatemail::client::anchored_bounds_test {
namespace {

// PRIVACY.md section 5 as it is written, in any type of number: the row of a slot with x in it.
template <typename Real>
std::vector<Real> RowOf(const std::vector<Real>& x, const std::vector<std::vector<Real>>& anchors,
                        const Matrix& coordinates, const RowVector& pull, const Real& c) {
  std::vector<Real> sum;
  for (const double value : pull) sum.push_back(Real(value));
  Real degree = 0;
  for (size_t j = 0; j < anchors.size(); ++j) {
    Real squared_distance = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      squared_distance += (x[i] - anchors[j][i]) * (x[i] - anchors[j][i]);
    }
    const Real w = exp(-squared_distance / c);
    degree += w;
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i] += w * coordinates(static_cast<Eigen::Index>(j), static_cast<Eigen::Index>(i));
    }
  }
  for (Real& value : sum) value /= 2 * degree;
  return sum;
}

std::vector<double> Listed(const RowVector& row) { return {row.begin(), row.end()}; }

// Anchors, their coordinates, and one slot.
struct Collection {
  Matrix anchors;
  Matrix coordinates;
  RowVector pull;
  double c;

  AnchoredBounds Bounds() const {
    const Matrix pulls = pull;
    return *BoundAnchoredRows(
        {.coordinates = coordinates, .anchors = anchors, .pull = pulls, .kernel_denominator = c});
  }
  RowVector Row(const RowVector& x) const {
    std::vector<std::vector<double>> rows;
    for (Eigen::Index j = 0; j < anchors.rows(); ++j) rows.push_back(Listed(anchors.row(j)));
    const std::vector<double> row = RowOf(Listed(x), rows, coordinates, pull, c);
    return Eigen::Map<const RowVector>(row.data(), static_cast<Eigen::Index>(row.size()));
  }
};

// A state of an ascent: P rows of anchors with their coordinates beside them, a row of the pull,
// and the two targets.
struct Cast {
  Eigen::Index count;
  double bandwidth;
  double pull_scale;

  static constexpr Eigen::Index kDim = Cloud::kDim;

  Matrix Random(Adversary& adversary) const { return Cloud::Random(adversary, count + 3); }
  Collection CollectionOf(const Matrix& state) const {
    return {state.topLeftCorner(count, kDim), state.topRightCorner(count, Cloud::kColumns),
            pull_scale * state.row(count).tail(Cloud::kColumns), 2 * bandwidth * bandwidth};
  }
  double MoveOverRange(const Matrix& state) const {
    const Collection in = CollectionOf(state);
    return Moved(in, state).norm() / in.Bounds().range[0];
  }
  double SpeedOverBound(const Matrix& state) const {
    const Collection in = CollectionOf(state);
    const double chord = (state.row(count + 1) - state.row(count + 2)).head(kDim).norm();
    if (!(chord > 1e-5)) return 0;  // its rounding would show
    return Moved(in, state).norm() / chord / in.Bounds().speed[0];
  }

 private:
  RowVector Moved(const Collection& in, const Matrix& state) const {
    return in.Row(state.row(count + 1).head(kDim)) - in.Row(state.row(count + 2).head(kDim));
  }
};

template <typename Gain>
double Closest(unsigned seed, bool near, Gain gain) {
  Adversary adversary(seed);
  double closest = 0;
  for (const Eigen::Index count : {2, 3, 8}) {
    for (const double bandwidth : {.4, 1.0, 2.0, 6.0}) {
      for (const double pull : {0.0, 1.0, 100.0}) {
        const Cast cast{count, bandwidth, pull};
        for (int start = 0; start < 4; ++start) {
          Matrix state = cast.Random(adversary);
          if (near && start % 2 == 0) {
            state.row(count + 2) = state.row(count + 1) + 1e-2 * state.row(count + 2);
            state = Cloud::Normalised(state);
          }
          const double ratio = Ascend(state, 60, Cloud::Normalised,
                                      [&](const Matrix& tried) { return gain(cast, tried); });
          EXPECT_LE(ratio, 1) << count << " " << bandwidth << " " << pull;
          closest = std::max(closest, ratio);
        }
      }
    }
  }
  return closest;
}

TEST(AnchoredBounds, AscentDoesNotExceedRange) {
  const double closest = Closest(1, /*near=*/false, [](const Cast& cast, const Matrix& state) {
    return cast.MoveOverRange(state);
  });
  RecordProperty("closest", std::to_string(closest));
  EXPECT_GT(closest, .9) << "the search is too weak to show anything";
}

TEST(AnchoredBounds, AscentDoesNotExceedSpeed) {
  const double closest = Closest(2, /*near=*/true, [](const Cast& cast, const Matrix& state) {
    return cast.SpeedOverBound(state);
  });
  RecordProperty("closest", std::to_string(closest));
  EXPECT_GT(closest, .9) << "the search is too weak to show anything";
}

// A collection like the papers': anchors of 20 classes, coordinates on a line by class. Targets
// alone can climb; anchors are given, as in life.
Collection TwentyClasses(double lean, double pull) {
  Adversary adversary(3);
  const Eigen::Index count = 400;
  const Matrix means = adversary.UnitRows(20, 16);
  Collection in{Matrix(count, 16), Matrix(count, 2), RowVector(2), 72};
  const Matrix noise = adversary.Normal(count, 18);
  for (Eigen::Index j = 0; j < count; ++j) {
    in.anchors.row(j) = (means.row(j % 20) + .15 * noise.row(j).head(16)).normalized();
    in.anchors(j, 0) += lean;
    in.anchors.row(j).normalize();
    in.coordinates.row(j) << static_cast<double>(j % 20) - 9.5, .1 * noise(j, 17);
  }
  in.pull << pull * static_cast<double>(count), 0;
  return in;
}

TEST(AnchoredBounds, TypicalCollectionReachesHalfOfRange) {
  Adversary adversary(4);
  for (const double lean : {0., 1.}) {
    for (const double pull : {0., 30.}) {
      const Collection in = TwentyClasses(lean, pull);
      const AnchoredBounds bounds = in.Bounds();
      const auto unit = [](Matrix state) { return Matrix(state.rowwise().normalized()); };
      double farthest = 0;
      for (int start = 0; start < 3; ++start) {
        Matrix state = adversary.UnitRows(2, 16);
        farthest = std::max(farthest, Ascend(state, 60, unit, [&](const Matrix& x) {
                              return (in.Row(x.row(0)) - in.Row(x.row(1))).norm();
                            }));
      }
      EXPECT_LE(farthest, bounds.range[0]);
      EXPECT_GE(farthest, .5 * bounds.range[0]) << lean << " " << pull;
      RecordProperty("lean_" + std::to_string(lean) + "_pull_" + std::to_string(pull),
                     std::to_string(farthest / bounds.range[0]));
    }
  }
}

// Anchors at two poles with coordinates +-1, no pull, and the target on the line between them: F =
// tanh(2 cos / c), whose slope and span are known.
TEST(AnchoredBounds, TwoPolesMatchClosedForm) {
  const double c = 200;
  Collection in{Matrix::Zero(2, 2), Matrix::Zero(2, 1), RowVector::Zero(1), c};
  in.anchors << 1, 0, -1, 0;
  in.coordinates << 1, -1;
  const AnchoredBounds bounds = in.Bounds();
  EXPECT_GE(bounds.speed[0], 1 / c);
  EXPECT_LE(bounds.speed[0], 1.03 / c);
  EXPECT_GE(bounds.range[0], std::tanh(2 / c));
  EXPECT_LE(bounds.range[0], 1.03 * std::tanh(2 / c));
}

// One anchor: the row is 1/2 (l / w + q), whatever else there is, and w lies in [exp(-4/c), 1].
TEST(AnchoredBounds, OneAnchorMatchesClosedForm) {
  Collection in{RowVector::Unit(3, 0), Matrix::Constant(1, 1, 5), RowVector::Constant(1, 7), 2};
  const double exact = .5 * 7 * (std::exp(4 / in.c) - 1);
  EXPECT_GE(in.Bounds().range[0], exact);
  EXPECT_LE(in.Bounds().range[0], (1 + 1e-9) * exact);
}

using Exact = boost::multiprecision::cpp_bin_float_50;

// In double precision as ScaledSlotRows computes it, with distances from products.
RowVector AsReleased(const Collection& in, const RowVector& x) {
  Matrix affinity(1, in.anchors.rows());
  AffinityBetween(x, Vector::Constant(1, x.squaredNorm()), in.anchors,
                  in.anchors.rowwise().squaredNorm(), in.c, &affinity);
  return .5 * (in.pull + affinity * in.coordinates) / affinity.sum();
}

TEST(AnchoredBounds, RoundingErrorStaysBelowBoundInFiftyDigits) {
  Adversary adversary(5);
  double closest = 0;
  for (const double bandwidth : {.3, 1., 6., 1e3}) {
    for (const Eigen::Index dim : {2, 64}) {
      const Matrix features = adversary.Normal(13, dim);
      const Matrix units = *UnitRows("rows", features);
      const Collection in{units.topRows(12), adversary.Normal(12, 2), adversary.Normal(1, 2).row(0),
                          2 * bandwidth * bandwidth};
      std::vector<std::vector<Exact>> exact;
      for (Eigen::Index i = 0; i < features.rows(); ++i) {
        std::vector<Exact>& row = exact.emplace_back();
        Exact squares = 0;
        for (const double value : features.row(i)) squares += Exact(value) * value;
        for (const double value : features.row(i)) row.push_back(value / sqrt(squares));
      }
      const std::vector<Exact> x = exact.back();
      exact.pop_back();
      const std::vector<Exact> row = RowOf<Exact>(x, exact, in.coordinates, in.pull, in.c);
      const RowVector computed = AsReleased(in, units.row(12));
      Exact squares = 0;
      for (size_t i = 0; i < row.size(); ++i) {
        const Exact error = row[i] - computed[static_cast<Eigen::Index>(i)];
        squares += error * error;
      }
      const double ratio = static_cast<double>(sqrt(squares)) / in.Bounds().rounding[0];
      EXPECT_LE(ratio, 1) << bandwidth << " " << dim;
      closest = std::max(closest, ratio);
    }
  }
  RecordProperty("closest", std::to_string(closest));
  EXPECT_GT(closest, 1e-4);
}

TEST(AnchoredBounds, BadInputsAreNamed) {
  const Matrix anchors = Matrix::Identity(3, 3);
  const Matrix coordinates = Matrix::Ones(3, 2);
  const Matrix pull = Matrix::Zero(4, 2);
  const auto bound = [&](const Matrix& q, const Matrix& p, const Matrix& l, double c) {
    return BoundAnchoredRows({.coordinates = q, .anchors = p, .pull = l, .kernel_denominator = c});
  };
  EXPECT_THAT(bound(coordinates, anchors, pull, 72), IsOk());
  EXPECT_THAT(bound(coordinates.topRows(2), anchors, pull, 72),
              FailsWith(kInvalid, "coordinates must be one row for each anchor"));
  EXPECT_THAT(bound(coordinates, anchors, pull.leftCols(1), 72),
              FailsWith(kInvalid, "pull must have the coordinates' 2 columns"));
  EXPECT_THAT(bound(coordinates, 1.1 * anchors, pull, 72),
              FailsWith(kInvalid, "anchors row 0 must have length 1"));
  EXPECT_THAT(bound(coordinates, anchors, pull, std::nan("")),
              FailsWith(kInvalid, "kernel denominator must be finite and positive"));
  EXPECT_THAT(bound(coordinates, anchors, pull, 0),
              FailsWith(kInvalid, "kernel denominator must be finite and positive"));
  EXPECT_THAT(bound(coordinates, anchors, pull, .01),
              FailsWith(absl::StatusCode::kFailedPrecondition, "kernel_bandwidth is too small"));
  EXPECT_THAT(bound(coordinates, (1 + 1e-13) * anchors, pull, 72),
              FailsWith(kInvalid, "anchors row 0 must have length 1, but has 1.0000000000000999"));
  EXPECT_THAT(bound(coordinates, anchors, Matrix::Constant(4, 2, 1e9), .01165),
              FailsWith(absl::StatusCode::kFailedPrecondition, "a slot's row may have the length"));
  EXPECT_THAT(bound(0 * coordinates, anchors, pull, 72),
              FailsWith(kInvalid, "largest coordinate of an anchor"));
  EXPECT_THAT(bound(coordinates * std::nan(""), anchors, pull, 72), FailsWith(kInvalid, "finite"));
}

}  // namespace
}  // namespace privatemail::client::anchored_bounds_test
