// What a catalog makes of an embedding after it answers.
#include <exception>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/engine/catalog.h"

namespace privatemail {

absl::StatusOr<std::shared_ptr<const CellIndex>> CollectionView::Cells() const {
  if (published->parameters.cell_partitions.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("collection ", published->name,
                     " has no cells: `privatemail collection create --cells` makes one that has"));
  }
  PM_RETURN_IF_ERROR(Built().status());
  if (cells != nullptr) return cells;
  PM_RETURN_IF_ERROR(cells_problem);
  return absl::UnavailableError(absl::StrCat("what answers for the cells of collection ",
                                             published->name, " is being made; send it again"));
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

void Catalog::MakeCells(Entry* entry, const std::atomic<bool>& stopped) {
  std::shared_ptr<const PublishedCollection> published;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (entry->deleted) return;
    published = entry->view.published;
    ++entry->loads;
  }
  std::shared_ptr<const CellIndex> made;
  const absl::Status outcome = [&]() -> absl::Status {
    try {
      const Store::LoadWatch watch = [&](int64_t /*bytes*/) -> absl::Status {
        return stopped ? absl::CancelledError("the server ends") : absl::OkStatus();
      };
      PM_ASSIGN_OR_RETURN(Gallery gallery, store_->LoadGallery(published->parameters, watch));
      made =
          CellIndex::Make(published->parameters, published->anchors, std::move(gallery), stopped);
      return absl::OkStatus();
    } catch (const std::exception& error) {  // FAISS's, or out of memory
      return absl::UnavailableError(error.what());
    }
  }();
  std::shared_ptr<const CellIndex> former;  // freed after the lock: it is large
  const std::lock_guard<std::mutex> guard(mutex_);
  auto end = absl::MakeCleanup([&] { EndLoad(entry); });
  if (!outcome.ok()) {
    entry->view.cells_problem = absl::UnavailableError(
        absl::StrCat("what answers for the cells of collection ", published->name,
                     " could not be made: ", outcome.message()));
    return;
  }
  if (made == nullptr) return;  // stopped
  entry->view.cells_problem = absl::OkStatus();
  former = std::exchange(entry->view.cells, made);
  entry->view.hidden_in_cells = nullptr;
  for (const Deletion& deletion : entry->deletions) {
    // The gallery of an earlier version still has them.
    if (deletion.latest_version <= made->items_version()) continue;
    entry->view.hidden_in_cells = HideAlso(*made, deletion.ids, entry->view.hidden_in_cells);
  }
}

}  // namespace privatemail
