#include "client/baselines/ppca.h"

#include "tests/unit/client/baselines/baselines_fixture.h"

namespace privatemail::client::baselines {
namespace {

Matrix Diagonal(const nlohmann::json& values) {
  const std::vector<double> diagonal = values;
  return Vector::Map(diagonal.data(), static_cast<Eigen::Index>(diagonal.size())).asDiagonal();
}

TEST(Bingham, OnTheSphereHasTheIntegratedMomentsInAnyFrame) {
  // The law turns with its matrix.
  Matrix turn(3, 3);
  turn << 2, -1, 2, 2, 2, -1, -1, 2, 2;
  turn /= 3;
  const Matrix b = turn.transpose() * Diagonal(Golden()["bingham"]["sphere_diagonal"]) * turn;
  const std::vector<double> expected = Golden()["bingham"]["sphere_squares"];
  SeededBits bits(2);
  constexpr int kDraws = 20'000;
  Vector squares = Vector::Zero(3);
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_OK_AND_ASSIGN(const RowVector v, SampleBingham(b, bits));
    squares += (turn * v.transpose()).cwiseAbs2() / kDraws;
  }
  // A value between 0 and 1 varies by at most a half.
  for (Eigen::Index i = 0; i < 3; ++i) {
    EXPECT_NEAR(squares(i), expected[static_cast<size_t>(i)], kDeviations * .5 / std::sqrt(kDraws));
  }
}

TEST(Bingham, PlanesOfThreeDimensionsAreDrawnLikeTheirNormals) {
  const Matrix b = Diagonal(Golden()["matrix_bingham"]["diagonal"]);
  const std::vector<double> expected = Golden()["matrix_bingham"]["projection_diagonal"];
  SeededBits bits(3);
  constexpr int kDraws = 4000;
  Vector projection = Vector::Zero(3);
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_OK_AND_ASSIGN(const Matrix v, SampleMatrixBingham(b, 2, 10, bits));
    ASSERT_LE((v.transpose() * v - Matrix::Identity(2, 2)).norm(), 1e-12);
    projection += (v * v.transpose()).diagonal() / kDraws;
  }
  for (Eigen::Index i = 0; i < 3; ++i) {
    EXPECT_NEAR(projection(i), expected[static_cast<size_t>(i)],
                kDeviations * .5 / std::sqrt(kDraws));
  }
}

TEST(PublishedPpca, RanksAsScikitLearnsUnderVanishingNoise) {
  SeededBits bits(4);
  ASSERT_OK_AND_ASSIGN(
      const BaselineResult result,
      PublishedPpca(GoldenSplitWithCopies(10'000), {.dimension = 2}, {.epsilon = 1e6}, bits));
  const Matrix expected = MatrixFrom(Golden()["principal_components"]["truncated_svd"]);
  const Matrix actual = Distances(result.targets, result.gallery.topRows(expected.cols()));
  EXPECT_LE((actual - expected).cwiseAbs().maxCoeff(), 1e-4);
}

TEST(PublishedPpca, WeighsTheScoreByHalfOfEpsilon) {
  // Four rows on one axis and two on the other: exp(epsilon / 2 (4 c^2 + 2 s^2)) on the circle, the
  // weight of cos 2 theta is epsilon / 2.
  const double epsilon = 2 * Golden()["bingham"]["circle_weight"].get<double>();
  Matrix rows(6, 2);
  rows << 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1;
  SeededBits bits(5);
  constexpr int kDraws = 20'000;
  double cosine = 0;
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_OK_AND_ASSIGN(const Matrix v,
                         DrawPublishedSubspace(rows, {.dimension = 1}, {.epsilon = epsilon}, bits));
    cosine += (v(0) * v(0) - v(1) * v(1)) / kDraws;
  }
  EXPECT_NEAR(cosine, Golden()["bingham"]["circle_cosine"], kDeviations / std::sqrt(kDraws));
}

TEST(CandidatePpca, WeighsTheScoreByHalfOfEpsilon) {
  Matrix rows(3, 2);
  rows << 1, 0, 1, 0, 0, 1;
  const std::vector<Matrix> axes = {Matrix::Identity(2, 2).col(0), Matrix::Identity(2, 2).col(1)};
  SeededBits bits(6);
  constexpr int kDraws = 40'000;
  double first = 0;
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_OK_AND_ASSIGN(const int64_t chosen, ChooseSubspace(rows, axes, {.epsilon = 3}, bits));
    first += chosen == 0 ? 1. / kDraws : 0;
  }
  EXPECT_NEAR(first, 1 / (1 + std::exp(-1.5)), kDeviations * .5 / std::sqrt(kDraws));
}

// Samples of four thousand anchors that are the gallery itself have nearly its axes.
TEST(CandidatePpca, RanksAsScikitLearnsUnderVanishingNoiseWhereAnchorsAreTheGallery) {
  DataSplit split = GoldenSplitWithCopies(1000);
  split.anchors = split.gallery;
  SeededBits bits(7);
  ASSERT_OK_AND_ASSIGN(
      const BaselineResult result,
      CandidatePpca(split, {.dimension = 2, .candidates = 64, .anchors_each = 4000},
                    {.epsilon = 100}, bits));
  const Matrix expected = MatrixFrom(Golden()["principal_components"]["truncated_svd"]);
  const Matrix actual = Distances(result.targets, result.gallery.topRows(expected.cols()));
  EXPECT_LE((actual - expected).cwiseAbs().maxCoeff(), .02);
}

TEST(Ppca, InvalidOptionReturnsInvalidArgument) {
  SeededBits bits(9);
  EXPECT_THAT(PublishedPpca(GoldenSplit(), {.sweeps = 0}, {.epsilon = 1}, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "sweeps"));
  EXPECT_THAT(CandidatePpca(GoldenSplit(), {.anchors_each = 25}, {.epsilon = 1}, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "anchors_each"));
  EXPECT_THAT(CandidatePpca(GoldenSplit(), {.candidates = 0}, {.epsilon = 1}, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "candidates"));
}

}  // namespace
}  // namespace privatemail::client::baselines
