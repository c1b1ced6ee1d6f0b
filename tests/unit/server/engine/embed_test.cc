#include "server/engine/embed.h"

#include <cmath>
#include <filesystem>

#include "common/base/validate.h"
#include "common/embedding/tiled_affinity.h"
#include "server/engine/row_file.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

Gallery SmallGallery(int items) { return GalleryOf(MakeItems(items, 1)); }

std::vector<int32_t> AllLabels(const Gallery& gallery, const Anchors& anchors) {
  std::vector<int32_t> labels = gallery.labels;
  labels.insert(labels.end(), anchors.labels.begin(), anchors.labels.end());
  return labels;
}

struct Dense {
  Matrix z;
  double objective;
};

// PRIVACY.md section 1 by its definitions, n x n and element by element: kernel 2 s^2, label graph
// `distance`, X + 1/2 Diag(L_X)^-1 (alpha L_Y - L_X) X, Frobenius norm sqrt(n) after each step.
Dense DenseEmbedding(const Gallery& gallery, const Anchors& anchors, const EmbeddingSettings& s,
                     Matrix x) {
  const Eigen::Index items = gallery.features.rows();
  const Eigen::Index n = items + anchors.features.rows();
  Matrix rows(n, kDim);
  rows << gallery.features.cast<double>(), anchors.features.cast<double>();
  rows.rowwise().normalize();
  const std::vector<int32_t> labels = AllLabels(gallery, anchors);
  Matrix w = Matrix::Zero(n, n);
  Matrix distance(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j) {
      distance(i, j) = std::abs(labels[i] - labels[j]);
      const double c = 2 * s.kernel_bandwidth * s.kernel_bandwidth;
      if (i != j) w(i, j) = std::exp(-(rows.row(i) - rows.row(j)).squaredNorm() / c);
    }
  }
  const Matrix j = Matrix::Identity(n, n) - Matrix::Constant(n, n, 1.0 / static_cast<double>(n));
  const Matrix a = -0.5 * j * distance * j;
  const Matrix lx = Matrix(w.rowwise().sum().asDiagonal()) - w;
  const Matrix ly = Matrix(a.rowwise().sum().asDiagonal()) - a;
  for (int step = 0; step < s.steps; ++step) {
    const Matrix inverse = lx.diagonal().cwiseInverse().asDiagonal();
    x += 0.5 * inverse * (s.alpha * ly - lx) * x;
    x *= std::sqrt(static_cast<double>(n)) / x.norm();
  }
  return {x, (x.transpose() * lx * x).trace() - s.alpha * (x.transpose() * ly * x).trace()};
}

TEST(Embed, EqualsDefinitionOverGalleryThenAnchors) {
  const StoredCollection collection = SmallCollection("fruit");
  const Gallery gallery = SmallGallery(20);
  const Dense dense =
      DenseEmbedding(gallery, collection.anchors, collection.parameters.settings,
                     DeterministicStart(Fingerprint(collection.parameters), 32, 2, 1e-8));
  ASSERT_OK_AND_ASSIGN(const Embedding embedding,
                       Embed(collection.parameters, collection.anchors, gallery, nullptr));
  EXPECT_LT((embedding.coordinates - dense.z.topRows(20)).norm(), 1e-9);
  EXPECT_LT((embedding.anchor_coordinates - dense.z.bottomRows(12)).norm(), 1e-9);
  EXPECT_NEAR(embedding.objective, dense.objective, 1e-9 * std::abs(dense.objective));
  EXPECT_EQ(embedding.ids, gallery.ids);
  EXPECT_EQ(embedding.labels, gallery.labels);
}

TEST(Embed, CoincidingAnchorsReturnFailedPrecondition) {
  StoredCollection collection = SmallCollection("fruit");
  // With a weak label graph this many steps make all rows equal.
  collection.parameters.settings.steps = 3000;
  EXPECT_THAT(Embed(collection.parameters, collection.anchors, SmallGallery(9), nullptr),
              FailsWith(kFailedPrecondition, "alignment refused"));
}

// Large enough for the factored operator. The oracle iterates with the exact one, which is tested
// against its definition.
TEST(Embed, ApproximationStaysWithinTolerance) {
  StoredCollection collection = SmallCollection("fruit");
  EmbeddingSettings& settings = collection.parameters.settings;
  settings.kernel_bandwidth = 6;
  const Gallery gallery = SmallGallery(4000);
  ASSERT_OK_AND_ASSIGN(const Embedding embedded,
                       Embed(collection.parameters, collection.anchors, gallery, nullptr));
  EXPECT_THAT(embedded.plan, ::testing::HasSubstr("factored, degree 2: proven relative error"));
  Matrix rows(4012, kDim);
  rows << *UnitRows("items", gallery.features), *UnitRows("anchors", collection.anchors.features);
  const std::vector<int32_t> labels = AllLabels(gallery, collection.anchors);
  const auto exact =
      SmlqIterate(DeterministicStart(Fingerprint(collection.parameters), 4012, 2, 1e-8),
                  TiledAffinity(rows, 72), LabelGraph(labels, settings.label_graph, 72),
                  settings.alpha, settings.steps, settings.normalise);
  ASSERT_THAT(exact, IsOk());
  EXPECT_LT((embedded.coordinates - exact->topRows(4000)).norm(),
            settings.steps * kEmbeddingTolerance * exact->norm());
}

TEST(Embed, RowsInFileGiveSameBits) {
  StoredCollection collection = SmallCollection("fruit");
  collection.parameters.settings.kernel_bandwidth = 6;
  for (const int items : {20, 4000}) {
    const Gallery gallery = SmallGallery(items);
    ASSERT_OK_AND_ASSIGN(const Embedding in_memory,
                         Embed(collection.parameters, collection.anchors, gallery, nullptr));
    const TemporaryFolder folder;
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<PointFile> file, PointFile::Create(folder.path(), kDim));
    for (int first = 0; first < items; first += 700) {
      const int rows = std::min(700, items - first);
      ASSERT_THAT(file->Append("items", gallery.features.middleRows(first, rows)), IsOk());
    }
    ASSERT_THAT(file->Append("anchors", collection.anchors.features), IsOk());
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));  // nothing stays behind
    ASSERT_OK_AND_ASSIGN(const EmbeddedRows streamed,
                         EmbedRows(collection.parameters, std::move(file),
                                   AllLabels(gallery, collection.anchors), nullptr));
    EXPECT_EQ(streamed.coordinates.topRows(items), in_memory.coordinates);
    EXPECT_EQ(streamed.coordinates.bottomRows(12), in_memory.anchor_coordinates);
    EXPECT_EQ(streamed.objective, in_memory.objective);
  }
}

TEST(PointFile, InvalidRowsAndFoldersAndReadFailuresAreReturned) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto file, PointFile::Create(folder.path(), 3));
  EXPECT_THAT(file->Append("items", FloatMatrix::Ones(2, 4)),
              FailsWith(kInvalid, "expected 3, got 4"));
  EXPECT_THAT(file->Append("items", FloatMatrix::Zero(2, 3)), FailsWith(kInvalid, "items row 0"));
  EXPECT_EQ(file->rows(), 0);
  EXPECT_THAT(PointFile::Create(folder / "absent", 3), FailsWith(kFailedPrecondition, "absent"));
  ASSERT_THAT(file->Append("items", FloatMatrix::Ones(2, 3)), IsOk());
  Matrix block(3, 3);
  EXPECT_THAT(file->Read(0, &block), FailsWith(kDataLoss, "shorter"));
}

TEST(DeterministicStart, IsNormalWithGivenDeviation) {
  const Matrix start = DeterministicStart("some fingerprint", 100001, 3, 2.5);
  const double n = static_cast<double>(start.size());
  // Seeded, so deterministic; the bound is five standard errors.
  EXPECT_LT(std::abs(start.mean()), 5 * 2.5 / std::sqrt(n));
  EXPECT_NEAR(start.squaredNorm() / n, 6.25, 5 * 6.25 * std::sqrt(2 / n));
  for (const double quantile : {-2.0, -1.0, 0.0, 0.5, 1.5}) {
    const double below = (start.array() < 2.5 * quantile).cast<double>().mean();
    EXPECT_NEAR(below, 0.5 * std::erfc(-quantile / std::sqrt(2)), 5 * 0.5 / std::sqrt(n));
  }
}

TEST(DeterministicStart, DependsOnEveryByteOfFingerprint) {
  const std::string fingerprint(32, '\x80');
  const Matrix start = DeterministicStart(fingerprint, 2, 2, 1);
  EXPECT_EQ(start, DeterministicStart(fingerprint, 2, 2, 1));
  for (size_t i = 0; i < fingerprint.size(); ++i) {
    std::string other = fingerprint;
    other[i] = '\x81';
    EXPECT_NE(start, DeterministicStart(other, 2, 2, 1)) << i;
  }
}

}  // namespace
}  // namespace privatemail::testing
