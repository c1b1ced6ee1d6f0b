#include "server/engine/cell_coordinates.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/embedding/alignment.h"

namespace privatemail::server {
namespace {

std::optional<int64_t> VisibleRow(const Retriever& retriever, const HiddenRows* hidden,
                                  const std::string& id) {
  const std::optional<int64_t> row = retriever.RowOf(id);
  const bool is_hidden = row && hidden != nullptr && hidden->hidden[static_cast<size_t>(*row)];
  return is_hidden ? std::nullopt : row;
}

// Moves row `from` of the gallery to row `to`, with the label and payload of the embedding.
void MoveRow(const Retriever& retriever, int64_t embedded, size_t from, size_t to,
             Gallery* gallery) {
  if (from != to) {
    gallery->ids[to] = std::move(gallery->ids[from]);
    gallery->features.row(static_cast<Eigen::Index>(to)) =
        gallery->features.row(static_cast<Eigen::Index>(from));
  }
  gallery->labels[to] = retriever.LabelOf(embedded);
  gallery->payloads[to] = retriever.PayloadOf(embedded);
}

absl::Status CheckFloatCoordinates(const CellCoordinates& coordinates) {
  if (!coordinates.items.allFinite() || !coordinates.anchors.allFinite()) {
    return absl::FailedPreconditionError(
        "coordinates must be finite as floats, but one of the embedding is not: the collection's "
        "settings are extreme");
  }
  const Matrix anchors = coordinates.anchors.cast<double>();
  const absl::Status aligned = KabschUmeyama(anchors, anchors, /*with_scale=*/true).status();
  if (aligned.ok()) return aligned;
  return absl::FailedPreconditionError(
      absl::StrCat("coordinates of the anchors as floats: ", aligned.message()));
}

}  // namespace

absl::StatusOr<CellCoordinates> RestrictToEmbedding(const Retriever& retriever,
                                                    const HiddenRows* hidden, Gallery* gallery) {
  std::vector<int64_t> embedded;  // row of each remaining item
  for (size_t row = 0; row < gallery->ids.size(); ++row) {
    const auto embedded_row = VisibleRow(retriever, hidden, gallery->ids[row]);
    if (!embedded_row) continue;
    MoveRow(retriever, *embedded_row, row, embedded.size(), gallery);
    embedded.push_back(*embedded_row);
  }
  gallery->ids.resize(embedded.size());
  gallery->labels.resize(embedded.size());
  gallery->payloads.resize(embedded.size());
  gallery->features.conservativeResize(std::ssize(embedded), Eigen::NoChange);
  gallery->version = retriever.items_version();
  CellCoordinates coordinates{.embedding_version = retriever.version(),
                              .items = {},
                              .anchors = retriever.anchor_coordinates().cast<float>()};
  coordinates.items = retriever.coordinates()(embedded, Eigen::all).cast<float>();
  PM_RETURN_IF_ERROR(CheckFloatCoordinates(coordinates));
  return coordinates;
}

}  // namespace privatemail::server
