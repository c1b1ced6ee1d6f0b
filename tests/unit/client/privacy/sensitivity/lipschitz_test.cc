#include "client/privacy/sensitivity/lipschitz.h"

#include <cmath>

#include "tests/testing/matchers.h"
#include "tests/unit/client/privacy/adversary.h"

namespace privatemail::client::lipschitz_test {
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
  if (!(chord > 1e-5)) return {0, 0};  // its rounding would show
  const Matrix change = setting.Iterate(moved) - setting.Iterate(rows);
  return {change.norm() / chord, change.cwiseAbs().sum() / chord};
}

// A cloud whose last row is where that of slot 0 goes: how near its speed comes to the bound.
struct Walk {
  Eigen::Index n;
  double bandwidth;
  double alpha;

  double SpeedOverBound(const Matrix& cloud) const {
    const Setting setting(Cloud::StartOf(cloud, n), bandwidth, alpha, 2);
    const Matrix rows = Cloud::RowsOf(cloud);
    return SpeedOf(setting, rows.topRows(n), 0, rows.row(n)).l2 / Bound(setting).to_l2;
  }
};

TEST(LipschitzOfRelease, AscentDoesNotExceedBound) {
  Adversary adversary(1);
  double closest = 0;
  for (const Eigen::Index n : {2, 3, 6, 12}) {
    for (const double bandwidth : {.5, 1.0, 2.0, 6.0}) {
      for (const double alpha : {0.0, .6, 30.0}) {
        const Walk walk{n, bandwidth, alpha};
        for (int start = 0; start < 4; ++start) {
          Matrix cloud = Cloud::Random(adversary, n + 1);
          if (start % 2 == 0) cloud.row(n) = cloud.row(0) + 1e-2 * cloud.row(n);
          cloud = Cloud::Normalised(cloud);
          const double ratio = Ascend(cloud, 60, Cloud::Normalised, [&](const Matrix& tried) {
            return walk.SpeedOverBound(tried);
          });
          EXPECT_LE(ratio, 1) << n << " " << bandwidth << " " << alpha;
          closest = std::max(closest, ratio);
        }
      }
    }
  }
  RecordProperty("closest", std::to_string(closest));
  EXPECT_GT(closest, .8) << "the search is too weak to show anything";
}

// Rows at two poles, the start correlated with them, the target at the equator: the covariance of
// the proof has its largest value.
TEST(LipschitzOfRelease, PolesAlmostReachBound) {
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

TEST(LipschitzOfRelease, LongChordsDoNotExceedL2AndL1Bounds) {
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
  RecordProperty("closest", std::to_string(closest));
  EXPECT_GT(closest, .1);
}

TEST(LipschitzOfRelease, BadInputsAreNamed) {
  Adversary adversary(5);
  const Setting c(adversary.Normal(10, 2), 1, .6, 2);
  IterationInputs inputs = c.Inputs();
  inputs.alpha = std::nan("");
  EXPECT_THAT(LipschitzOfRelease(inputs), FailsWith(kInvalid, "alpha"));
  inputs.alpha = 1e308;
  EXPECT_THAT(LipschitzOfRelease(inputs), FailsWith(kInvalid, "alpha"));
  // Its square overflows.
  inputs.alpha = 1e30;
  inputs.kernel_denominator = 4 / 340.;
  EXPECT_THAT(LipschitzOfRelease(inputs), FailsWith(kFailedPrecondition, "finite"));
  inputs.kernel_denominator = 1e-3;
  EXPECT_THAT(LipschitzOfRelease(inputs), FailsWith(kFailedPrecondition, "kernel_bandwidth"));
}

}  // namespace
}  // namespace privatemail::client::lipschitz_test
