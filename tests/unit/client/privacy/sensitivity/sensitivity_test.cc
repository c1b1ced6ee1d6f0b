#include "client/privacy/sensitivity/sensitivity.h"

#include <cmath>

#include "tests/testing/matchers.h"
#include "tests/unit/client/privacy/adversary.h"

namespace privatemail::client::sensitivity_test {
namespace {

Setting RandomStart(Eigen::Index n, int64_t slots, double bandwidth, double alpha, unsigned seed) {
  return Setting(Adversary(seed).Normal(n, 2), bandwidth, alpha, slots);
}

// Replaces the target of slot 0 by one of slot 1 in a cloud that is as bad as it gets: anchors at
// one point, targets at that point and opposite to it. n, bandwidth and alpha vary.
TEST(ReplaceTarget, JumpsBetweenPolesDoNotExceedBound) {
  double closest = 0;
  double closest_in_l1 = 0;
  for (const Eigen::Index n : {2, 3, 5, 12}) {
    for (const double bandwidth : {.4, 1.0, 6.0}) {
      for (const double alpha : {0.0, .6, 30.0}) {
        for (unsigned seed = 1; seed <= 6; ++seed) {
          const Setting c = RandomStart(n, 2, bandwidth, alpha, seed);
          ASSERT_OK_AND_ASSIGN(const double bound,
                               ReplaceTargetSensitivity(c.Inputs(), 2, Norm::kL2));
          Matrix one = Matrix::Zero(n, 3);
          one.col(0).setOnes();
          Matrix two = one;
          one(0, 0) = -1;
          two(1, 0) = -1;
          const Matrix move = c.Iterate(one) - c.Iterate(two);
          const double moved = move.norm();
          const double in_l1 =
              move.cwiseAbs().sum() / *ReplaceTargetSensitivity(c.Inputs(), 2, Norm::kL1);
          EXPECT_LE(in_l1, 1);
          closest_in_l1 = std::max(closest_in_l1, in_l1);
          EXPECT_LE(moved, bound) << "n " << n << " bandwidth " << bandwidth << " alpha " << alpha;
          closest = std::max(closest, moved / bound);
        }
      }
    }
  }
  RecordProperty("closest", std::to_string(closest));
  RecordProperty("closest_in_l1", std::to_string(closest_in_l1));
  EXPECT_GT(closest, .3) << "the search is too weak to show anything";
}

TEST(ReplaceTarget, BadInputsAreNamed) {
  const Setting c = RandomStart(10, 2, 1, .6, 1);
  IterationInputs inputs = c.Inputs();
  for (const double tiny : {1e-3, 4 / 345.5}) {  // affinities of 0 and of 9e-151
    inputs.kernel_denominator = tiny;
    EXPECT_THAT(ReplaceTargetSensitivity(inputs, 2, Norm::kL2),
                FailsWith(kFailedPrecondition, "expected at least 1e-150"));
  }
  inputs.kernel_denominator = 2;
  inputs.alpha = std::nan("");
  EXPECT_THAT(ReplaceTargetSensitivity(inputs, 2, Norm::kL2), FailsWith(kInvalid, "alpha"));
  inputs.alpha = 1e308;
  EXPECT_THAT(ReplaceTargetSensitivity(inputs, 2, Norm::kL2), FailsWith(kInvalid, "alpha"));
  inputs.alpha = 1;
  inputs.kernel_denominator = 1e200;
  EXPECT_THAT(ReplaceTargetSensitivity(inputs, 2, Norm::kL2),
              FailsWith(kInvalid, "kernel denominator"));
  inputs.kernel_denominator = 2;
  EXPECT_THAT(ReplaceTargetSensitivity(inputs, 3, Norm::kL2), FailsWith(kInvalid, "changed_rows"));
  inputs.slots = 11;
  EXPECT_THAT(ReplaceTargetSensitivity(inputs, 2, Norm::kL2), FailsWith(kInvalid, "slots"));
}

// Squares of such a start vanish, and with them the noise: refused, not bounded.
TEST(ReplaceTarget, StartWithUnderflowingSquaresIsRefused) {
  for (const double scale : {4.5e-163, 1e-101, 1e200}) {
    const Setting c = RandomStart(10, 2, 1, .6, 1);
    const Matrix start = scale * c.start;
    IterationInputs inputs{
        .start = start, .label_graph = c.graph, .alpha = .6, .kernel_denominator = 2, .slots = 2};
    for (const auto& bound : {ReplaceTargetSensitivity(inputs, 2, Norm::kL2),
                              ReplaceTargetSensitivity(inputs, 2, Norm::kL1),
                              LargestIterateValue(inputs), IterationRoundingError(inputs, 3)}) {
      EXPECT_THAT(bound, FailsWith(kInvalid, "largest value of the start"));
    }
  }
}

// At the ends of what is taken, a bound scales with the start: nothing was lost.
TEST(ReplaceTarget, ScalesWithStart) {
  const Setting c = RandomStart(10, 2, 1, .6, 1);
  ASSERT_OK_AND_ASSIGN(const double bound, ReplaceTargetSensitivity(c.Inputs(), 2, Norm::kL2));
  for (const double scale : {1e-99, 1e98}) {
    const Matrix start = scale * c.start;
    const IterationInputs inputs{
        .start = start, .label_graph = c.graph, .alpha = .6, .kernel_denominator = 2, .slots = 2};
    EXPECT_NEAR(*ReplaceTargetSensitivity(inputs, 2, Norm::kL2) / scale / bound, 1, 1e-12);
  }
}

TEST(LargestIterateValue, BoundsEveryEntry) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const Setting c = RandomStart(30, 3, .5, 20, seed);
    EXPECT_LE(c.Iterate(Adversary(seed).UnitRows(30, 4)).cwiseAbs().maxCoeff(),
              *LargestIterateValue(c.Inputs()));
  }
}

// The average of rows that all start at 1 is 1 for all features.
TEST(LargestIterateValue, StartOfOnesReachesBound) {
  for (const Eigen::Index n : {2, 30}) {
    const Setting c(Matrix::Ones(n, 1), 1, 0, 2);
    const double reached = c.Iterate(Adversary(1).UnitRows(n, 3)).maxCoeff();
    ASSERT_OK_AND_ASSIGN(const double bound, LargestIterateValue(c.Inputs()));
    EXPECT_NEAR(reached, 1, 1e-14);
    EXPECT_GE(bound, reached);
    EXPECT_NEAR(bound, reached, 1e-11);
  }
}

// Two opposite rows: the pull of a heavy label graph is divided by the smallest degree there is.
TEST(LargestIterateValue, HeavyLabelGraphReachesBound) {
  const Setting c(Matrix{{1}, {0}}, 1, 1e6, 2, LabelGraphKind::kOneHotKernel);
  const double reached = c.Iterate(Matrix{{1}, {-1}}).cwiseAbs().maxCoeff();
  ASSERT_OK_AND_ASSIGN(const double bound, LargestIterateValue(c.Inputs()));
  EXPECT_GE(bound, reached);
  EXPECT_LE(bound, reached * (1 + 1e-5));
}

}  // namespace
}  // namespace privatemail::client::sensitivity_test
