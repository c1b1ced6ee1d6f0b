// Contents of a small cell index with known lists, and images of it.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_IMAGE_IMAGE_SCENE_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_IMAGE_IMAGE_SCENE_H_

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/cells/anchor_training.h"
#include "server/image/image.h"
#include "server/image/image_maker.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {

// Items in two partitions of 3 and 5 cells, with random unit rows, codes, demand and payloads.
struct TwoServerScene {
  static constexpr size_t kSceneCodeBytes = 2 * kDim;  // half precision

  PublicParameters parameters;
  CellContents contents;
  FloatMatrix unit_rows;

  explicit TwoServerScene(int items, bool with_payloads = true) {
    const Anchors anchors = SmallAnchors();
    parameters =
        *MakePublicParameters("uuid", SmallSettings(), anchors, {}, "vectors",
                              *PartitionAnchors(anchors.features, {3, 5}), CellCode::kFloat16);
    std::mt19937_64 bits(1);
    contents.gallery.version = 9;
    for (int row = 0; row < items; ++row) {
      contents.gallery.ids.push_back(absl::StrFormat("item-%05d", row) + std::string(row % 3, 'x'));
      contents.gallery.labels.push_back(row % 3 == 0 ? 3 : 5);
      contents.gallery.payloads.push_back(
          with_payloads && row % 4 != 0 ? absl::StrCat("{\"n\":", 1 << row % 20, "}") : "");
    }
    for (size_t byte = 0; byte < static_cast<size_t>(items) * kSceneCodeBytes; ++byte) {
      contents.codes += static_cast<char>(bits());
    }
    for (const int64_t cells : {3, 5}) contents.partitions.push_back(RandomDemand(cells, &bits));
    unit_rows = FloatMatrix::NullaryExpr(items, kDim,
                                         [&] { return std::normal_distribution<float>()(bits); });
    for (int row = 0; row < items; ++row) unit_rows.row(row).normalize();
  }

  int64_t items() const { return std::ssize(contents.gallery.ids); }
  absl::string_view CodeOf(size_t row) const {
    return absl::string_view(contents.codes).substr(row * kSceneCodeBytes, kSceneCodeBytes);
  }

  absl::StatusOr<ImageParts> Make(uint32_t list_items = 7,
                                  const std::vector<bool>* hidden = nullptr,
                                  bool with_scores = true) const {
    const MatrixRows rows(unit_rows);
    return MakeImage(parameters, contents, hidden,
                     {.list_items = list_items, .unit_rows = with_scores ? &rows : nullptr},
                     {false});
  }
  std::shared_ptr<const Image> MakeAndCreate() const { return *Image::Create(*Make()); }

 private:
  PartitionDemand RandomDemand(int64_t cells, std::mt19937_64* bits) const {
    ItemCells item_cells;
    std::vector<std::vector<Demand::ItemWeight>> of_cells(static_cast<size_t>(cells));
    for (int64_t row = 0; row < items(); ++row) {
      item_cells.cells.push_back(static_cast<int64_t>((*bits)() % cells));
      item_cells.squared_distances.push_back(static_cast<float>((*bits)() % 8));
      for (auto& of_cell : of_cells) {
        if ((*bits)() % 4 == 0) of_cell.push_back({row, 1 + static_cast<float>((*bits)() % 4)});
      }
    }
    return {std::move(item_cells), Demand(std::move(of_cells), items())};
  }
};

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_IMAGE_IMAGE_SCENE_H_
