#include "server/cells/cell_image.h"

#include <cstring>
#include <limits>

#include "server/cells/anchor_training.h"
#include "tests/testing/build_cells.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

constexpr size_t kImageDigestBytes = 32, kImageTableOffset = 72;

struct ImageScene {
  Anchors anchors = SmallAnchors();
  PublicParameters parameters;
  Gallery gallery;

  explicit ImageScene(CellCode code = CellCode::kFloat16, int items = 200)
      : gallery(GalleryOf(MakeItems(items, 1))) {
    gallery.version = 9;
    parameters = *MakePublicParameters("uuid", SmallSettings(), anchors, {}, "vectors",
                                       *PartitionAnchors(anchors.features, {3, 5}), code);
  }

  std::shared_ptr<const CellIndex> Build() const {
    return BuildCells(parameters, anchors, gallery, /*embedding_version=*/6);
  }
  std::string Image() const { return WriteCellImage(parameters, Build()->contents()); }
};

// Every answer to one cell, and to the first two, as bytes.
std::string Answers(const PublicParameters& parameters, const CellIndex& index) {
  std::string answers;
  const auto append = [&](absl::string_view bytes) { absl::StrAppend(&answers, bytes, "\n"); };
  for (int64_t row = 0; row < index.items(); ++row) {
    absl::StrAppend(&answers, index.IdOf(row), " ", index.LabelOf(row), " ");
    append(index.CodeOf(row));
  }
  for (size_t partition = 0; partition < parameters.cell_partitions.size(); ++partition) {
    for (uint32_t cell = 0; cell < parameters.cell_partitions[partition].cells; ++cell) {
      std::vector<uint32_t> cells = {cell};
      if (cell == 0) cells.push_back(1);
      for (const double epsilon : {.1, 4., 32.}) {
        for (const int64_t length : {index.items() / 3, index.items()}) {
          const auto rows =
              index.RowsFor(partition, cells, epsilon, length, [] { return false; }).value();
          append({reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(int32_t)});
        }
      }
    }
  }
  return answers;
}

TEST(CellImage, RestoredIndexGivesEveryAnswerOfTheBuiltOne) {
  for (const ImageScene& scene : {ImageScene(CellCode::kFloat16), ImageScene(CellCode::kScalar8),
                                  ImageScene(CellCode::kFloat16, /*items=*/0)}) {
    const auto built = scene.Build();
    const std::string image = scene.Image();
    EXPECT_EQ(scene.Image(), image) << "equal galleries give equal bytes";
    ASSERT_OK_AND_ASSIGN(CellContents contents, ReadCellImage(scene.parameters, image));
    EXPECT_EQ(WriteCellImage(scene.parameters, contents), image);
    contents.gallery.payloads = scene.gallery.payloads;
    const auto restored = CellIndex::Restore(scene.parameters, std::move(contents));
    EXPECT_EQ(restored->items(), std::ssize(scene.gallery.ids));
    EXPECT_EQ(Answers(scene.parameters, *restored), Answers(scene.parameters, *built));
    EXPECT_EQ(restored->items_version(), 9u);
    EXPECT_EQ(restored->embedding_version(), 6u);
    EXPECT_EQ(restored->RowsPerBlock(true), built->RowsPerBlock(true));
    EXPECT_EQ(restored->memory(), built->memory());
  }
}

TEST(CellImage, SectionsAreAligned) {
  const ImageScene scene(CellCode::kFloat16, 3);
  const std::string image = scene.Image();
  EXPECT_EQ(image.substr(0, 8), "\x89PMCELL\n");
  constexpr size_t kSections = 14;
  uint64_t end = kImageTableOffset + 16 * kSections;
  for (size_t section = 0; section < kSections; ++section) {
    uint64_t entry[2];
    std::memcpy(entry, image.data() + kImageTableOffset + 16 * section, sizeof(entry));
    EXPECT_EQ(entry[0] % 8, 0u);
    EXPECT_GE(entry[0], end);
    EXPECT_LT(entry[0], end + 8);
    end = entry[0] + entry[1];
  }
  EXPECT_EQ(image.size(), (end + 7) / 8 * 8 + kImageDigestBytes);
}

TEST(CellImage, EveryChangedByteAndEveryCutIsDataLoss) {
  const ImageScene scene(CellCode::kFloat16, 3);
  const std::string image = scene.Image();
  for (size_t at = 0; at < image.size(); ++at) {
    std::string changed = image;
    changed[at] ^= 1;
    EXPECT_THAT(ReadCellImage(scene.parameters, changed), FailsWith(kDataLoss, "damaged")) << at;
    EXPECT_THAT(ReadCellImage(scene.parameters, image.substr(0, at)),
                FailsWith(kDataLoss, "damaged"))
        << at;
  }
  EXPECT_THAT(ReadCellImage(scene.parameters, image + "x"), FailsWith(kDataLoss, "damaged"));
}

TEST(CellImage, OtherParametersAreDataLoss) {
  const ImageScene scene;
  PublicParameters other = scene.parameters;
  other.collection_uuid = "another";
  EXPECT_THAT(ReadCellImage(other, scene.Image()), FailsWith(kDataLoss, "of other parameters"));
  EXPECT_THAT(ReadCellImage(ImageScene(CellCode::kScalar8).parameters, scene.Image()),
              FailsWith(kDataLoss, "of other parameters"));
}

// Values that pass a check of sizes alone.
TEST(CellImage, InvalidValuesAreDataLoss) {
  const ImageScene scene;
  CellContents contents = scene.Build()->contents();
  const auto refused = [&](const char* what) {
    EXPECT_THAT(ReadCellImage(scene.parameters, WriteCellImage(scene.parameters, contents)),
                FailsWith(kDataLoss, what));
    contents = scene.Build()->contents();
  };
  std::swap(contents.gallery.ids[3], contents.gallery.ids[4]);
  refused("an id");
  contents.gallery.ids[3] = contents.gallery.ids[2] + '\xff';
  refused("an id");
  contents.gallery.labels[7] = 4;  // between classes
  refused("a label");
  contents.partitions[0].item_cells.cells[9] = 3;
  refused("an item's cell");
  contents.partitions[1].item_cells.squared_distances[9] = std::numeric_limits<float>::quiet_NaN();
  refused("an item's cell");
  const auto with_pair = [&](Demand::ItemWeight pair) {
    std::vector<std::vector<Demand::ItemWeight>> cells(3);
    cells[1] = {{5, 1}, pair};
    contents.partitions[0].demand = Demand(std::move(cells), 300);
  };
  with_pair({200, 1});
  refused("a pair");
  with_pair({5, 1});
  refused("a pair");
  with_pair({6, std::numeric_limits<float>::infinity()});
  refused("a pair");
  with_pair({6, -1});
  refused("a pair");
}

}  // namespace
}  // namespace privatemail::testing
