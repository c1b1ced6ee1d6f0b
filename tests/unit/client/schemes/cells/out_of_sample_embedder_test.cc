#include "privatemail/out_of_sample_embedder.h"

#include <cmath>
#include <limits>

#include "common/base/validate.h"
#include "common/embedding/alignment.h"
#include "common/embedding/label_graph.h"
#include "common/embedding/smlq.h"
#include "common/embedding/tiled_affinity.h"
#include "tests/testing/release_inputs.h"

namespace privatemail::client::out_of_sample_embedder_test {
namespace {

constexpr int kClasses = 4;
constexpr int kDim = 6;

EmbeddingSettings Settings() {
  EmbeddingSettings settings;
  settings.kernel_bandwidth = 1;
  settings.alpha = 2;
  settings.steps = 4;
  return settings;
}

struct Scene {
  Anchors anchors;
  PublicParameters parameters;
  Matrix units;
  // y = 3 x R + t, R by 60 degrees.
  Similarity to_server{.scale = 3, .rotation = Matrix(2, 2), .translation = RowVector(2)};

  explicit Scene(int rows = 24, const EmbeddingSettings& settings = Settings())
      : anchors(LeaningAnchors(kClasses, rows, kDim)),
        parameters(*MakePublicParameters(kUuid, settings, anchors, {}, "vectors")),
        units(*UnitRows("anchors", anchors.features)) {
    to_server.rotation << .5, std::sqrt(.75), -std::sqrt(.75), .5;
    to_server.translation << 3, -1;
  }

  absl::StatusOr<OutOfSampleEmbedder> Placer(const Matrix& server) const {
    return OutOfSampleEmbedder::Create(parameters, units, anchors.labels, server);
  }
};

RowVector UnitTarget(unsigned seed) {
  return NormalRows(1, kDim, seed).row(0).cast<double>().normalized();
}

struct Dense {
  Matrix anchors;
  RowVector target;  // one more row that does not move them
};

// PRIVACY.md section 1 by its definitions, element by element.
Dense DenseEmbedding(const Scene& scene, const RowVector& target, int32_t label) {
  const EmbeddingSettings& s = scene.parameters.settings;
  const Eigen::Index n = scene.units.rows();
  const double c = 2 * s.kernel_bandwidth * s.kernel_bandwidth;
  const Matrix w = Matrix::NullaryExpr(n, n, [&](Eigen::Index i, Eigen::Index j) {
    return i == j ? 0. : std::exp(-(scene.units.row(i) - scene.units.row(j)).squaredNorm() / c);
  });
  const Matrix distance = Matrix::NullaryExpr(n, n, [&](Eigen::Index i, Eigen::Index j) {
    return std::abs(static_cast<double>(scene.anchors.labels[i] - scene.anchors.labels[j]));
  });
  const Matrix centring = Matrix::Identity(n, n) - Matrix::Constant(n, n, 1. / double(n));
  const Matrix a = -.5 * centring * distance * centring;
  const auto like = std::find(scene.anchors.labels.begin(), scene.anchors.labels.end(), label) -
                    scene.anchors.labels.begin();
  Dense dense{.anchors = DeterministicStart(Fingerprint(scene.parameters), n, s.embedding_dim,
                                            s.start_stddev),
              .target = RowVector::Zero(s.embedding_dim)};
  for (int step = 0; step < s.steps; ++step) {
    Matrix next = dense.anchors;
    for (Eigen::Index i = 0; i < n; ++i) {
      RowVector pull = RowVector::Zero(s.embedding_dim);
      for (Eigen::Index j = 0; j < n; ++j) {
        pull += (w(i, j) - s.alpha * a(i, j)) * dense.anchors.row(j);
      }
      pull += s.alpha * a.row(i).sum() * dense.anchors.row(i);
      next.row(i) = .5 * (pull / w.row(i).sum() + dense.anchors.row(i));
    }
    RowVector pull = s.alpha * a.row(like).sum() * dense.target;
    double degree = 0;
    for (Eigen::Index j = 0; j < n; ++j) {
      const double near = std::exp(-(target - scene.units.row(j)).squaredNorm() / c);
      degree += near;
      pull += (near - s.alpha * a(like, j)) * dense.anchors.row(j);
    }
    const double scale = std::sqrt(double(n)) / next.norm();
    dense.target = scale * .5 * (pull / degree + dense.target);
    dense.anchors = scale * next;
  }
  return dense;
}

TEST(OutOfSampleEmbedder, EmbedEqualsDenseDefinition) {
  const Scene scene;
  for (const int32_t label : {0, 10, 30}) {
    for (const unsigned seed : {7U, 8U}) {
      const RowVector target = UnitTarget(seed);
      const Dense dense = DenseEmbedding(scene, target, label);
      ASSERT_OK_AND_ASSIGN(const OutOfSampleEmbedder placer,
                           scene.Placer(scene.to_server.Apply(dense.anchors)));
      EXPECT_LT(placer.expected_alignment().relative_residual, 1e-5);
      ASSERT_OK_AND_ASSIGN(const RowVector place, placer.Embed(target, label));
      const RowVector expected = scene.to_server.Apply(Matrix(dense.target)).row(0);
      EXPECT_LT((place - expected).norm(), 1e-5 * expected.norm()) << label << " " << seed;
    }
  }
}

// Among many anchors one more row hardly moves the others.
TEST(OutOfSampleEmbedder, EmbedIsNearAnInSampleRow) {
  const Scene scene(400);
  const EmbeddingSettings& s = scene.parameters.settings;
  const RowVector target = UnitTarget(7);
  Matrix rows(401, kDim);
  rows << scene.units, target;
  std::vector<int32_t> labels = scene.anchors.labels;
  labels.push_back(20);
  Matrix start = Matrix::Zero(401, 2);
  start.topRows(400) = DeterministicStart(Fingerprint(scene.parameters), 400, 2, s.start_stddev);
  const LabelGraph label_graph(labels, s.label_graph, s.KernelDenominator());
  const TiledAffinity feature_graph(rows, s.KernelDenominator());
  ASSERT_OK_AND_ASSIGN(const Matrix embedded, SmlqIterate(start, feature_graph, label_graph,
                                                          s.alpha, s.steps, s.normalise));
  ASSERT_OK_AND_ASSIGN(const OutOfSampleEmbedder placer, scene.Placer(embedded.topRows(400)));
  ASSERT_OK_AND_ASSIGN(const RowVector place, placer.Embed(target, 20));
  EXPECT_LT((place - embedded.row(400)).norm(), .02) << "the spread is about 1";
  ASSERT_OK_AND_ASSIGN(const RowVector elsewhere, placer.Embed(target, 0));
  EXPECT_GT((elsewhere - embedded.row(400)).norm(), .2) << "depends on the class";
}

TEST(OutOfSampleEmbedder, GuessLabelReturnsClassOfNearestMean) {
  const Scene scene;
  ASSERT_OK_AND_ASSIGN(const OutOfSampleEmbedder placer, scene.Placer(Matrix::Random(24, 2)));
  for (int c = 0; c < kClasses; ++c) {
    EXPECT_EQ(placer.GuessLabel(RowVector::Unit(kDim, c)), 10 * c);
  }
}

TEST(OutOfSampleEmbedder, InvalidInputsReturnError) {
  const Scene scene;
  EXPECT_THAT(scene.Placer(Matrix::Random(23, 2)), FailsWith(kInvalid, "24 x 2 and 23 x 2"));
  EXPECT_THAT(scene.Placer(Matrix::Random(24, 3)), FailsWith(kInvalid, "24 x 2 and 24 x 3"));
  Matrix line = Matrix::Random(24, 2);
  line.col(1) = line.col(0);
  EXPECT_THAT(scene.Placer(line), FailsWith(kFailedPrecondition, "residual"));
  std::vector<int32_t> labels = scene.anchors.labels;
  labels[2] = 77;
  const Matrix server = Matrix::Random(24, 2);
  EXPECT_THAT(OutOfSampleEmbedder::Create(scene.parameters, scene.units, labels, server),
              FailsWith(kInvalid, "anchors row 2: label must be one of"));
  labels.assign(24, 10);
  EXPECT_THAT(OutOfSampleEmbedder::Create(scene.parameters, scene.units, labels, server),
              FailsWith(kInvalid, "hold none of 0"));
  labels.pop_back();
  EXPECT_THAT(OutOfSampleEmbedder::Create(scene.parameters, scene.units, labels, server),
              FailsWith(kInvalid, "anchors must have one label a row, but have 24 rows and 23"));
  EmbeddingSettings large = Settings();
  large.embedding_dim = 1000;
  large.steps = 10'000;
  const Scene too_large(1004, large);
  EXPECT_THAT(too_large.Placer(Matrix::Random(1004, 1000)),
              FailsWith(absl::StatusCode::kResourceExhausted,
                        "anchors x embedding_dim x steps must be at most 134217728"));

  ASSERT_OK_AND_ASSIGN(const OutOfSampleEmbedder placer, scene.Placer(server));
  EXPECT_THAT(placer.Embed(UnitTarget(7), 77), FailsWith(kInvalid, "label must be one of"));
  EXPECT_THAT(placer.Embed(RowVector::Unit(5, 0), 0),
              FailsWith(kInvalid, "query has the wrong dimension: expected 6, got 5"));
}

// A failure would tell the server, who chose the settings, how near the target is to an anchor.
TEST(OutOfSampleEmbedder, ExtremeSettingsFailForNoTarget) {
  EmbeddingSettings extreme = Settings();
  extreme.kernel_bandwidth = 1e-3;
  extreme.alpha = 1e9;
  const Scene scene(24, extreme);
  ASSERT_OK_AND_ASSIGN(const OutOfSampleEmbedder placer, scene.Placer(Matrix::Random(24, 2)));
  RowVector near = scene.units.row(3);
  near[5] += .0375;  // a degree near the smallest number
  ASSERT_OK_AND_ASSIGN(const RowVector place, placer.Embed(near.normalized(), 0));
  EXPECT_EQ(place, RowVector::Constant(2, std::numeric_limits<double>::infinity()));
  ASSERT_OK_AND_ASSIGN(const RowVector far, placer.Embed(-scene.units.row(3), 0));
  EXPECT_TRUE(far.allFinite());
}

}  // namespace
}  // namespace privatemail::client::out_of_sample_embedder_test
