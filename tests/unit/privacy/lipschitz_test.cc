#include "client/privacy/lipschitz.h"

#include <cmath>

#include "tests/testing/matchers.h"
#include "tests/unit/privacy/adversary.h"

namespace privatemail {
namespace {

ReleaseLipschitz Bound(const Setting& setting) { return *LipschitzOfRelease(setting.Inputs()); }

// How fast the release moves when the row of `slot` walks towards `to` by a chord.
struct Speed {
  double l2;
  double l1;
};
Speed SpeedOf(const Setting& setting, const Matrix& rows, Eigen::Index slot, const RowVector& to) {
  Matrix moved = rows;
  moved.row(slot) = to.normalized();
  const double chord = (moved.row(slot) - rows.row(slot)).norm();
  if (!(chord > 1e-9)) return {0, 0};
  const Matrix change = setting.Iterate(moved) - setting.Iterate(rows);
  return {change.norm() / chord, change.cwiseAbs().sum() / chord};
}

// A walk of slot 0.
struct Walk {
  Matrix rows;
  RowVector to;
};

// Ascent on the speed over all rows, the slot's among them, and where it goes.
double ClimbOverWalks(Adversary& adversary, const Setting& setting, Walk walk, int steps) {
  return Climb(
      walk, steps,
      [&](const Walk& best, double scale) {
        Walk tried = best;
        const Eigen::Index n = best.rows.rows();
        const Eigen::Index d = best.rows.cols();
        const Eigen::Index row = adversary.Draw(n + 1);  // one row or all of them
        if (row < n) {
          tried.rows.row(row) += scale * adversary.Normal(1, d).row(0);
        } else {
          tried.rows += scale * adversary.Normal(n, d);
        }
        tried.rows.rowwise().normalize();
        tried.to = tried.rows.row(0) + (best.to - best.rows.row(0)) +
                   .3 * scale * adversary.Normal(1, d).row(0);
        return tried;
      },
      [&](const Walk& tried) { return SpeedOf(setting, tried.rows, 0, tried.to).l2; });
}

TEST(LipschitzOfRelease, IsNeverReachedByAscentOverAllRows) {
  Adversary adversary(1);
  double closest = 0;
  for (const Eigen::Index n : {2, 3, 6, 12}) {
    for (const double bandwidth : {.5, 1.0, 2.0, 6.0}) {
      for (const double alpha : {0.0, .6, 30.0}) {
        const Setting c(adversary.Normal(n, 2), bandwidth, alpha, 2);
        const double bound = Bound(c).to_l2;
        for (int start = 0; start < 3; ++start) {
          const Matrix rows = adversary.Normal(n, 3);
          const RowVector to =
              rows.row(0) + (start == 0 ? 1e-3 : 1.) * adversary.Normal(1, 3).row(0);
          const double speed = ClimbOverWalks(adversary, c, {rows.rowwise().normalized(), to}, 800);
          EXPECT_LE(speed, bound) << n << " " << bandwidth << " " << alpha;
          closest = std::max(closest, speed / bound);
        }
      }
    }
  }
  RecordProperty("closest", std::to_string(closest));
  EXPECT_GT(closest, .5) << "the search is too weak to show anything";
}

// Rows at two poles, the start correlated with them, the target at the equator: the covariance of
// the proof is as large as it can be.
TEST(LipschitzOfRelease, IsAlmostReachedWhereStartAndFeaturesAgree) {
  for (const double bandwidth : {1.0, 6.0}) {
    const Eigen::Index n = 201;
    Matrix rows = Matrix::Zero(n, 2);
    Matrix start = Matrix::Zero(n, 2);
    for (Eigen::Index j = 1; j < n; ++j) {
      const double pole = j % 2 == 0 ? 1 : -1;
      rows(j, 0) = pole;
      start(j, 0) = pole;
    }
    rows(0, 1) = 1;
    const Setting c(start, bandwidth, 0, 2);
    RowVector to(2);
    to << 1e-4, 1;
    const double ratio = SpeedOf(c, rows, 0, to).l2 / Bound(c).to_l2;
    EXPECT_LE(ratio, 1);
    EXPECT_GT(ratio, bandwidth == 6 ? .9 : .3);
  }
}

TEST(LipschitzOfRelease, HoldsForLongChordsAndInTheSumOfAbsoluteValues) {
  Adversary adversary(2);
  double closest = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Eigen::Index n = 2 + trial % 9;
    const Setting c(adversary.Normal(n, 1 + trial % 3), .5 + std::exp(adversary.Normal(1, 1)(0, 0)),
                    trial % 4, 2);
    const Matrix rows = adversary.UnitRows(n, 2);
    const RowVector to =
        trial % 2 == 0 ? RowVector(-rows.row(1)) : RowVector(adversary.Normal(1, 2).row(0));
    const ReleaseLipschitz bound = Bound(c);
    const Speed speed = SpeedOf(c, rows, 1, to);
    EXPECT_LE(speed.l2, bound.to_l2);
    EXPECT_LE(speed.l1, bound.to_l1);
    closest = std::max(closest, speed.l1 / bound.to_l1);
  }
  EXPECT_GT(closest, .1);
}

// At the second paper's setting (CIFAR-100: 100 slots, 1,000 anchors) and random rows of 64
// coordinates, which the start knows nothing of: what a typical release overpays.
TEST(LipschitzOfRelease, HoldsAtThePapersSettingForTypicalRows) {
  Adversary adversary(3);
  const Setting c(adversary.Normal(1100, 2), 6, .6, 100);
  const Matrix rows = adversary.UnitRows(1100, 64);
  const double bound = Bound(c).to_l2;
  const double speed = SpeedOf(c, rows, 3, rows.row(3) + .1 * adversary.Normal(1, 64).row(0)).l2;
  EXPECT_LE(speed, bound);
  RecordProperty("bound_over_typical_speed", std::to_string(bound / speed));
}

TEST(LipschitzOfRelease, TimesTheDiameterIsComparableWithTheSensitivityOfOneChangedRow) {
  Adversary adversary(4);
  const Setting c(adversary.Normal(300, 2), 6, .6, 20);
  const double diameter = 2 * Bound(c).to_l2;
  EXPECT_LT(diameter, 3 * *ReplaceTargetSensitivity(c.Inputs(), 1));
}

TEST(LipschitzOfRelease, RefusesInsteadOfGuessing) {
  Adversary adversary(5);
  const Setting c(adversary.Normal(10, 2), 1, .6, 2);
  IterationInputs inputs = c.Inputs();
  inputs.alpha = std::nan("");
  EXPECT_THAT(LipschitzOfRelease(inputs), FailsWith(absl::StatusCode::kInvalidArgument, "alpha"));
  inputs.alpha = 1e308;
  EXPECT_THAT(LipschitzOfRelease(inputs), FailsWith(absl::StatusCode::kInvalidArgument, "alpha"));
  // Its square overflows.
  inputs.alpha = 1e30;
  inputs.kernel_denominator = 4 / 340.;
  EXPECT_THAT(LipschitzOfRelease(inputs),
              FailsWith(absl::StatusCode::kFailedPrecondition, "finite"));
  inputs.kernel_denominator = 1e-3;
  EXPECT_THAT(LipschitzOfRelease(inputs),
              FailsWith(absl::StatusCode::kFailedPrecondition, "kernel_bandwidth"));
}

}  // namespace
}  // namespace privatemail
