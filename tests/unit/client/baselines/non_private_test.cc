#include "client/baselines/baseline.h"
#include "client/baselines/linear_baselines.h"
#include "common/numerics/neighbors.h"
#include "tests/unit/client/baselines/baselines_fixture.h"

namespace privatemail::client::baselines {
namespace {

TEST(Features, AreRankedAsTheyAreAndPromiseNothing) {
  const DataSplit split = GoldenSplit();
  ASSERT_OK_AND_ASSIGN(const BaselineResult result, Features(split));
  EXPECT_EQ(result.gallery, split.gallery.features);
  EXPECT_EQ(result.targets, split.targets.features);
  EXPECT_TRUE(std::isinf(result.guarantee.epsilon));
}

TEST(Pca, RanksAsScikitLearns) {
  ASSERT_OK_AND_ASSIGN(const BaselineResult result, Pca(GoldenSplit(), {.dimension = 2}));
  ExpectSame(Distances(result.targets, result.gallery),
             MatrixFrom(Golden()["principal_components"]["pca"]));
}

TEST(PrincipalAxes, ComeHeaviestFirst) {
  const Matrix weights = RowVector{{1, 3, 2}}.asDiagonal();
  ASSERT_OK_AND_ASSIGN(const Matrix axes, PrincipalAxes(weights, 2));
  EXPECT_NEAR(std::abs(axes(1, 0)), 1, 1e-12);
  EXPECT_NEAR(std::abs(axes(2, 1)), 1, 1e-12);
  EXPECT_THAT(PrincipalAxes(Matrix::Constant(2, 2, std::nan("")), 1),
              FailsWith(absl::StatusCode::kInvalidArgument, "finite"));
}

TEST(Pca, OfEveryDimensionKeepsAllDistances) {
  const DataSplit split = GoldenSplit();
  ASSERT_OK_AND_ASSIGN(const BaselineResult result, Pca(split, {.dimension = 5}));
  ExpectSame(Distances(result.targets, result.gallery),
             Distances(split.targets.features, split.gallery.features));
}

TEST(RandomGuess, DoesNotLookAtTheFeatures) {
  DataSplit split = GoldenSplit();
  SeededBits bits(1);
  ASSERT_OK_AND_ASSIGN(const BaselineResult one, RandomGuess(split, bits));
  split.gallery.features.setConstant(.5);
  split.targets.features.setConstant(-.5);
  SeededBits same_bits(1);
  ASSERT_OK_AND_ASSIGN(const BaselineResult other, RandomGuess(split, same_bits));
  EXPECT_EQ(one.gallery, other.gallery);
  EXPECT_EQ(one.targets, other.targets);
  EXPECT_EQ(one.guarantee.epsilon, 0);
  EXPECT_THAT(Validate(one.guarantee), IsOk());
}

TEST(RandomGuess, ReachesTheHypergeometricRecall) {
  const nlohmann::json& golden = Golden()["random_guess"];
  const std::vector<int32_t> gallery_labels = golden["gallery_labels"];
  const std::vector<int32_t> target_labels = golden["target_labels"];
  const int64_t k = golden["k"];
  const double expected = golden["recall"];
  ASSERT_OK_AND_ASSIGN(const double recall, RandomGuessRecall(gallery_labels, target_labels, k));
  ExpectSame(recall, expected);

  DataSplit split;
  split.gallery = {Matrix::Ones(10, 3), gallery_labels};
  split.targets = {Matrix::Ones(5, 3), target_labels};
  SeededBits bits(2);
  constexpr int kRuns = 4000;
  double hits = 0;
  for (int run = 0; run < kRuns; ++run) {
    ASSERT_OK_AND_ASSIGN(const BaselineResult result, RandomGuess(split, bits));
    const auto nearest = NearestRows(result.targets, result.gallery, k);
    for (size_t i = 0; i < nearest.size(); ++i) {
      hits += std::any_of(nearest[i].begin(), nearest[i].end(), [&](const Neighbor& neighbor) {
        return gallery_labels[static_cast<size_t>(neighbor.row)] == target_labels[i];
      });
    }
  }
  // The five of a run share the gallery: a run's mean varies by at most a half.
  EXPECT_NEAR(hits / (5 * kRuns), expected, kDeviations * .5 / std::sqrt(kRuns));
}

TEST(RandomGuess, MoreDrawsThanOtherRowsCannotMiss) {
  ASSERT_OK_AND_ASSIGN(const double recall, RandomGuessRecall({0, 0, 1}, {0}, 2));
  EXPECT_EQ(recall, 1);
  EXPECT_THAT(RandomGuessRecall({0}, {0}, 2), FailsWith(absl::StatusCode::kInvalidArgument, "k"));
  EXPECT_THAT(RandomGuessRecall({0}, {}, 1),
              FailsWith(absl::StatusCode::kInvalidArgument, "targets"));
}

TEST(Split, WhatIsWrongIsNamed) {
  DataSplit split = GoldenSplit();
  EXPECT_THAT(Pca(split, {.dimension = 6}),
              FailsWith(absl::StatusCode::kInvalidArgument, "dimension"));
  split.targets.features.conservativeResize(Eigen::NoChange, 4);
  EXPECT_THAT(Features(split), FailsWith(absl::StatusCode::kInvalidArgument, "targets"));
  split.gallery.features.resize(0, 4);
  EXPECT_THAT(Features(split), FailsWith(absl::StatusCode::kInvalidArgument, "gallery"));
}

}  // namespace
}  // namespace privatemail::client::baselines
