#include "server/engine/cells_preparer.h"

#include <exception>
#include <optional>
#include <utility>

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

void CellsPreparer::Schedule(const CollectionRegistry::EntryPtr& entry) {
  const CollectionView view = registry_->ViewOf(*entry);
  queue_.Add([weak = std::weak_ptr(view.retriever)](const std::atomic<bool>& stopped) {
    if (const auto retriever = weak.lock()) retriever->MakeApproximateIndex(&stopped);
  });
  if (!view.has_cells()) return;
  queue_.Add([this, weak = std::weak_ptr(entry)](const std::atomic<bool>& stopped) {
    if (const auto locked = weak.lock()) PrepareCells(locked, stopped);
  });
}

void CellsPreparer::PrepareCells(const CollectionRegistry::EntryPtr& entry,
                                 const std::atomic<bool>& stopped) {
  std::optional<CollectionView> view = registry_->BeginCells(entry.get());
  if (!view.has_value()) return;
  const std::string name = view->published->name;
  absl::Status outcome;
  try {
    outcome = BuildCells(entry, *std::exchange(view, std::nullopt), stopped);
  } catch (const std::exception& error) {  // of FAISS, or out of memory
    outcome = absl::UnavailableError(error.what());
  }
  absl::Status problem;
  if (!outcome.ok() && !stopped) {
    problem = absl::UnavailableError(absl::StrCat("what answers for the cells of collection ", name,
                                                  " could not be built: ", outcome.message()));
  }
  registry_->EndCells(entry.get(), problem);
}

absl::Status CellsPreparer::BuildCells(const CollectionRegistry::EntryPtr& entry,
                                       CollectionView view, const std::atomic<bool>& stopped) {
  const std::shared_ptr<const PublishedCollection> published = view.published;
  const PublicParameters& parameters = published->parameters;
  const int64_t memory = registry_->options().cells_memory;
  const int64_t index_bytes =
      CellIndex::MemoryToCreate(parameters, static_cast<int64_t>(view.items));
  if (!parameters.SendsCoordinates()) view = {};  // so that a later build frees what it replaces
  const Store::LoadWatch watch = [&](int64_t bytes) -> absl::Status {
    if (stopped) return absl::CancelledError("the server ends");
    return CheckBuildMemory("building it", index_bytes + bytes, memory);
  };
  PM_ASSIGN_OR_RETURN(Gallery gallery, store_->LoadGallery(parameters, watch));
  std::optional<CellCoordinates> coordinates;
  if (parameters.SendsCoordinates()) {
    // The gallery gets the embedding's version, so InstallCells hides all later deletions.
    PM_ASSIGN_OR_RETURN(coordinates,
                        RestrictToEmbedding(*view.retriever, view.hidden.get(), &gallery));
    view = {};
  }
  PM_RETURN_IF_ERROR(CheckResidentMemory(*entry, parameters, gallery));
  QualitySample sample;
  const std::shared_ptr<const CellIndex> cells =
      CellIndex::Create(parameters, published->anchors, std::move(gallery), stopped,
                        std::move(coordinates), parameters.publish_quality ? &sample : nullptr);
  if (cells == nullptr) return absl::OkStatus();  // stopped
  registry_->InstallCells(entry.get(), cells);
  if (parameters.publish_quality) MeasureQuality(entry, cells, std::move(sample));
  return absl::OkStatus();
}

absl::Status CellsPreparer::CheckResidentMemory(const Entry& entry,
                                                const PublicParameters& parameters,
                                                const Gallery& gallery) const {
  const std::shared_ptr<const CellIndex> former = registry_->ViewOf(entry).cells;
  const int64_t kept = CellIndex::MemoryToKeep(parameters, std::ssize(gallery.ids)) +
                       BytesOf(gallery) -
                       gallery.features.size() * static_cast<int64_t>(sizeof(float));
  return registry_->CheckMemory("what answers for the cells of this one", kept,
                                former == nullptr ? 0 : former->memory());
}

void CellsPreparer::MeasureQuality(const CollectionRegistry::EntryPtr& entry,
                                   const std::shared_ptr<const CellIndex>& cells,
                                   QualitySample sample) {
  const auto shared = std::make_shared<const QualitySample>(std::move(sample));
  measurements_.Add([this, weak = std::weak_ptr(entry), weak_cells = std::weak_ptr(cells),
                     shared](const std::atomic<bool>& stopped) {
    const auto locked = weak.lock();
    const auto measured = weak_cells.lock();
    if (locked == nullptr || measured == nullptr) return;
    const auto obsolete = [&] {
      return stopped || registry_->IsRemoved(*locked) ||
             registry_->ViewOf(*locked).cells != measured;
    };
    std::optional<CellQuality> quality =
        measured->Measure(registry_->ViewOf(*locked).published->parameters, *shared, obsolete);
    if (!quality.has_value()) return;
    registry_->InstallQuality(locked.get(), measured.get(),
                              std::make_shared<const CellQuality>(*std::move(quality)));
  });
}

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
