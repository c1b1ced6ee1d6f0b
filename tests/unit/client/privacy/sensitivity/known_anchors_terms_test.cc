// Rows at poles for which a single term of the bound is all that keeps it above the move. Without
// it the first is exceeded 15 times, the second 3.8 times, the third by .29, the fourth by .8, the
// last 2 times.
#include "client/privacy/sensitivity/known_anchors_sensitivity.h"
#include "tests/testing/matchers.h"
#include "tests/unit/client/privacy/adversary.h"

namespace privatemail::client {
namespace {

constexpr double kBandwidths[] = {.4, .5, .7, 1, 1.5, 2, 6};

RowVector Pole(Eigen::Index axis, double sign = 1) { return sign * RowVector::Unit(3, axis); }

// The largest move over its bound; none above 1.
class Closest {
 public:
  explicit Closest(int64_t slots) : slots_(slots) {}

  void Visit(const Setting& setting, const Matrix& rows) {
    const auto changed = static_cast<int>(rows.rows() - setting.start.rows());
    const double ratio =
        setting.Move(rows).norm() /
        *KnownAnchorsSensitivity(setting.Inputs(), setting.AnchorsOf(rows), changed);
    EXPECT_LE(ratio, 1) << slots_ << " slots, denominator " << setting.c;
    ratio_ = std::max(ratio_, ratio);
  }
  ~Closest() {
    ::testing::Test::RecordProperty("slots_" + std::to_string(slots_), std::to_string(ratio_));
  }

 private:
  int64_t slots_;
  double ratio_ = 0;
};

// r: anchors whose start goes with the square of a coordinate have C = 0. Targets that go from one
// axis to the other.
TEST(KnownAnchorsTerms, NonlinearRestIsNeeded) {
  for (const int64_t slots : {2, 6, 40}) {
    Closest closest(slots);
    for (const double bandwidth : kBandwidths) {
      const Eigen::Index n = slots + 40;
      Matrix start = Matrix::Zero(n, 1);
      Matrix rows = Pole(2).replicate(n + 2, 1);
      for (Eigen::Index j = slots; j < n; ++j) {
        const Eigen::Index axis = j % 2;
        rows.row(j) = Pole(axis, j % 4 < 2 ? 1 : -1);
        start(j, 0) = axis == 0 ? 1 : -1;
      }
      rows.topRows(2) = Pole(0).replicate(2, 1);
      rows.bottomRows(2) = Pole(1).replicate(2, 1);
      closest.Visit(Setting(start, bandwidth, 0, slots), rows);
    }
  }
}

// (1-m) sqrt(S) |Q_S - mu|_op: many slots at two poles that agree with the start, and few anchors.
TEST(KnownAnchorsTerms, OtherSlotsSpreadIsNeeded) {
  for (const int64_t slots : {6, 15, 40}) {
    Closest closest(slots);
    for (const double bandwidth : kBandwidths) {
      const Eigen::Index n = slots + 2;
      Matrix start = Matrix::Zero(n, 1);
      Matrix rows = Pole(0).replicate(n + 2, 1);
      for (Eigen::Index j = 2; j < slots; ++j) {
        start(j, 0) = j % 2 == 0 ? 1 : -1;
        rows.row(j) = Pole(0, start(j, 0));
      }
      rows.row(n - 1) = Pole(0, -1);
      rows.bottomRows(2) = Pole(0, -1).replicate(2, 1);
      closest.Visit(Setting(start, bandwidth, 0, slots), rows);
    }
  }
}

// The part of M that is the slots': slots at one pole whose starts add up, three times as many
// anchors at the other, and a wide kernel. What moves then is the degree under their sum.
TEST(KnownAnchorsTerms, SumOfSlotsIsNeeded) {
  for (const int64_t slots : {6, 15, 40}) {
    Closest closest(slots);
    for (const double bandwidth : kBandwidths) {
      const Eigen::Index n = 4 * slots;
      Matrix start = Matrix::Zero(n, 1);
      start.topRows(slots).setOnes();
      Matrix rows = Pole(0).replicate(n + 2, 1);
      rows.topRows(slots) = Pole(0, -1).replicate(slots, 1);
      closest.Visit(Setting(start, bandwidth, 0, slots), rows);
    }
  }
}

// Both of the t largest |q_b - mu|: targets that cross the sphere against each other, with opposite
// starts, so that either moves every anchor the same way.
TEST(KnownAnchorsTerms, BothTargetsAreNeeded) {
  for (const int64_t slots : {2, 6}) {
    Closest closest(slots);
    for (const double bandwidth : kBandwidths) {
      const Eigen::Index n = slots + 200;
      Matrix start = Matrix::Zero(n, 1);
      start.topRows(2) << 1, -1;
      Matrix rows = Pole(0).replicate(n + 2, 1);
      rows.row(1) = rows.row(n) = Pole(0, -1);
      closest.Visit(Setting(start, bandwidth, 0, slots), rows);
    }
  }
}

// The 1 in E: two opposite anchors that a heavy label graph pulls, and one target that goes from
// one to the other. (Two targets only move them by less than the bound allows even without it.)
TEST(KnownAnchorsTerms, AnchorsOwnTermOfDegreeIsNeeded) {
  for (const int64_t slots : {1, 2}) {
    Closest closest(slots);
    for (const double bandwidth : kBandwidths) {
      const Eigen::Index n = slots + 2;
      Setting setting(Matrix::Zero(n, 1), bandwidth, 1e6, slots, LabelGraphKind::kOneHotKernel);
      setting.start(n - 1, 0) = 1;
      setting.start(n - 2, 0) = -1;
      Matrix rows = Pole(0, -1).replicate(n + 1, 1);
      rows.row(0) = rows.row(n - 1) = Pole(0);
      closest.Visit(setting, rows);
    }
  }
}

}  // namespace
}  // namespace privatemail::client
