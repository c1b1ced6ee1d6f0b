#include "client/privacy/lipschitz.h"

#include <cmath>
#include <random>
#include <vector>

#include "common/numerics/affinity_operator.h"
#include "common/numerics/smlq.h"
#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

// Everything an adversary may choose, and the production iteration on it.
struct Case {
  Matrix start;
  LabelGraph graph;
  double alpha;
  double c;
  int64_t slots;

  Case(Matrix q, double bandwidth, double a, int64_t slot_count)
      : start(std::move(q)),
        graph(Labels(start.rows(), slot_count), LabelGraphKind::kDistance,
              2 * bandwidth * bandwidth),
        alpha(a),
        c(2 * bandwidth * bandwidth),
        slots(slot_count) {}

  static std::vector<int32_t> Labels(Eigen::Index n, int64_t slots) {
    std::vector<int32_t> labels;
    for (Eigen::Index i = 0; i < n; ++i) labels.push_back(static_cast<int32_t>(i % slots));
    return labels;
  }

  ReleaseLipschitz Bound() const {
    return *LipschitzOfRelease({.start = start,
                                .label_graph = graph,
                                .alpha = alpha,
                                .kernel_denominator = c,
                                .slots = slots});
  }

  Matrix Iterate(const Matrix& rows) const {
    return SmlqUpdate(start, AffinityOperator(rows, c), graph, alpha);
  }

  // How fast the release moves when `slot` walks from its row towards `to` by a chord.
  struct Speed {
    double l2;
    double l1;
  };
  Speed SpeedOf(const Matrix& rows, Eigen::Index slot, const RowVector& to) const {
    Matrix moved = rows;
    moved.row(slot) = to.normalized();
    const double chord = (moved.row(slot) - rows.row(slot)).norm();
    if (!(chord > 1e-9)) return {0, 0};
    const Matrix change = Iterate(moved) - Iterate(rows);
    return {change.norm() / chord, change.cwiseAbs().sum() / chord};
  }
};

class Adversary {
 public:
  explicit Adversary(unsigned seed) : bits_(seed) {}

  Matrix Normal(Eigen::Index n, Eigen::Index d) {
    return Matrix::NullaryExpr(n, d, [&] { return normal_(bits_); });
  }

  // Random ascent on the speed over all rows, the slot's among them, and where it goes.
  double Climb(const Case& c, Matrix rows, RowVector to, int steps) {
    rows.rowwise().normalize();
    double best = c.SpeedOf(rows, 0, to).l2;
    double scale = 1;
    for (int i = 0; i < steps; ++i) {
      Matrix tried = rows;
      // One row or all of them.
      const auto row = static_cast<Eigen::Index>(bits_() % static_cast<unsigned>(rows.rows() + 1));
      if (row < rows.rows()) {
        tried.row(row) += scale * Normal(1, rows.cols()).row(0);
      } else {
        tried += scale * Normal(rows.rows(), rows.cols());
      }
      tried.rowwise().normalize();
      const RowVector tried_to =
          tried.row(0) + (to - rows.row(0)) + .3 * scale * Normal(1, rows.cols()).row(0);
      const double speed = c.SpeedOf(tried, 0, tried_to).l2;
      if (speed > best) {
        best = speed;
        rows = tried;
        to = tried_to;
        scale = std::min(1., scale * 1.5);
      } else {
        scale = std::max(1e-3, scale * .97);
      }
    }
    return best;
  }

  std::mt19937 bits_;
  std::normal_distribution<double> normal_;
};

TEST(LipschitzOfRelease, IsNeverReachedByAscentOverAllRows) {
  Adversary adversary(1);
  double closest = 0;
  for (const Eigen::Index n : {2, 3, 6, 12}) {
    for (const double bandwidth : {.5, 1.0, 2.0, 6.0}) {
      for (const double alpha : {0.0, .6, 30.0}) {
        const Case c(adversary.Normal(n, 2), bandwidth, alpha, 2);
        const double bound = c.Bound().to_l2;
        for (int start = 0; start < 3; ++start) {
          const Matrix rows = adversary.Normal(n, 3);
          const RowVector to =
              rows.row(0) + (start == 0 ? 1e-3 : 1.) * adversary.Normal(1, 3).row(0);
          const double speed = adversary.Climb(c, rows, to, 800);
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
    const Case c(start, bandwidth, 0, 2);
    RowVector to(2);
    to << 1e-4, 1;
    const double ratio = c.SpeedOf(rows, 0, to).l2 / c.Bound().to_l2;
    EXPECT_LE(ratio, 1);
    EXPECT_GT(ratio, bandwidth == 6 ? .9 : .3);
  }
}

TEST(LipschitzOfRelease, HoldsForLongChordsAndInTheSumOfAbsoluteValues) {
  Adversary adversary(2);
  double closest = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Eigen::Index n = 2 + trial % 9;
    const Case c(adversary.Normal(n, 1 + trial % 3), .5 + std::exp(adversary.Normal(1, 1)(0, 0)),
                 trial % 4, 2);
    const Matrix rows = adversary.Normal(n, 2).rowwise().normalized();
    const RowVector to =
        trial % 2 == 0 ? RowVector(-rows.row(1)) : RowVector(adversary.Normal(1, 2).row(0));
    const ReleaseLipschitz bound = c.Bound();
    const Case::Speed speed = c.SpeedOf(rows, 1, to);
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
  const Case c(adversary.Normal(1100, 2), 6, .6, 100);
  const Matrix rows = adversary.Normal(1100, 64).rowwise().normalized();
  const double bound = c.Bound().to_l2;
  const double speed = c.SpeedOf(rows, 3, rows.row(3) + .1 * adversary.Normal(1, 64).row(0)).l2;
  EXPECT_LE(speed, bound);
  RecordProperty("bound_over_typical_speed", std::to_string(bound / speed));
}

TEST(LipschitzOfRelease, TimesTheDiameterIsComparableWithTheSensitivityOfOneChangedRow) {
  Adversary adversary(4);
  const Case c(adversary.Normal(300, 2), 6, .6, 20);
  const IterationInputs inputs{.start = c.start,
                               .label_graph = c.graph,
                               .alpha = c.alpha,
                               .kernel_denominator = c.c,
                               .slots = c.slots};
  const double diameter = 2 * c.Bound().to_l2;
  EXPECT_LT(diameter, 3 * *ReplaceTargetSensitivity(inputs, 1));
}

TEST(LipschitzOfRelease, RefusesInsteadOfGuessing) {
  Adversary adversary(5);
  const Case c(adversary.Normal(10, 2), 1, .6, 2);
  IterationInputs inputs{.start = c.start,
                         .label_graph = c.graph,
                         .alpha = std::nan(""),
                         .kernel_denominator = 2,
                         .slots = 2};
  EXPECT_THAT(LipschitzOfRelease(inputs), FailsWith(absl::StatusCode::kInvalidArgument, "alpha"));
  inputs.alpha = 1e308;
  EXPECT_THAT(LipschitzOfRelease(inputs), FailsWith(absl::StatusCode::kInvalidArgument, "alpha"));
  // A bound that overflows to not-a-number is refused like one that overflows to infinity.
  inputs.alpha = 1;
  inputs.kernel_denominator = 4 / 700.;
  EXPECT_THAT(LipschitzOfRelease(inputs),
              FailsWith(absl::StatusCode::kFailedPrecondition, "finite"));
  inputs.kernel_denominator = 1e-3;
  EXPECT_THAT(LipschitzOfRelease(inputs),
              FailsWith(absl::StatusCode::kFailedPrecondition, "kernel_bandwidth"));
}

}  // namespace
}  // namespace privatemail
