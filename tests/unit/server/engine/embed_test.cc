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

TEST(Embed, CoincidingAnchorsReturnFailedPrecondition) {
  StoredCollection collection = SmallCollection("fruit");
  // With a weak label graph this many steps make all rows equal.
  collection.parameters.settings.steps = 3000;
  EXPECT_THAT(Embed(collection.parameters, collection.anchors, SmallGallery(9), nullptr),
              FailsWith(kFailedPrecondition, "alignment refused"));
}

// Small enough for the exact operator and large enough for the factored one. The oracle iterates
// with the exact one; tests of its own hold it and the label graph against their definitions.
TEST(Embed, GalleryThenAnchorsStayWithinToleranceOfExactIteration) {
  StoredCollection collection = SmallCollection("fruit");
  EmbeddingSettings& settings = collection.parameters.settings;
  settings.kernel_bandwidth = 6;
  for (const auto& [items, plan, tolerance] : {
           std::tuple(20, "tiled: ", 1e-12),
           std::tuple(4000, "factored, degree 2: proven relative error",
                      settings.steps * kEmbeddingTolerance),
       }) {
    const Gallery gallery = SmallGallery(items);
    ASSERT_OK_AND_ASSIGN(const Embedding embedded,
                         Embed(collection.parameters, collection.anchors, gallery, nullptr));
    EXPECT_THAT(embedded.plan, ::testing::HasSubstr(plan));
    EXPECT_EQ(embedded.ids, gallery.ids);
    EXPECT_EQ(embedded.labels, gallery.labels);
    const Eigen::Index n = items + 12;
    Matrix rows(n, kDim);
    rows << *UnitRows("items", gallery.features), *UnitRows("anchors", collection.anchors.features);
    const std::vector<int32_t> labels = AllLabels(gallery, collection.anchors);
    const TiledAffinity affinity(rows, 72);
    const LabelGraph label_graph(labels, settings.label_graph, 72);
    Vector degrees;
    ASSERT_OK_AND_ASSIGN(
        const Matrix exact,
        SmlqIterate(DeterministicStart(Fingerprint(collection.parameters), n, 2, 1e-8), affinity,
                    label_graph, settings.alpha, settings.steps, settings.normalise, nullptr,
                    &degrees));
    ASSERT_OK_AND_ASSIGN(const double objective,
                         SmlqObjective(exact, affinity, degrees, label_graph, settings.alpha));
    Matrix joined(n, 2);
    joined << embedded.coordinates, embedded.anchor_coordinates;
    EXPECT_LT((joined - exact).norm(), tolerance * exact.norm());
    EXPECT_NEAR(embedded.objective, objective, tolerance * std::abs(objective));
  }
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
