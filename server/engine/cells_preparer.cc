#include "server/engine/cells_preparer.h"

#include <exception>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/engine/cell_coordinates.h"

namespace privatemail::server {

void CellsPreparer::Schedule(const CollectionRegistry::EntryPtr& entry) {
  const CollectionView view = registry_->ViewOf(*entry);
  queue_.Add([weak = std::weak_ptr(view.retriever)](const std::atomic<bool>& stopped) {
    if (const auto retriever = weak.lock()) retriever->MakeApproximateIndex(&stopped);
  });
  if (!view.has_cells()) return;
  queue_.Add([this, weak = std::weak_ptr(entry)](const std::atomic<bool>& stopped) {
    if (const auto locked = weak.lock()) PrepareCells(locked.get(), stopped);
  });
}

void CellsPreparer::PrepareCells(Entry* entry, const std::atomic<bool>& stopped) {
  std::optional<CollectionView> view = registry_->BeginCells(entry);
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
                                                  " could not be made: ", outcome.message()));
  }
  registry_->EndCells(entry, problem);
}

absl::Status CellsPreparer::BuildCells(Entry* entry, CollectionView view,
                                       const std::atomic<bool>& stopped) {
  const std::shared_ptr<const PublishedCollection> published = view.published;
  const PublicParameters& parameters = published->parameters;
  const int64_t memory = registry_->options().cells_memory;
  const int64_t index_bytes =
      CellIndex::MemoryToCreate(parameters, static_cast<int64_t>(view.items));
  if (!parameters.SendsCoordinates()) view = {};  // so that a later build frees what it replaces
  const Store::LoadWatch watch = [&](int64_t bytes) -> absl::Status {
    if (stopped) return absl::CancelledError("the server ends");
    return CheckBuildMemory("making it", index_bytes + bytes, memory);
  };
  PM_ASSIGN_OR_RETURN(Gallery gallery, store_->LoadGallery(parameters, watch));
  std::optional<CellCoordinates> coordinates;
  if (parameters.SendsCoordinates()) {
    // The gallery gets the embedding's version, so InstallCells hides all later deletions.
    PM_ASSIGN_OR_RETURN(coordinates,
                        RestrictToEmbedding(*view.retriever, view.hidden.get(), &gallery));
    view = {};
  }
  const std::shared_ptr<const CellIndex> cells = CellIndex::Create(
      parameters, published->anchors, std::move(gallery), stopped, std::move(coordinates));
  if (cells != nullptr) registry_->InstallCells(entry, cells);  // null: stopped
  return absl::OkStatus();
}

}  // namespace privatemail::server
