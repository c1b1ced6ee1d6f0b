#include "server/engine/collection.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/embedding/offered_schemes.h"

namespace privatemail::server {
namespace {

std::shared_ptr<const PublishedCollection> Publish(StoredCollection collection) {
  auto published = std::make_shared<PublishedCollection>();
  published->name = std::move(collection.name);
  published->fingerprint = Fingerprint(collection.parameters);
  published->parameters = std::move(collection.parameters);
  published->anchors = std::move(collection.anchors);
  return published;
}

// Items of `cells` that an embedding of later items does not have: they were deleted in between,
// perhaps by another daemon; without the rows that are `hidden` (null: none) already. Empty if the
// embedding is not later. Ids of both ascend; O(n).
std::vector<std::string> IdsNotIn(const Retriever& retriever, const CellIndex& cells,
                                  const HiddenRows* hidden = nullptr) {
  std::vector<std::string> missing;
  if (cells.items_version() >= retriever.items_version()) return missing;
  int64_t embedded = 0;
  for (int64_t row = 0; row < cells.items(); ++row) {
    if (hidden != nullptr && hidden->hidden[static_cast<size_t>(row)]) continue;
    const std::string& id = cells.IdOf(row);
    while (embedded < retriever.items() && retriever.IdOf(embedded) < id) ++embedded;
    if (embedded == retriever.items() || retriever.IdOf(embedded) != id) missing.push_back(id);
  }
  return missing;
}

std::vector<std::string> IdsDeletedAfter(uint64_t version, absl::Span<const DeletedItem> deleted) {
  std::vector<std::string> ids;
  for (const DeletedItem& item : deleted) {
    if (item.version > version) ids.push_back(item.id);
  }
  return ids;
}

}  // namespace

uint64_t CollectionView::embedded_items() const {
  if (retriever == nullptr) return 0;
  return static_cast<uint64_t>(retriever->items() - (hidden == nullptr ? 0 : hidden->count));
}

// Every change, and nothing else, takes the next version.
uint64_t CollectionView::changes_since_embedding() const {
  if (!published->parameters.HasAnchors()) return 0;  // searched as stored
  if (retriever == nullptr) return items;  // versions of a restored collection do not start at 1
  const uint64_t embedded = retriever->items_version();
  // Another daemon may have embedded changes that this one has not adopted yet.
  return latest_version > embedded ? latest_version - embedded : 0;
}

// Features, and images of the iterate with their degrees: four of the iteration and one a core of
// an exact product.
int64_t CollectionView::build_memory(Features features) const {
  const int64_t images = 4 + static_cast<int64_t>(std::thread::hardware_concurrency());
  const PublicParameters& parameters = published->parameters;
  const int64_t image_values = images * (parameters.settings.embedding_dim + 1);
  const int64_t rows = static_cast<int64_t>(items) + parameters.anchor_count;
  const int64_t feature_bytes = features == Features::kInMemory
                                    ? parameters.feature_dim * static_cast<int64_t>(sizeof(float))
                                    : 0;
  // Class sums, code and their products.
  const int64_t class_values = 8 * std::ssize(parameters.slot_labels) *
                               static_cast<int64_t>(parameters.settings.embedding_dim);
  return rows * feature_bytes +
         (rows * image_values + class_values) * static_cast<int64_t>(sizeof(double));
}

int64_t CollectionView::resident_memory() const {
  return MemoryOf(published->parameters) + (retriever == nullptr ? 0 : retriever->memory()) +
         (cells == nullptr ? 0 : cells->memory()) +
         (encrypted == nullptr ? 0 : encrypted->memory());
}

int64_t MemoryOf(const PublicParameters& parameters) {
  constexpr int64_t kFloat = sizeof(float), kDouble = sizeof(double), kLabel = sizeof(int32_t);
  const int64_t of_anchor = parameters.feature_dim * kFloat +
                            parameters.settings.embedding_dim * kDouble + 2 * kLabel +
                            std::ssize(parameters.cell_partitions) * kDouble;
  const int64_t of_class = 2 * kLabel + 3 * kDouble;
  int64_t bytes =
      parameters.anchor_count * of_anchor + std::ssize(parameters.slot_labels) * of_class;
  for (const std::string& name : parameters.class_names) {
    bytes += static_cast<int64_t>(sizeof(std::string)) + std::ssize(name);
  }
  if (parameters.cell_codebook.has_value()) {
    bytes += parameters.cell_codebook->centroids.size() * kFloat;
  }
  return bytes;
}

absl::Status CheckBuildMemory(absl::string_view purpose, int64_t bytes, int64_t memory) {
  if (bytes <= memory) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("memory of ", purpose, " in bytes is at least ",
                                                   bytes, ", more than the limit of ", memory,
                                                   " (memory / 4)"));
}

Collection::Collection(StoredCollection stored, EncryptedCollection::MemoryCheck check)
    : key_(stored.key) {
  view_.items = stored.items;
  view_.latest_version = stored.latest_version;
  view_.published = Publish(std::move(stored));
  if (!view_.published->parameters.with_encrypted || check == nullptr) return;
  view_.encrypted = std::make_shared<EncryptedCollection>(std::move(check));
}

CollectionView Collection::view() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  CollectionView view = view_;
  view.collection = std::const_pointer_cast<Collection>(shared_from_this());
  return view;
}

int64_t Collection::key() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return key_;
}

int64_t Collection::memory() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return view_.resident_memory() + reserved_;
}

bool Collection::TakeKeyOf(const CollectionState& state) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const bool same =
      view_.published->parameters.collection_uuid == state.uuid && (key_ == 0 || key_ == state.key);
  if (same) key_ = state.key;
  return same;
}

void Collection::SetItems(uint64_t items, uint64_t latest_version) {
  if (latest_version < view_.latest_version) return;  // a later change came first
  view_.items = items;
  view_.latest_version = latest_version;
}

void Collection::Hide(absl::Span<const DeletedItem> deleted) {
  if (view_.retriever != nullptr) {
    view_.hidden = AddHiddenRows(
        *view_.retriever, IdsDeletedAfter(view_.retriever->items_version(), deleted), view_.hidden);
  }
  if (view_.cells != nullptr) {
    view_.hidden_in_cells =
        AddHiddenRows(*view_.cells, IdsDeletedAfter(view_.cells->items_version(), deleted),
                      view_.hidden_in_cells);
  }
}

void Collection::RecordDuringLoads(absl::Span<const DeletedItem> deleted) {
  if (loads_ == 0) return;
  deletions_.insert(deletions_.end(), deleted.begin(), deleted.end());
}

void Collection::FinishLoad() {
  if (--loads_ == 0) deletions_.clear();
}

absl::StatusOr<std::shared_ptr<const PublishedCollection>> Collection::Extend(
    int64_t dimension, const std::vector<std::string>& class_names) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (removed_) return NoSuchCollection(view_.published->name);
  const PublicParameters& former = view_.published->parameters;
  const bool has_names = former.class_names.size() >= class_names.size();
  const bool has_dimension = former.feature_dim > 0 || dimension == 0;
  if (!has_dimension || !has_names) {
    auto changed = std::make_shared<PublishedCollection>(*view_.published);
    if (!has_dimension) changed->parameters.feature_dim = dimension;
    if (!has_names) changed->parameters.class_names = class_names;
    changed->fingerprint = Fingerprint(changed->parameters);
    view_.published = std::move(changed);
  }
  return view_.published;
}

void Collection::RecordItems(uint64_t items, uint64_t latest_version) {
  const std::lock_guard<std::mutex> guard(mutex_);
  SetItems(items, latest_version);
}

void Collection::RecordDeletion(uint64_t items, uint64_t latest_version,
                                absl::Span<const std::string> ids) {
  std::vector<DeletedItem> deleted;
  for (const std::string& id : ids) deleted.push_back({id, latest_version});
  const std::lock_guard<std::mutex> guard(mutex_);
  SetItems(items, latest_version);
  Hide(deleted);
  RecordDuringLoads(deleted);
}

absl::Status Collection::BeginBuild(bool needs_items) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::string& name = view_.published->name;
  PM_RETURN_IF_ERROR(CheckHasAnchors(name, view_.published->parameters));
  if (building_) {
    return absl::AbortedError(
        absl::StrCat("collection ", name, " is being built already: wait for that build to end"));
  }
  if (needs_items && view_.items == 0) {
    return absl::FailedPreconditionError(absl::StrCat("collection ", name, " has no items"));
  }
  building_ = true;
  ++loads_;
  return absl::OkStatus();
}

void Collection::ReserveForBuild(int64_t bytes) {
  const std::lock_guard<std::mutex> guard(mutex_);
  reserved_ = bytes;
}

void Collection::MarkOutdated() {
  const std::lock_guard<std::mutex> guard(mutex_);
  outdated_ = true;
}

bool Collection::EndBuild() {
  const std::lock_guard<std::mutex> guard(mutex_);
  building_ = false;
  build_share_ = -1;
  reserved_ = 0;
  FinishLoad();
  return std::exchange(outdated_, false);
}

bool Collection::InstallRetriever(std::shared_ptr<const Retriever> retriever,
                                  absl::Span<const DeletedItem> deleted, uint64_t until) {
  const CollectionView before = view();
  const std::shared_ptr<const CellIndex>& cells = before.cells;
  std::vector<std::string> missing;  // few: a search for each, under the lock
  if (cells != nullptr) missing = IdsNotIn(*retriever, *cells, before.hidden_in_cells.get());
  // Destroyed after the lock is released: the former one is large.
  std::shared_ptr<const Retriever> former = std::move(retriever);
  const std::lock_guard<std::mutex> guard(mutex_);
  if (removed_) return false;
  if (view_.retriever != nullptr && view_.retriever->version() >= former->version()) return true;
  std::swap(view_.retriever, former);
  view_.embedding_problem = absl::OkStatus();
  view_.hidden = nullptr;
  view_.adopted_version = std::max(view_.adopted_version, until);
  Hide(deleted);
  Hide(deletions_);
  // For a cell index that is being built from earlier items.
  RecordDuringLoads(deleted);
  if (view_.cells == nullptr) return true;
  // Runs under the lock only if another cell index was installed since, which is rare.
  if (view_.cells != cells) missing = IdsNotIn(*view_.retriever, *view_.cells);
  view_.hidden_in_cells = AddHiddenRows(*view_.cells, missing, view_.hidden_in_cells);
  return true;
}

void Collection::SetEmbeddingProblem(const absl::Status& problem) {
  const std::lock_guard<std::mutex> guard(mutex_);
  view_.embedding_problem = problem;
}

std::optional<CollectionView> Collection::BeginCells() {
  const std::lock_guard<std::mutex> guard(mutex_);
  // After several builds in a row, the first job already includes the items of the last.
  const bool up_to_date =
      view_.cells != nullptr && view_.cells->embedding_version() >= view_.retriever->version();
  if (removed_ || up_to_date) return std::nullopt;
  ++loads_;
  return view_;
}

void Collection::InstallCells(const std::shared_ptr<const CellIndex>& cells,
                              absl::Span<const std::string> deleted) {
  const auto hidden_before = AddHiddenRows(*cells, deleted, nullptr);
  while (true) {
    const std::shared_ptr<const Retriever> retriever = view().retriever;
    auto hidden = AddHiddenRows(*cells, IdsNotIn(*retriever, *cells), hidden_before);
    std::shared_ptr<const CellIndex> former;  // destroyed after the lock is released: it is large
    const std::lock_guard<std::mutex> guard(mutex_);
    if (view_.retriever != retriever) continue;
    // The gallery of an earlier version still has them.
    hidden = AddHiddenRows(*cells, IdsDeletedAfter(cells->items_version(), deletions_), hidden);
    former = std::exchange(view_.cells, cells);
    view_.quality = nullptr;
    view_.cells_problem = absl::OkStatus();
    view_.hidden_in_cells = std::move(hidden);
    return;
  }
}

void Collection::EndCells(const absl::Status& problem) {
  const std::lock_guard<std::mutex> guard(mutex_);
  FinishLoad();
  view_.cells_problem = problem;
}

void Collection::InstallQuality(const CellIndex* cells,
                                std::shared_ptr<const CellQuality> quality) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (view_.cells.get() == cells) view_.quality = std::move(quality);
}

std::optional<Collection::PendingChange> Collection::TakeState(const CollectionState& state) {
  const std::lock_guard<std::mutex> guard(mutex_);
  SetItems(state.items, state.latest_version);
  const uint64_t version = view_.retriever == nullptr ? 0 : view_.retriever->version();
  const bool new_embedding = state.embedding_version > version;
  const bool new_items = state.latest_version > view_.adopted_version;
  // Probably the embedding that is being built here: compared again when the build ends.
  if (building_ && (new_embedding || new_items)) outdated_ = true;
  if (new_embedding ? building_ : view_.retriever == nullptr || !new_items) return std::nullopt;
  if (new_embedding) ++loads_;
  return PendingChange{.retriever = new_embedding ? nullptr : view_.retriever,
                       .after = view_.adopted_version};
}

void Collection::EndLoad() {
  const std::lock_guard<std::mutex> guard(mutex_);
  FinishLoad();
}

void Collection::AdoptDeletions(const PendingChange& change, uint64_t latest_version,
                                absl::Span<const DeletedItem> deleted) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (view_.retriever != change.retriever) return;
  Hide(deleted);
  RecordDuringLoads(deleted);
  view_.adopted_version = latest_version;
}

}  // namespace privatemail::server
