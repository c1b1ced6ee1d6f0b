#include "client/baselines/tsne.h"

#include "client/privacy/mechanisms/additive_mechanism.h"
#include "common/numerics/neighbors.h"
#include "tests/unit/client/baselines/baselines_fixture.h"

namespace privatemail::client::baselines {
namespace {

const nlohmann::json& TsneGolden() { return Golden()["tsne"]; }

GradientFn GoldenGradient() {
  return [affinity = MatrixFrom(TsneGolden()["affinity"])](
             double exaggeration, const Matrix& at) -> absl::StatusOr<Matrix> {
    return TsneGradient(affinity, exaggeration, at);
  };
}

// Scikit-learn's are in single precision and stop at 1e-5 of the entropy.
TEST(TsneAffinity, IsScikitLearns) {
  ASSERT_OK_AND_ASSIGN(const Matrix affinity,
                       TsneAffinity(JointRows(GoldenSplit()), TsneGolden()["perplexity"]));
  const Matrix expected = MatrixFrom(TsneGolden()["affinity"]);
  EXPECT_LE((affinity - expected).norm(), 1e-4 * expected.norm());
  EXPECT_EQ(affinity, Matrix(affinity.transpose()));
  EXPECT_NEAR(affinity.sum(), 1, 1e-9);
  EXPECT_EQ(affinity.diagonal().cwiseAbs().maxCoeff(), 0);
}

// Corners of a simplex are all equally far apart: no bandwidth has the perplexity, and all give
// equal shares.
TEST(TsneAffinity, OfASimplexIsUniform) {
  ASSERT_OK_AND_ASSIGN(const Matrix affinity, TsneAffinity(Matrix::Identity(6, 6), 2));
  for (Eigen::Index i = 0; i < 6; ++i) {
    for (Eigen::Index j = 0; j < 6; ++j) {
      EXPECT_NEAR(affinity(i, j), i == j ? 0 : 1. / 30, 1e-12);
    }
  }
}

// Two pairs far apart: a perplexity of e^H with H the entropy of (p, (1-p)/2, (1-p)/2) gives the
// partner exactly p.
TEST(TsneAffinity, HasThePerplexityThatWasAskedFor) {
  Matrix rows(4, 3);
  rows << 1, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 2;
  const double p = .8;
  const double entropy = -p * std::log(p) - (1 - p) * std::log((1 - p) / 2);
  // Squared distances: 0-1 and 2-3: 2; 0-2 and 1-2: 5; 0-3 and 1-3: 5.
  ASSERT_OK_AND_ASSIGN(const Matrix affinity, TsneAffinity(rows, std::exp(entropy)));
  EXPECT_NEAR(affinity(0, 1), p / 4, 1e-9);
  EXPECT_NEAR(affinity(2, 3), p / 4, 1e-9);
  EXPECT_NEAR(affinity(0, 2), (1 - p) / 8, 1e-9);
}

TEST(TsneAffinity, WhatIsWrongIsNamed) {
  EXPECT_THAT(TsneAffinity(Matrix::Identity(5, 5), 4),
              FailsWith(absl::StatusCode::kInvalidArgument, "perplexity"));
  EXPECT_THAT(TsneAffinity(Matrix::Identity(5, 5), std::nan("")),
              FailsWith(absl::StatusCode::kInvalidArgument, "perplexity"));
  EXPECT_THAT(TsneAffinity(Matrix::Identity(2, 2), 1.5),
              FailsWith(absl::StatusCode::kInvalidArgument, "rows to embed"));
}

TEST(Tsne, GradientAndDivergenceAreScikitLearns) {
  const Matrix affinity = MatrixFrom(TsneGolden()["affinity"]);
  const Matrix at = MatrixFrom(TsneGolden()["at"]);
  ExpectSame(TsneGradient(affinity, 1, at), MatrixFrom(TsneGolden()["gradient"]));
  ExpectSame(TsneGradient(affinity, 12, at), MatrixFrom(TsneGolden()["exaggerated"]));
  ExpectSame(TsneDivergence(affinity, at), TsneGolden()["divergence"]);
}

TEST(Tsne, DescendsAsScikitLearnInBothPhases) {
  const Matrix start = MatrixFrom(TsneGolden()["near"]);
  TsneOptions options{.early_iterations = 15,
                      .late_iterations = 0,
                      .exaggeration = 12,
                      .learning_rate = TsneGolden()["learning_rate"]};
  ASSERT_OK_AND_ASSIGN(const Matrix early, DescendTsne(start, options, GoldenGradient()));
  ExpectSame(early, MatrixFrom(TsneGolden()["early"]));
  options.late_iterations = 25;
  ASSERT_OK_AND_ASSIGN(const Matrix late, DescendTsne(start, options, GoldenGradient()));
  ExpectSame(late, MatrixFrom(TsneGolden()["late"]));
}

// Three tight groups of 15 gallery rows and 2 targets each.
TEST(Tsne, PutsTargetsAmongTheirOwn) {
  DataSplit split;
  split.gallery = Unlabelled(Matrix::Identity(3, 3).replicate(15, 1));
  split.targets = Unlabelled(Matrix::Identity(3, 3).replicate(2, 1));
  SeededBits bits(1);
  ASSERT_OK_AND_ASSIGN(const Matrix jitter, NormalStart(51, 3, .05, bits));
  split.gallery.features += jitter.topRows(45);
  split.targets.features += jitter.bottomRows(6);
  ASSERT_OK_AND_ASSIGN(const BaselineResult result, Tsne(split, {.perplexity = 8}, bits));
  ASSERT_EQ(result.gallery.rows(), 45);
  const auto nearest = NearestRows(result.targets, result.gallery, 10);
  for (size_t target = 0; target < nearest.size(); ++target) {
    for (const Neighbor& neighbor : nearest[target]) {
      EXPECT_EQ(neighbor.row % 3, static_cast<int64_t>(target % 3));
    }
  }
}

TEST(Tsne, IsTheSameForTheSameBits) {
  const TsneOptions options{.perplexity = 8, .early_iterations = 20, .late_iterations = 20};
  SeededBits one(1);
  SeededBits same(1);
  SeededBits other(2);
  ASSERT_OK_AND_ASSIGN(const BaselineResult first, Tsne(GoldenSplit(), options, one));
  EXPECT_EQ(Tsne(GoldenSplit(), options, same)->gallery, first.gallery);
  EXPECT_NE(Tsne(GoldenSplit(), options, other)->gallery, first.gallery);
}

TEST(Tsne, WhatIsWrongIsNamed) {
  SeededBits bits(1);
  for (const auto& [options, field] : std::vector<std::pair<TsneOptions, std::string>>{
           {{.perplexity = 29}, "perplexity"},
           {{.early_iterations = -1}, "early_iterations"},
           {{.late_iterations = 100'001}, "late_iterations"},
           {{.exaggeration = std::nan("")}, "exaggeration"},
           {{.learning_rate = -1}, "learning_rate"},
           {{.start_stddev = 0}, "start_stddev"},
           {{.dimension = 6}, "dimension"}}) {
    EXPECT_THAT(Tsne(GoldenSplit(), options, bits),
                FailsWith(absl::StatusCode::kInvalidArgument, field));
  }
  EXPECT_THAT(CheckTsne({}, kMostTsneRows + 1),
              FailsWith(absl::StatusCode::kInvalidArgument, "rows to embed"));
}

TEST(LastTsneAffinity, IsThatOfTheRowsAndPerplexityAskedForAndComputedOnceForEach) {
  const Matrix rows = GoldenSplit().gallery.features;
  const Matrix others = rows.colwise().reverse();
  LastTsneAffinity last;
  ASSERT_OK_AND_ASSIGN(const auto first, last.Of(rows, 5));
  EXPECT_EQ(*last.Of(rows, 5), first);
  EXPECT_EQ(*first, *TsneAffinity(rows, 5));
  EXPECT_EQ(**last.Of(others, 5), *TsneAffinity(others, 5));
  EXPECT_EQ(**last.Of(others, 6), *TsneAffinity(others, 6));
  EXPECT_THAT(last.Of(rows, 0), FailsWith(absl::StatusCode::kInvalidArgument, "perplexity"));
}

}  // namespace
}  // namespace privatemail::client::baselines
