#include "client/privacy/known_anchors_sensitivity.h"

#include <cmath>
#include <random>
#include <vector>

#include "common/numerics/affinity_operator.h"
#include "common/numerics/smlq.h"
#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

class Adversary {
 public:
  explicit Adversary(unsigned seed) : bits_(seed) {}
  Matrix Normal(Eigen::Index n, Eigen::Index d) {
    return Matrix::NullaryExpr(n, d, [&] { return normal_(bits_); });
  }
  unsigned Draw(unsigned bound) { return static_cast<unsigned>(bits_()) % bound; }

 private:
  std::mt19937 bits_;
  std::normal_distribution<double> normal_;
};

struct Setting {
  Matrix start;
  LabelGraph graph;
  double alpha;
  double c;
  int64_t slots;

  Setting(Matrix q, double bandwidth, double a, int64_t slot_count)
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
  IterationInputs Inputs() const {
    return {.start = start,
            .label_graph = graph,
            .alpha = alpha,
            .kernel_denominator = c,
            .slots = slots};
  }
  Matrix Iterate(const Matrix& rows) const {
    return SmlqUpdate(start, AffinityOperator(rows, c), graph, alpha);
  }
  // rows: n slots and anchors, then the two rows that take the places of slots 0 and 1.
  double MovedOverBound(const Matrix& rows) const {
    const Eigen::Index n = start.rows();
    const Matrix one = rows.topRows(n);
    Matrix two = one;
    two.topRows(2) = rows.bottomRows(2);
    const Matrix anchors = one.bottomRows(n - slots);
    return (Iterate(one) - Iterate(two)).norm() / *KnownAnchorsSensitivity(Inputs(), anchors, 2);
  }
  // Whether knowing the anchors makes a difference here.
  bool AnchorsHelp(const Matrix& rows) const {
    const Matrix anchors = rows.middleRows(slots, start.rows() - slots);
    return *KnownAnchorsSensitivity(Inputs(), anchors, 2) <
           .999 * *ReplaceTargetSensitivity(Inputs(), 2);
  }
};

// Random ascent on moved / bound over slots, both targets AND the anchors, on which the bound
// depends: everything the proof quantifies over.
double Climb(Adversary& adversary, const Setting& setting, Matrix& rows, int steps) {
  rows.rowwise().normalize();
  double best = setting.MovedOverBound(rows);
  double scale = 1;
  for (int i = 0; i < steps; ++i) {
    Matrix tried = rows;
    const auto row = static_cast<Eigen::Index>(adversary.Draw(static_cast<unsigned>(rows.rows())));
    tried.row(row) += scale * adversary.Normal(1, rows.cols()).row(0);
    tried.rowwise().normalize();
    const double ratio = setting.MovedOverBound(tried);
    if (ratio > best) {
      best = ratio;
      rows = tried;
      scale = std::min(1., scale * 1.5);
    } else {
      scale = std::max(1e-3, scale * .97);
    }
  }
  return best;
}

TEST(KnownAnchorsSensitivity, IsNeverReachedByAscentOverEveryRow) {
  Adversary adversary(1);
  double closest = 0;
  for (const Eigen::Index n : {3, 5, 12, 40}) {
    for (const double bandwidth : {.5, 1.0, 2.0, 6.0}) {
      for (const double alpha : {0.0, .6, 30.0}) {
        for (int start = 0; start < 2; ++start) {
          const Setting setting(adversary.Normal(n, 2), bandwidth, alpha, 2);
          Matrix rows = adversary.Normal(n + 2, 3);
          const double ratio = Climb(adversary, setting, rows, n > 20 ? 400 : 1000);
          EXPECT_LE(ratio, 1) << n << " " << bandwidth << " " << alpha;
          if (setting.AnchorsHelp(rows)) closest = std::max(closest, ratio);
        }
      }
    }
  }
  RecordProperty("closest", std::to_string(closest));
  EXPECT_GT(closest, .5) << "the search is too weak to show anything";
}

// Anchors at one pole or at two, in agreement with the start or not, targets jumping between poles.
TEST(KnownAnchorsSensitivity, HoldsForPolesThatAgreeWithTheStart) {
  double closest = 0;
  for (const Eigen::Index n : {4, 30, 100, 400}) {
    for (const double bandwidth : {.5, 1.0, 6.0}) {
      for (const double alpha : {0.0, .6, 100.0}) {
        for (const double noise : {0.0, .5}) {
          for (const bool one_pole : {false, true}) {
            Adversary adversary(2);
            Matrix start = noise * adversary.Normal(n, 2);
            Matrix rows = Matrix::Zero(n + 2, 2);
            for (Eigen::Index j = 0; j < n; ++j) {
              const double pole = one_pole || j % 2 == 0 ? 1 : -1;
              rows(j, 0) = pole;
              start(j, 0) += j % 2 == 0 ? 1 : -1;
            }
            rows(0, 0) = rows(1, 0) = 1;
            rows(n, 0) = rows(n + 1, 0) = -1;
            const Setting setting(start, bandwidth, alpha, 2);
            const double ratio = setting.MovedOverBound(rows);
            EXPECT_LE(ratio, 1);
            if (setting.AnchorsHelp(rows)) closest = std::max(closest, ratio);
          }
        }
      }
    }
  }
  RecordProperty("closest", std::to_string(closest));
  EXPECT_GT(closest, .5);
}

// The second paper's settings with random anchors of 64 coordinates, centred or in one orthant.
TEST(KnownAnchorsSensitivity, IsFarBelowTheWorstCaseAtThePapersSettings) {
  Adversary adversary(3);
  for (const bool centred : {true, false}) {
    const Setting setting(adversary.Normal(1100, 2), 6, .6, 100);
    Matrix anchors = adversary.Normal(1000, 64);
    if (!centred) anchors = anchors.cwiseAbs();
    anchors.rowwise().normalize();
    const double known = *KnownAnchorsSensitivity(setting.Inputs(), anchors, 2);
    const double worst_case = *ReplaceTargetSensitivity(setting.Inputs(), 2);
    RecordProperty(centred ? "centred" : "orthant", std::to_string(worst_case / known));
    EXPECT_LT(known, worst_case / 2);
  }
}

TEST(KnownAnchorsSensitivity, IsNeverAboveTheBoundThatIgnoresTheAnchors) {
  Adversary adversary(4);
  for (const double bandwidth : {.3, .5, 1.0, 6.0}) {
    const Setting setting(adversary.Normal(30, 3), bandwidth, .6, 4);
    const Matrix anchors = adversary.Normal(26, 5).rowwise().normalized();
    for (const int changed : {1, 2}) {
      EXPECT_LE(*KnownAnchorsSensitivity(setting.Inputs(), anchors, changed),
                *ReplaceTargetSensitivity(setting.Inputs(), changed));
    }
  }
}

TEST(KnownAnchorsSensitivity, RefusesInsteadOfGuessing) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  Adversary adversary(5);
  const Setting setting(adversary.Normal(10, 2), 1, .6, 2);
  Matrix anchors = adversary.Normal(8, 3).rowwise().normalized();
  EXPECT_THAT(KnownAnchorsSensitivity(setting.Inputs(), anchors.topRows(7), 2),
              FailsWith(kInvalid, "expected 8, got 7"));
  EXPECT_THAT(KnownAnchorsSensitivity(setting.Inputs(), anchors, 3),
              FailsWith(kInvalid, "changed_rows"));
  anchors(3, 0) = std::nan("");
  EXPECT_THAT(KnownAnchorsSensitivity(setting.Inputs(), anchors, 2), FailsWith(kInvalid, "row 3"));
}

}  // namespace
}  // namespace privatemail
