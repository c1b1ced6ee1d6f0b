#include "client/privacy/sensitivity/known_anchors_sensitivity.h"

#include <Eigen/QR>
#include <cmath>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"
#include "tests/unit/client/privacy/adversary.h"

namespace privatemail::client::known_anchors_sensitivity_test {
namespace {

// rows, here and below: as Setting::Move takes them.
double MovedOverBound(const Setting& setting, const Matrix& rows) {
  const auto changed = static_cast<int>(rows.rows() - setting.start.rows());
  return setting.Move(rows).norm() /
         *KnownAnchorsSensitivity(setting.Inputs(), setting.AnchorsOf(rows), changed, Norm::kL2);
}

double MovedOverL1Bound(const Setting& setting, const Matrix& rows) {
  return setting.Move(rows).cwiseAbs().sum() /
         *KnownAnchorsSensitivity(setting.Inputs(), setting.AnchorsOf(rows), 2, Norm::kL1);
}

// Whether knowing the anchors makes a difference here.
bool AnchorsHelp(const Setting& setting, const Matrix& rows) {
  const auto changed = static_cast<int>(rows.rows() - setting.start.rows());
  return *KnownAnchorsSensitivity(setting.Inputs(), setting.AnchorsOf(rows), changed, Norm::kL2) <
         .999 * *ReplaceTargetSensitivity(setting.Inputs(), changed, Norm::kL2);
}

// Ascent on moved / bound over slots, the targets that change, the anchors, on which the bound
// depends, and the start: everything the proof quantifies over but alpha, the kernel and the
// labels.
struct Search {
  Eigen::Index n;
  int64_t slots;
  int changed;
  double bandwidth;
  double alpha;
  LabelGraphKind kind;

  // From many starts; the largest ratio among those where the anchors make a difference.
  double Closest(Adversary& adversary, int starts) const {
    double closest = 0;
    for (int start = 0; start < starts; ++start) {
      Matrix cloud = Cloud::Random(adversary, n + changed);
      const double ratio = Ascend(cloud, 40, Cloud::Normalised, [this](const Matrix& tried) {
        return MovedOverBound(SettingOf(tried), Cloud::RowsOf(tried));
      });
      EXPECT_LE(ratio, 1) << n << " rows, " << slots << " slots, " << changed
                          << " changed, bandwidth " << bandwidth << ", alpha " << alpha;
      if (AnchorsHelp(SettingOf(cloud), Cloud::RowsOf(cloud))) closest = std::max(closest, ratio);
    }
    return closest;
  }

 private:
  Setting SettingOf(const Matrix& cloud) const {
    return Setting(Cloud::StartOf(cloud, n), bandwidth, alpha, slots, kind);
  }
};

TEST(KnownAnchorsSensitivity, AscentDoesNotExceedBound) {
  Adversary adversary(1);
  double closest = 0;
  for (const auto& [n, slots] : {std::pair(3, 1), {4, 2}, {6, 2}, {12, 8}, {12, 2}}) {
    for (const int changed : {1, 2}) {
      if (changed > slots) continue;
      for (const double bandwidth : {.5, 1.0, 2.0, 6.0}) {
        for (const auto& [alpha, kind] : {std::pair(0.0, LabelGraphKind::kDistance),
                                          {.6, LabelGraphKind::kDistance},
                                          {30.0, LabelGraphKind::kDistance},
                                          {30.0, LabelGraphKind::kBalanced}}) {
          const Search search{n, slots, changed, bandwidth, alpha, kind};
          closest = std::max(closest, search.Closest(adversary, n > 6 ? 2 : 6));
        }
      }
    }
  }
  RecordProperty("closest", std::to_string(closest));
  EXPECT_GT(closest, .9) << "the search is too weak to show anything";
}

// Anchors at one pole or at two, in agreement with the start or not, targets jumping between poles.
// visit(setting, rows): for every such case. direction: in which the start's rows lie.
void VisitPoles(const RowVector& direction,
                absl::FunctionRef<void(const Setting&, const Matrix&)> visit) {
  for (const Eigen::Index n : {4, 30, 100, 400}) {
    for (const double bandwidth : {.5, 1.0, 6.0}) {
      for (const double alpha : {0.0, .6, 100.0}) {
        for (const double noise : {0.0, .5}) {
          for (const bool one_pole : {false, true}) {
            Matrix start = noise * Adversary(2).Normal(n, direction.size());
            Matrix rows = Matrix::Zero(n + 2, 2);
            for (Eigen::Index j = 0; j < n; ++j) {
              rows(j, 0) = one_pole || j % 2 == 0 ? 1 : -1;
              start.row(j) += (j % 2 == 0 ? 1 : -1) * direction;
            }
            rows(0, 0) = rows(1, 0) = 1;
            rows(n, 0) = rows(n + 1, 0) = -1;
            visit(Setting(start, bandwidth, alpha, 2), rows);
          }
        }
      }
    }
  }
}

TEST(KnownAnchorsSensitivity, PolesDoNotExceedBound) {
  double closest = 0;
  VisitPoles(RowVector{{1, 0}}, [&](const Setting& setting, const Matrix& rows) {
    const double ratio = MovedOverBound(setting, rows);
    EXPECT_LE(ratio, 1);
    if (AnchorsHelp(setting, rows)) closest = std::max(closest, ratio);
  });
  RecordProperty("closest", std::to_string(closest));
  EXPECT_GT(closest, .5);
}

// A row that moves as far in each of its k coordinates moves sqrt(k) times as far in L1 as in L2.
TEST(KnownAnchorsSensitivity, PolesDoNotExceedL1Bound) {
  double closest = 0;
  for (const int k : {1, 4}) {
    VisitPoles(RowVector::Ones(k), [&](const Setting& setting, const Matrix& rows) {
      const double ratio = MovedOverL1Bound(setting, rows);
      EXPECT_LE(ratio, 1) << k;
      closest = std::max(closest, ratio);
    });
  }
  RecordProperty("closest", std::to_string(closest));
  EXPECT_GT(closest, .7);
}

TEST(KnownAnchorsSensitivity, BadInputsAreNamed) {
  Adversary adversary(5);
  const Setting setting(adversary.Normal(10, 2), 1, .6, 2);
  Matrix anchors = adversary.UnitRows(8, 3);
  EXPECT_THAT(KnownAnchorsSensitivity(setting.Inputs(), anchors.topRows(7), 2, Norm::kL2),
              FailsWith(kInvalid, "expected 8, got 7"));
  EXPECT_THAT(KnownAnchorsSensitivity(setting.Inputs(), anchors, 3, Norm::kL2),
              FailsWith(kInvalid, "changed_rows"));
  anchors(3, 0) = std::nan("");
  EXPECT_THAT(KnownAnchorsSensitivity(setting.Inputs(), anchors, 2, Norm::kL2),
              FailsWith(kInvalid, "row 3"));
}

// How far one iteration moves when the rows of slots 0 and 1 go from the pole where all others
// stand to the opposite one, without the cancellation of affinities that differ by 4/c.
long double MoveAcrossTheSphere(const Setting& setting) {
  const Matrix pull = setting.alpha * setting.graph.MultiplyLaplacian(setting.start);
  const long double drop = -std::expm1(-4 / static_cast<long double>(setting.c));
  const Eigen::Index n = setting.start.rows();
  const auto row = [&](Eigen::Index i, long double dropped) {
    long double degree = 0;
    long double sum = pull(i, 0);
    for (Eigen::Index j = 0; j < n; ++j) {
      if (j == i) continue;
      const long double affinity = (i < 2) != (j < 2) ? 1 - dropped : 1;
      degree += affinity;
      sum += affinity * setting.start(j, 0);
    }
    return sum / degree / 2;
  };
  long double squares = 0;
  for (Eigen::Index i = 0; i < n; ++i) {
    const long double move = row(i, drop) - row(i, 0);
    squares += move * move;
  }
  return std::sqrt(squares);
}

// Starts the slots where the label graph does not pull them: then all of the move is that of the
// anchors, whose degrees change with the affinities to both slots.
void FreeTheSlotsOfTheGraph(Setting& setting) {
  const Eigen::Index n = setting.start.rows();
  const Matrix laplacian = setting.graph.MultiplyLaplacian(Matrix::Identity(n, n));
  setting.start.topRows(2) = -laplacian.topLeftCorner(2, 2).completeOrthogonalDecomposition().solve(
      laplacian.topRightCorner(2, n - 2) * setting.start.bottomRows(n - 2));
}

// By what share of the bound that move exceeds it.
double ExcessOverTheBound(const Setting& setting) {
  const Eigen::Index anchors = setting.start.rows() - 2;
  const long double bound =
      *KnownAnchorsSensitivity(setting.Inputs(), Matrix::Ones(anchors, 1), 2, Norm::kL2);
  return static_cast<double>(MoveAcrossTheSphere(setting) / bound - 1);
}

// Kernels so wide that 1 - exp(-4/c) has lost up to all but a few of its digits, and a label graph
// so heavy that all of the bound hangs on them. One hot, the graph pulls every anchor on its own:
// nothing of the bound is to spare, and one that lost digits is broken.
TEST(KnownAnchorsSensitivity, WidestKernelsDoNotExceedBound) {
  Adversary adversary(9);
  for (const auto kind : {LabelGraphKind::kDistance, LabelGraphKind::kOneHotKernel}) {
    double closest = -1;
    for (int trial = 0; trial < 2000; ++trial) {
      const double bandwidth = std::pow(10, 3 + adversary.Normal(1, 1).cwiseAbs()(0, 0) / 2);
      const double alpha = std::pow(10, 8 + static_cast<double>(adversary.Draw(5)));
      Setting setting(adversary.Normal(4 + adversary.Draw(3), 1), std::min(bandwidth, 7e5), alpha,
                      2, kind);
      FreeTheSlotsOfTheGraph(setting);
      const double excess = ExcessOverTheBound(setting);
      ASSERT_LE(excess, 0) << "bandwidth " << bandwidth << " alpha " << alpha;
      closest = std::max(closest, excess);
    }
    RecordProperty(kind == LabelGraphKind::kDistance ? "distance" : "one_hot",
                   absl::StrCat(closest));
    if (kind == LabelGraphKind::kOneHotKernel) {
      EXPECT_GT(closest, -1e-8) << "the search is too weak to show anything";
    }
  }
}

// Three anchors at a denominator that rounds 1 - exp(-4/c) down.
TEST(KnownAnchorsSensitivity, AffinitySpanRoundedDownDoesNotExceedBound) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Setting setting(Adversary(seed).Normal(5, 1), std::sqrt(19408465024.345558 / 2), 1.07e8, 2,
                    LabelGraphKind::kOneHotKernel);
    setting.c = 19408465024.345558;
    FreeTheSlotsOfTheGraph(setting);
    EXPECT_LE(ExcessOverTheBound(setting), 0) << seed;
  }
}

}  // namespace
}  // namespace privatemail::client::known_anchors_sensitivity_test
