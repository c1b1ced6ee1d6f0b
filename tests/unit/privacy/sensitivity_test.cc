#include "client/privacy/sensitivity.h"

#include <cmath>

#include "tests/testing/matchers.h"
#include "tests/unit/privacy/adversary.h"

namespace privatemail {
namespace {

Setting RandomStart(Eigen::Index n, int64_t slots, double bandwidth, double alpha, unsigned seed) {
  return Setting(Adversary(seed).Normal(n, 2), bandwidth, alpha, slots);
}

// Replaces the target of slot 0 by one of slot 1 in a cloud that is as bad as it gets: anchors at
// one point, targets at that point and opposite to it. n, bandwidth and alpha vary.
TEST(ReplaceTarget, HoldsWhereTargetsJumpFromOnePoleToTheOther) {
  double closest = 0;
  for (const Eigen::Index n : {2, 3, 5, 12}) {
    for (const double bandwidth : {.4, 1.0, 6.0}) {
      for (const double alpha : {0.0, .6, 30.0}) {
        for (unsigned seed = 1; seed <= 6; ++seed) {
          const Setting c = RandomStart(n, 2, bandwidth, alpha, seed);
          ASSERT_OK_AND_ASSIGN(const double bound, ReplaceTargetSensitivity(c.Inputs(), 2));
          Matrix one = Matrix::Zero(n, 3);
          one.col(0).setOnes();
          Matrix two = one;
          one(0, 0) = -1;
          two(1, 0) = -1;
          const Matrix move = c.Iterate(one) - c.Iterate(two);
          const double moved = move.norm();
          EXPECT_LE(move.cwiseAbs().sum(), *ReplaceTargetL1Sensitivity(c.Inputs(), 2));
          EXPECT_LE(moved, bound) << "n " << n << " bandwidth " << bandwidth << " alpha " << alpha;
          closest = std::max(closest, moved / bound);
        }
      }
    }
  }
  EXPECT_GT(closest, .3) << "the search is too weak to show anything";
}

TEST(ReplaceTarget, OneChangedRowNeedsLessThanTwo) {
  const Setting c = RandomStart(40, 5, 2, .6, 1);
  EXPECT_LT(*ReplaceTargetSensitivity(c.Inputs(), 1), *ReplaceTargetSensitivity(c.Inputs(), 2));
}

TEST(ReplaceTarget, RefusesInsteadOfGuessing) {
  const Setting c = RandomStart(10, 2, 1, .6, 1);
  IterationInputs inputs = c.Inputs();
  inputs.kernel_denominator = 1e-3;
  EXPECT_THAT(ReplaceTargetSensitivity(inputs, 2),
              FailsWith(absl::StatusCode::kFailedPrecondition, "kernel_bandwidth"));
  inputs.kernel_denominator = 2;
  inputs.alpha = std::nan("");
  EXPECT_THAT(ReplaceTargetSensitivity(inputs, 2),
              FailsWith(absl::StatusCode::kInvalidArgument, "alpha"));
  inputs.alpha = 1e308;
  EXPECT_THAT(ReplaceTargetSensitivity(inputs, 2),
              FailsWith(absl::StatusCode::kInvalidArgument, "alpha"));
  inputs.alpha = 1;
  inputs.kernel_denominator = 1e200;
  EXPECT_THAT(ReplaceTargetSensitivity(inputs, 2),
              FailsWith(absl::StatusCode::kInvalidArgument, "kernel denominator"));
  inputs.kernel_denominator = 2;
  EXPECT_THAT(ReplaceTargetSensitivity(inputs, 3),
              FailsWith(absl::StatusCode::kInvalidArgument, "changed_rows"));
  inputs.slots = 11;
  EXPECT_THAT(ReplaceTargetSensitivity(inputs, 2),
              FailsWith(absl::StatusCode::kInvalidArgument, "slots"));
}

// Squares of such a start vanish, and with them the noise: refused, not bounded.
TEST(ReplaceTarget, RefusesAStartWhoseSquaresVanishOrOverflow) {
  for (const double scale : {4.5e-163, 1e-101, 1e200}) {
    const Setting c = RandomStart(10, 2, 1, .6, 1);
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
  const Setting c = RandomStart(10, 2, 1, .6, 1);
  ASSERT_OK_AND_ASSIGN(const double bound, ReplaceTargetSensitivity(c.Inputs(), 2));
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
    const Setting c = RandomStart(150, 4, bandwidth, .6, 3);
    const Matrix rows = Adversary(4).UnitRows(150, 64);
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
        const long double w = std::exp(-distance / static_cast<long double>(c.c));
        degree += w;
        for (int k = 0; k < 2; ++k) sum[k] += w * c.start(j, k);
      }
      for (int k = 0; k < 2; ++k) {
        const long double exact =
            .5L *
            ((c.alpha * static_cast<long double>(pull(i, k)) + sum[k]) / degree + c.start(i, k));
        squared += std::pow(exact - computed(i, k), 2);
      }
    }
    ASSERT_OK_AND_ASSIGN(const double bound, IterationRoundingError(c.Inputs(), 64));
    EXPECT_LE(std::sqrt(squared), bound);
    if (bandwidth >= 1) {
      EXPECT_GT(std::sqrt(squared), 1e-5 * bound) << "the bound would hide a real error";
    }
  }
}

TEST(LargestIterateValue, BoundsEveryEntry) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const Setting c = RandomStart(30, 3, .5, 20, seed);
    EXPECT_LE(c.Iterate(Adversary(seed).UnitRows(30, 4)).cwiseAbs().maxCoeff(),
              *LargestIterateValue(c.Inputs()));
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
