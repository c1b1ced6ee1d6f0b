// How a collection gets what answers for its cells: after its embedding, from what is stored then.
#include <exception>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/low_priority.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "server/cells/partition_anchors.h"
#include "server/cells/train_codebook.h"
#include "server/engine/catalog.h"
#include "server/engine/embedded_part.h"
#include "server/engine/publish.h"

namespace privatemail::server {
namespace {

// Also where no item has changed: coordinates compare with those of one version.
bool AreOfEarlierCoordinates(const CellIndex& cells, const CollectionView& view) {
  return view.published->parameters.SendsCoordinates() &&
         cells.embedding_version() < view.retriever->version();
}

}  // namespace

std::vector<std::string> IdsNotIn(const Retriever& retriever, const CellIndex& cells) {
  std::vector<std::string> missing;
  if (cells.items_version() >= retriever.items_version()) return missing;
  for (int64_t row = 0; row < cells.items(); ++row) {
    if (!retriever.RowOf(cells.IdOf(row))) missing.push_back(cells.IdOf(row));
  }
  return missing;
}

absl::Status CollectionView::CheckHasCells() const {
  if (!published->parameters.cell_partitions.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("collection ", published->name,
                   " has no cells: `privatemail collection create --cells` makes one that has"));
}

absl::StatusOr<std::shared_ptr<const CellIndex>> CollectionView::Cells() const {
  PM_RETURN_IF_ERROR(CheckHasCells());
  PM_RETURN_IF_ERROR(Built().status());
  if (cells != nullptr) return cells;
  PM_RETURN_IF_ERROR(cells_problem);
  return absl::UnavailableError(absl::StrCat("what answers for the cells of collection ",
                                             published->name, " is being made; send it again"));
}

std::string CollectionView::DescribeCells() const {
  if (published->parameters.cell_partitions.empty() || retriever == nullptr) return "";
  if (cells == nullptr) return cells_problem.ok() ? "being made" : cells_problem.ToString();
  const int64_t hidden = hidden_in_cells == nullptr ? 0 : hidden_in_cells->count;
  return absl::StrCat("ready: ", cells->items() - hidden, " items");
}

absl::StatusOr<std::vector<CellPartition>> PartitionInto(const std::vector<int64_t>& cells,
                                                         const Anchors& anchors) {
  if (cells.empty()) return std::vector<CellPartition>();
  PM_ASSIGN_OR_RETURN(const Matrix units, UnitRows("anchors", anchors.features));
  absl::StatusOr<std::vector<CellPartition>> partitions;
  AtLowPriority([&] { partitions = PartitionAnchors(units.cast<float>(), cells); });
  return partitions;
}

absl::StatusOr<std::optional<ProductCodebook>> CodebookFor(const std::optional<CellCode>& code,
                                                           const Anchors& anchors) {
  if (!code.has_value() || !IsProductCode(*code)) return std::nullopt;
  PM_ASSIGN_OR_RETURN(const Matrix units, UnitRows("anchors", anchors.features));
  absl::StatusOr<ProductCodebook> codebook;
  AtLowPriority([&] { codebook = TrainCodebook(units.cast<float>(), *code); });
  return codebook;
}

void Catalog::MakeLater(const std::shared_ptr<Entry>& entry) {
  const CollectionView& view = entry->view;
  later_work_.Add([weak = std::weak_ptr(view.retriever)](const std::atomic<bool>& stopped) {
    if (const auto retriever = weak.lock()) retriever->MakeApproximateIndex(&stopped);
  });
  if (view.published->parameters.cell_partitions.empty()) return;
  later_work_.Add([this, weak = std::weak_ptr(entry)](const std::atomic<bool>& stopped) {
    if (const auto one = weak.lock()) MakeCells(one.get(), stopped);
  });
}

// Of several builds that wait the first task makes it from what the last of them was made of.
bool Catalog::BeginCells(Entry* entry) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const CollectionView& view = entry->view;
  const bool is_there = view.cells != nullptr && view.hidden_in_cells == nullptr &&
                        view.cells->items_version() >= view.retriever->items_version() &&
                        !AreOfEarlierCoordinates(*view.cells, view);
  if (entry->deleted || is_there) return false;
  ++entry->loads;
  return true;
}

void Catalog::MakeCells(Entry* entry, const std::atomic<bool>& stopped) {
  if (!BeginCells(entry)) return;
  absl::Status outcome;
  try {
    outcome = LoadCells(entry, stopped);
  } catch (const std::exception& error) {  // FAISS's, or out of memory
    outcome = absl::UnavailableError(error.what());
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  EndLoad(entry);
  entry->view.cells_problem =
      outcome.ok() || stopped
          ? absl::OkStatus()
          : absl::UnavailableError(absl::StrCat(
                "what answers for the cells of collection ", entry->view.published->name,
                " could not be made: ", outcome.message(), "; `privatemail build` tries it again"));
}

absl::Status Catalog::LoadCells(Entry* entry, const std::atomic<bool>& stopped) {
  const PublishedCollection& published = *entry->view.published;  // never changes
  const int64_t memory = options().cells_memory;
  CollectionView view = [&] {
    const std::lock_guard<std::mutex> guard(mutex_);
    return entry->view;
  }();
  const int64_t beside =
      CellIndex::MemoryToMake(published.parameters, static_cast<int64_t>(view.items));
  const bool with_coordinates = published.parameters.SendsCoordinates();
  if (!with_coordinates) view = {};  // a later build frees what it replaces
  const Store::LoadWatch watch = [&](int64_t bytes) -> absl::Status {
    if (stopped) return absl::CancelledError("the server ends");
    return CheckMaking("making it", beside + bytes, memory);
  };
  PM_ASSIGN_OR_RETURN(Gallery gallery, store_->LoadGallery(published.parameters, watch));
  std::optional<CellCoordinates> coordinates;
  if (with_coordinates) {
    // What is deleted from here on is hidden when it is installed: the version is the embedding's.
    PM_ASSIGN_OR_RETURN(coordinates,
                        KeepEmbeddedPart(*view.retriever, view.hidden.get(), &gallery));
    view = {};
  }
  const std::shared_ptr<const CellIndex> made = CellIndex::Make(
      published.parameters, published.anchors, std::move(gallery), stopped, std::move(coordinates));
  if (made == nullptr) return absl::OkStatus();  // stopped
  while (!InstallCells(made, entry)) {
  }
  return absl::OkStatus();
}

bool Catalog::InstallCells(const std::shared_ptr<const CellIndex>& made, Entry* entry) {
  const std::shared_ptr<const Retriever> retriever = [&] {
    const std::lock_guard<std::mutex> guard(mutex_);
    return entry->view.retriever;
  }();
  std::shared_ptr<const HiddenRows> hidden = HideAlso(*made, IdsNotIn(*retriever, *made), nullptr);
  std::shared_ptr<const CellIndex> former;  // freed after the lock: it is large
  const std::lock_guard<std::mutex> guard(mutex_);
  CollectionView& view = entry->view;
  if (view.retriever != retriever) return false;
  for (const Deletion& deletion : entry->deletions) {
    // The gallery of an earlier version still has them.
    if (deletion.latest_version <= made->items_version()) continue;
    hidden = HideAlso(*made, deletion.ids, hidden);
  }
  former = std::exchange(view.cells, made);
  view.hidden_in_cells = std::move(hidden);
  return true;
}

Catalog::Gone Catalog::FindGone(const Retriever& retriever, const Entry& entry) const {
  Gone gone;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    gone.cells = entry.view.cells;
  }
  if (gone.cells != nullptr) gone.ids = IdsNotIn(retriever, *gone.cells);
  return gone;
}

absl::StatusOr<uint64_t> Catalog::VersionNow(const PublishedCollection& published) const {
  if (published.parameters.cell_partitions.empty()) return 0;
  PM_ASSIGN_OR_RETURN(const std::vector<CollectionState> states, store_->ListStates());
  for (const CollectionState& state : states) {
    if (state.uuid == published.parameters.collection_uuid) return state.latest_version;
  }
  return 0;
}

}  // namespace privatemail::server
