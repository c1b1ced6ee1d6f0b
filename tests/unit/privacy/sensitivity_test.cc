#include "client/privacy/sensitivity.h"

#include <cmath>
#include <limits>
#include <random>

#include "common/numerics/affinity_operator.h"
#include "common/numerics/smlq.h"
#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

Matrix Normal(Eigen::Index n, Eigen::Index d, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(n, d, [&] { return normal(bits); });
}

Matrix UnitNormal(Eigen::Index n, Eigen::Index d, unsigned seed) {
  return Normal(n, d, seed).rowwise().normalized();
}

struct Case {
  Matrix start;
  LabelGraph graph;
  IterationInputs inputs;

  Case(Eigen::Index n, int64_t slots, double bandwidth, double alpha, unsigned seed)
      : start(Normal(n, 2, seed)),
        graph(Labels(n, slots), LabelGraphKind::kDistance, 2 * bandwidth * bandwidth),
        inputs{.start = start,
               .label_graph = graph,
               .alpha = alpha,
               .kernel_denominator = 2 * bandwidth * bandwidth,
               .slots = slots} {}

  static std::vector<int32_t> Labels(Eigen::Index n, int64_t slots) {
    std::vector<int32_t> labels;
    for (Eigen::Index i = 0; i < n; ++i) labels.push_back(static_cast<int32_t>(i % slots));
    return labels;
  }

  Matrix Iterate(const Matrix& rows) const {
    return SmlqUpdate(start, AffinityOperator(rows, inputs.kernel_denominator), graph,
                      inputs.alpha);
  }
};

// Replaces the target of slot 0 by one of slot 1 in a cloud that is as bad as it gets: anchors at
// one point, targets at that point and opposite to it. n, bandwidth and alpha vary.
TEST(ReplaceTarget, HoldsWhereTargetsJumpFromOnePoleToTheOther) {
  double closest = 0;
  for (const Eigen::Index n : {2, 3, 5, 12}) {
    for (const double bandwidth : {.4, 1.0, 6.0}) {
      for (const double alpha : {0.0, .6, 30.0}) {
        for (unsigned seed = 1; seed <= 6; ++seed) {
          const Case c(n, 2, bandwidth, alpha, seed);
          ASSERT_OK_AND_ASSIGN(const double bound, ReplaceTargetSensitivity(c.inputs, 2));
          Matrix one = Matrix::Zero(n, 3);
          one.col(0).setOnes();
          Matrix two = one;
          one(0, 0) = -1;
          two(1, 0) = -1;
          const Matrix move = c.Iterate(one) - c.Iterate(two);
          const double moved = move.norm();
          EXPECT_LE(move.cwiseAbs().sum(), *ReplaceTargetL1Sensitivity(c.inputs, 2));
          EXPECT_LE(moved, bound) << "n " << n << " bandwidth " << bandwidth << " alpha " << alpha;
          closest = std::max(closest, moved / bound);
        }
      }
    }
  }
  EXPECT_GT(closest, .3) << "the search is too weak to show anything";
}

TEST(ReplaceTarget, OneChangedRowNeedsLessThanTwo) {
  const Case c(40, 5, 2, .6, 1);
  EXPECT_LT(*ReplaceTargetSensitivity(c.inputs, 1), *ReplaceTargetSensitivity(c.inputs, 2));
}

TEST(ReplaceTarget, RefusesInsteadOfGuessing) {
  Case c(10, 2, 1, .6, 1);
  c.inputs.kernel_denominator = 1e-3;
  EXPECT_THAT(ReplaceTargetSensitivity(c.inputs, 2),
              FailsWith(absl::StatusCode::kFailedPrecondition, "kernel_bandwidth"));
  c.inputs.kernel_denominator = 2;
  c.inputs.alpha = std::nan("");
  EXPECT_THAT(ReplaceTargetSensitivity(c.inputs, 2),
              FailsWith(absl::StatusCode::kInvalidArgument, "alpha"));
  c.inputs.alpha = 1e308;
  EXPECT_THAT(ReplaceTargetSensitivity(c.inputs, 2),
              FailsWith(absl::StatusCode::kInvalidArgument, "alpha"));
  c.inputs.alpha = 1;
  c.inputs.kernel_denominator = 1e200;
  EXPECT_THAT(ReplaceTargetSensitivity(c.inputs, 2),
              FailsWith(absl::StatusCode::kInvalidArgument, "kernel denominator"));
  c.inputs.kernel_denominator = 2;
  EXPECT_THAT(ReplaceTargetSensitivity(c.inputs, 3),
              FailsWith(absl::StatusCode::kInvalidArgument, "changed_rows"));
  c.inputs.slots = 11;
  EXPECT_THAT(ReplaceTargetSensitivity(c.inputs, 2),
              FailsWith(absl::StatusCode::kInvalidArgument, "slots"));
}

// Squares of such a start vanish, and with them the noise: refused, not bounded.
TEST(ReplaceTarget, RefusesAStartWhoseSquaresVanishOrOverflow) {
  for (const double scale : {4.5e-163, 1e-101, 1e200}) {
    const Case c(10, 2, 1, .6, 1);
    const Matrix start = scale * c.start;
    IterationInputs inputs{
        .start = start, .label_graph = c.graph, .alpha = .6, .kernel_denominator = 2, .slots = 2};
    for (const auto& bound :
         {ReplaceTargetSensitivity(inputs, 2), ReplaceTargetL1Sensitivity(inputs, 2),
          LargestIterateValue(inputs), IterationRoundingError(inputs, 3)}) {
      EXPECT_THAT(bound,
                  FailsWith(absl::StatusCode::kInvalidArgument, "largest value of the start"));
    }
  }
}

// At the ends of what is taken, a bound scales with the start: nothing was lost.
TEST(ReplaceTarget, ScalesWithTheStartFromEndToEnd) {
  const Case c(10, 2, 1, .6, 1);
  ASSERT_OK_AND_ASSIGN(const double bound, ReplaceTargetSensitivity(c.inputs, 2));
  for (const double scale : {1e-99, 1e98}) {
    const Matrix start = scale * c.start;
    const IterationInputs inputs{
        .start = start, .label_graph = c.graph, .alpha = .6, .kernel_denominator = 2, .slots = 2};
    EXPECT_NEAR(*ReplaceTargetSensitivity(inputs, 2) / scale / bound, 1, 1e-12);
  }
}

// Against the same iteration in long double.
TEST(IterationRoundingError, CoversTheDifferenceToLongDouble) {
  for (const double bandwidth : {.3, 1.0, 6.0}) {
    const Case c(150, 4, bandwidth, .6, 3);
    const Matrix rows = UnitNormal(150, 64, 4);
    const Matrix computed = c.Iterate(rows);
    const Matrix pull = c.graph.MultiplyLaplacian(c.start);  // public: the same for both neighbours
    long double squared = 0;
    for (int i = 0; i < 150; ++i) {
      long double degree = 0;
      long double sum[2] = {0, 0};
      for (int j = 0; j < 150; ++j) {
        if (i == j) continue;
        long double distance = 0;
        for (int k = 0; k < 64; ++k)
          distance += std::pow(static_cast<long double>(rows(i, k)) - rows(j, k), 2);
        const long double w =
            std::exp(-distance / static_cast<long double>(c.inputs.kernel_denominator));
        degree += w;
        for (int k = 0; k < 2; ++k) sum[k] += w * c.start(j, k);
      }
      for (int k = 0; k < 2; ++k) {
        const long double exact =
            .5L * ((c.inputs.alpha * static_cast<long double>(pull(i, k)) + sum[k]) / degree +
                   c.start(i, k));
        squared += std::pow(exact - computed(i, k), 2);
      }
    }
    ASSERT_OK_AND_ASSIGN(const double bound, IterationRoundingError(c.inputs, 64));
    EXPECT_LE(std::sqrt(squared), bound);
    if (bandwidth >= 1) {
      EXPECT_GT(std::sqrt(squared), 1e-5 * bound) << "the bound would hide a real error";
    }
  }
}

TEST(LargestIterateValue, BoundsEveryEntry) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const Case c(30, 3, .5, 20, seed);
    EXPECT_LE(c.Iterate(UnitNormal(30, 4, seed)).cwiseAbs().maxCoeff(),
              *LargestIterateValue(c.inputs));
  }
}

TEST(PublishedGaussian, RefusesWhatThePrintedFormulaCannotAnswer) {
  EXPECT_THAT(PublishedGaussianSensitivity(10, 1e200, 6, 3, 1),
              FailsWith(absl::StatusCode::kFailedPrecondition, "printed formula"));
  EXPECT_THAT(PublishedGaussianSensitivity(10, .6, 6, -1, 1),
              FailsWith(absl::StatusCode::kInvalidArgument, "largest_label"));
  EXPECT_THAT(PublishedGaussianSensitivity(10, .6, 6, 3, std::nan("")),
              FailsWith(absl::StatusCode::kInvalidArgument, "norm"));
}

}  // namespace
}  // namespace privatemail
