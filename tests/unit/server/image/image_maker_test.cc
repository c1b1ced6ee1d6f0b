#include "server/image/image_maker.h"

#include <cstring>
#include <set>

#include "common/image/image_header.h"
#include "common/image/item_list.h"
#include "tests/unit/server/image/image_scene.h"

namespace privatemail::testing {
namespace {

using RowLists = std::vector<std::vector<uint32_t>>;

// The lists of the first partition.
RowLists ListsOf(const ImageParts& parts) {
  const v1::ListGroup group = ReadImageHeader(parts.header)->partitions(0);
  const std::string& section = parts.sections[2];
  RowLists lists(group.lists(), std::vector<uint32_t>(group.rows()));
  const size_t bytes = group.rows() * sizeof(uint32_t);
  for (size_t list = 0; list < lists.size(); ++list) {
    std::memcpy(lists[list].data(), section.data() + list * bytes, bytes);
  }
  return lists;
}

// Six items. Cell 0 has the rows 1, 2, 4, cell 1 the others, cell 2 none.
TwoServerScene KnownDemandScene() {
  TwoServerScene scene(6);
  scene.contents.partitions[0] = {
      {.cells = {1, 0, 0, 1, 0, 1}, .squared_distances = {1, 3, 2, 2, 2, 2}},
      Demand({{{1, 1}, {3, 4}, {5, 6}}, {{3, 2}, {5, 2}}, {{2, 3}, {4, 1}}}, 6)};
  return scene;
}

TEST(MakeImage, ListsHoldOwnItemsThenWantedThenOthers) {
  const TwoServerScene scene = KnownDemandScene();
  // Total demand: 0, 1, 3, 6, 1, 8. Row 4 is nearer to the centroid of cell 0 than row 1.
  const RowLists expected = {{2, 4, 1, 5, 3, 0}, {5, 3, 0, 2, 1, 4}, {2, 4, 5, 3, 1, 0}};
  EXPECT_EQ(ListsOf(*scene.Make(6)), expected);
  const RowLists shorter = {{2, 4, 1, 5}, {5, 3, 0, 2}, {2, 4, 5, 3}};
  EXPECT_EQ(ListsOf(*scene.Make(4)), shorter);
  EXPECT_EQ(ListsOf(*scene.Make(2)), (RowLists{{2, 4}, {5, 3}, {2, 4}}));
}

TEST(MakeImage, HiddenRowsAreLeftOutAndOthersNumberedAnew) {
  const TwoServerScene scene = KnownDemandScene();
  const std::vector<bool> hidden = {false, false, true, false, false, true};
  ASSERT_OK_AND_ASSIGN(const ImageParts parts, scene.Make(6, &hidden));
  // Rows 0, 1, 3, 4 become 0, 1, 2, 3.
  const RowLists expected = {{3, 1, 2, 0}, {2, 0, 1, 3}, {3, 2, 1, 0}};
  EXPECT_EQ(ListsOf(parts), expected);
  ASSERT_OK_AND_ASSIGN(const v1::ImageHeader header, ReadImageHeader(parts.header));
  EXPECT_EQ(header.items(), 4u);
  ASSERT_OK_AND_ASSIGN(const v1::ImageTable table, ReadImageTable(header, parts.sections[0]));
  const size_t kept[] = {0, 1, 3, 4};
  for (int row = 0; row < 4; ++row) {
    EXPECT_EQ(table.ids(row), scene.contents.gallery.ids[kept[row]]);
    EXPECT_EQ(table.labels(row), scene.contents.gallery.labels[kept[row]]);
    EXPECT_EQ(parts.sections[1].substr(static_cast<size_t>(row) * TwoServerScene::kSceneCodeBytes,
                                       TwoServerScene::kSceneCodeBytes),
              scene.CodeOf(kept[row]));
    for (int i = 0; i < kDim; ++i) {
      int16_t value;
      std::memcpy(&value, parts.sections[3].data() + (row * kDim + i) * 2, 2);
      EXPECT_EQ(value, std::lround(16384. * scene.unit_rows(static_cast<int>(kept[row]), i)));
    }
  }
  v1::ImagePayloads payloads;
  ASSERT_TRUE(payloads.ParseFromString(parts.sections[4]));
  ASSERT_EQ(payloads.payloads_size(), 4);
  for (int row = 0; row < 4; ++row) {
    EXPECT_EQ(payloads.payloads(row), scene.contents.gallery.payloads[kept[row]]);
  }
}

TEST(MakeImage, HeaderSaysWhatTheImageHolds) {
  const TwoServerScene scene(50);
  ASSERT_OK_AND_ASSIGN(const ImageParts parts, scene.Make());
  ASSERT_OK_AND_ASSIGN(const v1::ImageHeader header, ReadImageHeader(parts.header));
  EXPECT_EQ(header.fingerprint(), Fingerprint(scene.parameters));
  EXPECT_EQ(header.items(), 50u);
  EXPECT_EQ(header.items_version(), 9u);
  EXPECT_EQ(header.feature_dim(), static_cast<uint32_t>(kDim));
  EXPECT_EQ(header.id_bytes(), 12u);  // "item-00002xx"
  ASSERT_EQ(header.partitions_size(), 2);
  EXPECT_EQ(header.partitions(0).lists(), 3u);
  EXPECT_EQ(header.partitions(1).lists(), 5u);
  EXPECT_EQ(header.partitions(1).rows(), 7u);
  EXPECT_TRUE(header.has_scores());
  EXPECT_EQ(header.payloads().lists(), 50u);
  EXPECT_EQ(header.payloads().rows(), 1u);
  EXPECT_EQ(header.payloads().list_bytes(), 8 + 4 + std::strlen("{\"n\":524288}"));
}

TEST(MakeImage, ListsAreAsLongAsTheImageAtMost) {
  const TwoServerScene scene(5);
  for (const std::vector<uint32_t>& list : ListsOf(*scene.Make(200))) {
    EXPECT_EQ(std::set<uint32_t>(list.begin(), list.end()), (std::set<uint32_t>{0, 1, 2, 3, 4}));
  }
}

TEST(MakeImage, EqualInputsGiveEqualBytes) {
  const ImageParts one = *TwoServerScene(80).Make(), other = *TwoServerScene(80).Make();
  EXPECT_EQ(one.header, other.header);
  EXPECT_EQ(one.sections, other.sections);
}

TEST(MakeImage, PayloadListsHoldFewestRowsPossible) {
  ASSERT_OK_AND_ASSIGN(const ImageParts most, TwoServerScene(4096).Make(1, nullptr, false));
  EXPECT_EQ(ReadImageHeader(most.header)->payloads().rows(), 1u);
  ASSERT_OK_AND_ASSIGN(const ImageParts more, TwoServerScene(4097).Make(1, nullptr, false));
  EXPECT_EQ(ReadImageHeader(more.header)->payloads().rows(), 2u);
  EXPECT_EQ(ReadImageHeader(more.header)->payloads().lists(), 2049u);
}

TEST(MakeImage, NoPayloadsAndNoScoresGiveNoSectionsOfThem) {
  ASSERT_OK_AND_ASSIGN(const ImageParts parts, TwoServerScene(20, false).Make(7, nullptr, false));
  EXPECT_EQ(parts.sections.size(), 3u);
  EXPECT_FALSE(ReadImageHeader(parts.header)->has_payloads());
  EXPECT_FALSE(ReadImageHeader(parts.header)->has_scores());
}

TEST(MakeImage, UnusableInputIsRefused) {
  TwoServerScene scene(4);
  EXPECT_THAT(scene.Make(0), FailsWith(absl::StatusCode::kInvalidArgument, "list_items"));
  const std::vector<bool> all(4, true);
  constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;
  EXPECT_THAT(scene.Make(7, &all), FailsWith(kRefused, "needs items"));
  scene.parameters.cell_code = CellCode::kNone;
  EXPECT_THAT(scene.Make(), FailsWith(kRefused, "cell_code is none"));
  scene.parameters.cell_partitions.clear();
  EXPECT_THAT(scene.Make(), FailsWith(kRefused, "no cells"));
}

TEST(MakeImage, UnfittingHeaderFieldIsNamed) {
  TwoServerScene scene(4);
  scene.contents.gallery.ids[3] += std::string(600, 'x');
  EXPECT_THAT(scene.Make(), FailsWith(absl::StatusCode::kFailedPrecondition, "id_bytes"));
}

TEST(MakeImage, MemoryOfListsIsCheckedBeforeTheyAreFilled) {
  const TwoServerScene scene(30);
  ImageOptions options;
  options.list_items = UINT32_MAX;
  options.check_memory = [&](const v1::ImageHeader& header) {
    EXPECT_EQ(header.partitions_size(), 2);
    for (const v1::ListGroup& group : header.partitions()) {
      EXPECT_EQ(group.rows(), 30u);
      EXPECT_GT(group.list_bytes(), 30 * TwoServerScene::kSceneCodeBytes);
    }
    EXPECT_EQ(header.partitions(1).lists(), 5u);
    return absl::ResourceExhaustedError("too much");
  };
  EXPECT_THAT(MakeImage(scene.parameters, scene.contents, nullptr, options, {false}),
              FailsWith(absl::StatusCode::kResourceExhausted, "too much"));
}

// Of payloads a few bytes more.
TEST(MakeImage, CheckedMemoryIsThatOfTheImage) {
  for (const bool with_payloads : {false, true}) {
    const TwoServerScene scene(60, with_payloads);
    const MatrixRows rows(scene.unit_rows);
    int64_t checked = 0;
    ImageOptions options{.list_items = 7, .unit_rows = &rows};
    options.check_memory = [&](const v1::ImageHeader& header) {
      checked = Image::MemoryToCreate(header);
      return absl::OkStatus();
    };
    ASSERT_OK_AND_ASSIGN(const ImageParts parts,
                         MakeImage(scene.parameters, scene.contents, nullptr, options, {false}));
    const int64_t needed = Image::MemoryToCreate(*ReadImageHeader(parts.header));
    EXPECT_GE(checked, needed);
    EXPECT_LE(checked, needed + (with_payloads ? 60 * 6 * 3 : 0));
  }
}

TEST(MakeImage, StoppedJobIsCancelled) {
  const TwoServerScene scene(20);
  EXPECT_THAT(MakeImage(scene.parameters, scene.contents, nullptr, {}, {true}),
              FailsWith(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace privatemail::testing
