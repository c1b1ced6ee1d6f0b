#include "server/engine/collection_registry.h"

#include <algorithm>
#include <set>
#include <string>
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

struct CollectionRegistry::Entry {
  CollectionView view;
  int64_t key = 0;               // in the store; 0: created here, not reported by the store yet
  uint64_t adopted_version = 0;  // deletions of other daemons are hidden up to here
  int loads = 0;
  std::vector<DeletedItem> deletions;  // during loads
  bool building = false;
  int64_t reserved = 0;   // bytes of the build's retriever beyond those of the one that it replaces
  bool outdated = false;  // another daemon saved an embedding during the build
  bool removed = false;
};

CatalogOptions CollectionRegistry::options() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return options_;
}

void CollectionRegistry::SetOptions(const CatalogOptions& options) {
  const std::lock_guard<std::mutex> guard(mutex_);
  options_ = options;
}

absl::Status CollectionRegistry::CheckMemory(absl::string_view purpose, int64_t bytes,
                                             int64_t replaced) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return CheckMemoryLocked(purpose, bytes, replaced);
}

bool CollectionRegistry::CacheEvaluationKeys(const std::string& digest,
                                             EvaluationKeyCache::Handle keys) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto bytes = static_cast<int64_t>(lattice::EvaluationKeys::Memory(keys->delta));
  const int64_t room = options_.resident_memory - CollectionMemoryLocked();
  if (bytes > room) return false;
  evaluation_keys_.Add(digest, std::move(keys), room);
  return true;
}

absl::Status CollectionRegistry::ReserveForBuild(Entry* entry, int64_t bytes) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const int64_t replaced = entry->view.retriever == nullptr ? 0 : entry->view.retriever->memory();
  const std::string purpose =
      absl::StrCat("the embedding of collection ", entry->view.published->name);
  PM_RETURN_IF_ERROR(CheckMemoryLocked(purpose, bytes, replaced + entry->reserved));
  entry->reserved = std::max(int64_t{0}, bytes - replaced);
  return absl::OkStatus();
}

int64_t CollectionRegistry::CollectionMemoryLocked() const {
  int64_t bytes = 0;
  for (const auto& [name, entry] : entries_) {
    bytes += entry->view.resident_memory() + entry->reserved;
  }
  return bytes;
}

absl::Status CollectionRegistry::CheckMemoryLocked(absl::string_view purpose, int64_t bytes,
                                                   int64_t replaced) const {
  const int64_t all = bytes - replaced + CollectionMemoryLocked();
  const int64_t limit = options_.resident_memory;
  if (all + evaluation_keys_.bytes() > limit) evaluation_keys_.Clear();  // searchers have them
  if (all <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "memory of all collections in bytes with ", purpose, " is at least ", all, ", of it ", bytes,
      " for that, more than the limit of ", limit,
      " (max_resident_memory): delete collections or raise it, then try again or restart"));
}

absl::StatusOr<CollectionView> CollectionRegistry::Find(absl::string_view name) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return NoSuchCollection(name);
  return found->second->view;
}

std::vector<CollectionView> CollectionRegistry::List() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<CollectionView> views;
  views.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) views.push_back(entry->view);
  return views;
}

CollectionView CollectionRegistry::ViewOf(const Entry& entry) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return entry.view;
}

bool CollectionRegistry::IsRemoved(const Entry& entry) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return entry.removed;
}

CollectionRegistry::EntryPtr CollectionRegistry::FindEntry(
    const PublishedCollection& published) const {
  const auto found = entries_.find(published.name);
  const bool same =
      found != entries_.end() && found->second->view.published->parameters.collection_uuid ==
                                     published.parameters.collection_uuid;
  return same ? found->second : nullptr;
}

CollectionRegistry::EntryPtr CollectionRegistry::Add(StoredCollection collection) {
  const std::string name = collection.name;
  const auto entry = std::make_shared<Entry>();
  entry->key = collection.key;
  SetItems(collection.items, collection.latest_version, entry.get());
  entry->view.published = Publish(std::move(collection));
  if (entry->view.published->parameters.with_encrypted) {
    entry->view.encrypted = std::make_shared<EncryptedCollection>([this, name](int64_t bytes) {
      return CheckMemory(absl::StrCat("the rows of collection ", name), bytes);
    });
  }
  EntryPtr former = entry;  // destroyed after the lock is released: it is large
  const std::lock_guard<std::mutex> guard(mutex_);
  std::swap(entries_[name], former);
  return entry;
}

void CollectionRegistry::Remove(absl::string_view name) {
  EntryPtr former;  // destroyed after the lock is released: it is large
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  found->second->removed = true;
  former = std::move(found->second);
  entries_.erase(found);
}

void CollectionRegistry::SetItems(uint64_t items, uint64_t latest_version, Entry* entry) {
  if (latest_version < entry->view.latest_version) return;  // a later change came first
  entry->view.items = items;
  entry->view.latest_version = latest_version;
}

void CollectionRegistry::Hide(absl::Span<const DeletedItem> deleted, Entry* entry) {
  CollectionView& view = entry->view;
  if (view.retriever != nullptr) {
    view.hidden = AddHiddenRows(
        *view.retriever, IdsDeletedAfter(view.retriever->items_version(), deleted), view.hidden);
  }
  if (view.cells != nullptr) {
    view.hidden_in_cells = AddHiddenRows(
        *view.cells, IdsDeletedAfter(view.cells->items_version(), deleted), view.hidden_in_cells);
  }
}

void CollectionRegistry::RecordDuringLoads(absl::Span<const DeletedItem> deleted, Entry* entry) {
  if (entry->loads == 0) return;
  entry->deletions.insert(entry->deletions.end(), deleted.begin(), deleted.end());
}

void CollectionRegistry::FinishLoad(Entry* entry) {
  if (--entry->loads == 0) entry->deletions.clear();
}

absl::StatusOr<std::shared_ptr<const PublishedCollection>> CollectionRegistry::SetDimension(
    const PublishedCollection& published, int64_t dimension) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const EntryPtr entry = FindEntry(published);
  if (entry == nullptr) return NoSuchCollection(published.name);
  if (entry->view.published->parameters.feature_dim == 0) {
    auto changed = std::make_shared<PublishedCollection>(*entry->view.published);
    changed->parameters.feature_dim = dimension;
    changed->fingerprint = Fingerprint(changed->parameters);
    entry->view.published = std::move(changed);
  }
  return entry->view.published;
}

std::shared_ptr<const PublishedCollection> CollectionRegistry::FindWithoutDimension(
    const CollectionState& state) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = entries_.find(state.name);
  if (found == entries_.end() || state.latest_version == 0) return nullptr;
  const auto& published = found->second->view.published;
  const bool lacks =
      published->parameters.collection_uuid == state.uuid && published->parameters.feature_dim == 0;
  return lacks ? published : nullptr;
}

void CollectionRegistry::RecordItems(const PublishedCollection& published, uint64_t items,
                                     uint64_t latest_version) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (const auto entry = FindEntry(published)) SetItems(items, latest_version, entry.get());
}

void CollectionRegistry::RecordDeletion(const PublishedCollection& published, uint64_t items,
                                        uint64_t latest_version,
                                        absl::Span<const std::string> ids) {
  std::vector<DeletedItem> deleted;
  for (const std::string& id : ids) deleted.push_back({id, latest_version});
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto entry = FindEntry(published);
  if (entry == nullptr) return;
  SetItems(items, latest_version, entry.get());
  Hide(deleted, entry.get());
  RecordDuringLoads(deleted, entry.get());
}

absl::StatusOr<CollectionRegistry::EntryPtr> CollectionRegistry::BeginBuild(
    absl::string_view name) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return NoSuchCollection(name);
  Entry& entry = *found->second;
  PM_RETURN_IF_ERROR(CheckHasAnchors(name, entry.view.published->parameters));
  if (entry.building) {
    return absl::AbortedError(
        absl::StrCat("collection ", name, " is being built already: wait for that build to end"));
  }
  if (entry.view.items == 0) {
    return absl::FailedPreconditionError(absl::StrCat("collection ", name, " has no items"));
  }
  entry.building = true;
  ++entry.loads;
  return found->second;
}

void CollectionRegistry::MarkOutdated(Entry* entry) {
  const std::lock_guard<std::mutex> guard(mutex_);
  entry->outdated = true;
}

bool CollectionRegistry::EndBuild(Entry* entry) {
  const std::lock_guard<std::mutex> guard(mutex_);
  entry->building = false;
  entry->reserved = 0;
  FinishLoad(entry);
  return std::exchange(entry->outdated, false);
}

bool CollectionRegistry::InstallRetriever(Entry* entry, std::shared_ptr<const Retriever> retriever,
                                          absl::Span<const DeletedItem> deleted) {
  const CollectionView before = ViewOf(*entry);
  const std::shared_ptr<const CellIndex>& cells = before.cells;
  std::vector<std::string> missing;  // few: a search for each, under the lock
  if (cells != nullptr) missing = IdsNotIn(*retriever, *cells, before.hidden_in_cells.get());
  // Destroyed after the lock is released: the former one is large.
  std::shared_ptr<const Retriever> former = std::move(retriever);
  const std::lock_guard<std::mutex> guard(mutex_);
  if (entry->removed) return false;
  CollectionView& view = entry->view;
  if (view.retriever != nullptr && view.retriever->version() >= former->version()) return true;
  std::swap(view.retriever, former);
  view.embedding_problem = absl::OkStatus();
  view.hidden = nullptr;
  Hide(deleted, entry);
  Hide(entry->deletions, entry);
  // For a cell index that is being built from earlier items.
  RecordDuringLoads(deleted, entry);
  if (view.cells == nullptr) return true;
  // Runs under the lock only if another cell index was installed since, which is rare.
  if (view.cells != cells) missing = IdsNotIn(*view.retriever, *view.cells);
  view.hidden_in_cells = AddHiddenRows(*view.cells, missing, view.hidden_in_cells);
  return true;
}

std::optional<CollectionView> CollectionRegistry::BeginCells(Entry* entry) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const CollectionView& view = entry->view;
  // After several builds in a row, the first job already includes the items of the last.
  const bool up_to_date =
      view.cells != nullptr && view.cells->embedding_version() >= view.retriever->version();
  if (entry->removed || up_to_date) return std::nullopt;
  ++entry->loads;
  return view;
}

void CollectionRegistry::InstallCells(Entry* entry, const std::shared_ptr<const CellIndex>& cells,
                                      absl::Span<const std::string> deleted) {
  const auto hidden_before = AddHiddenRows(*cells, deleted, nullptr);
  while (true) {
    const std::shared_ptr<const Retriever> retriever = ViewOf(*entry).retriever;
    auto hidden = AddHiddenRows(*cells, IdsNotIn(*retriever, *cells), hidden_before);
    std::shared_ptr<const CellIndex> former;  // destroyed after the lock is released: it is large
    const std::lock_guard<std::mutex> guard(mutex_);
    CollectionView& view = entry->view;
    if (view.retriever != retriever) continue;
    // The gallery of an earlier version still has them.
    hidden =
        AddHiddenRows(*cells, IdsDeletedAfter(cells->items_version(), entry->deletions), hidden);
    former = std::exchange(view.cells, cells);
    view.quality = nullptr;
    view.cells_problem = absl::OkStatus();
    view.hidden_in_cells = std::move(hidden);
    return;
  }
}

void CollectionRegistry::InstallQuality(Entry* entry, const CellIndex* cells,
                                        std::shared_ptr<const CellQuality> quality) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (entry->view.cells.get() == cells) entry->view.quality = std::move(quality);
}

void CollectionRegistry::EndCells(Entry* entry, const absl::Status& problem) {
  const std::lock_guard<std::mutex> guard(mutex_);
  FinishLoad(entry);
  entry->view.cells_problem = problem;
}

void CollectionRegistry::SetEmbeddingProblem(Entry* entry, const absl::Status& problem) {
  const std::lock_guard<std::mutex> guard(mutex_);
  entry->view.embedding_problem = problem;
}

std::vector<CollectionState> CollectionRegistry::RemoveUnlisted(
    const std::vector<CollectionState>& states) {
  std::vector<EntryPtr> former;  // destroyed after the lock is released: they are large
  std::map<std::string, const CollectionState*> by_name;
  for (const CollectionState& state : states) by_name[state.name] = &state;
  std::set<std::string> known;
  const std::lock_guard<std::mutex> guard(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const std::string& uuid = entry->second->view.published->parameters.collection_uuid;
    const auto state = by_name.find(entry->first);
    int64_t& key = entry->second->key;
    // The UUID alone does not do: a restored collection may have that of a deleted one.
    if (state != by_name.end() && state->second->uuid == uuid &&
        (key == 0 || key == state->second->key)) {
      key = state->second->key;
      known.insert(uuid);
      ++entry;
    } else {
      entry->second->removed = true;
      former.push_back(std::move(entry->second));
      entry = entries_.erase(entry);
    }
  }
  std::vector<CollectionState> unknown;
  for (const CollectionState& state : states) {
    if (known.count(state.uuid) == 0) unknown.push_back(state);
  }
  return unknown;
}

std::optional<CollectionRegistry::PendingChange> CollectionRegistry::Compare(
    const CollectionState& state) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = entries_.find(state.name);
  if (found == entries_.end()) return std::nullopt;
  Entry& entry = *found->second;
  const CollectionView& view = entry.view;
  if (view.published->parameters.collection_uuid != state.uuid) return std::nullopt;
  SetItems(state.items, state.latest_version, &entry);
  const uint64_t version = view.retriever == nullptr ? 0 : view.retriever->version();
  const bool new_embedding = state.embedding_version > version;
  const bool new_items = state.latest_version > entry.adopted_version;
  // Probably the embedding that is being built here: compared again when the build ends.
  if (entry.building && (new_embedding || new_items)) entry.outdated = true;
  if (new_embedding ? entry.building : view.retriever == nullptr || !new_items) return std::nullopt;
  if (new_embedding) ++entry.loads;
  return PendingChange{.entry = found->second,
                       .new_embedding = new_embedding,
                       .retriever = new_embedding ? nullptr : view.retriever,
                       .after = entry.adopted_version};
}

void CollectionRegistry::EndLoad(Entry* entry) {
  const std::lock_guard<std::mutex> guard(mutex_);
  FinishLoad(entry);
}

void CollectionRegistry::AdoptDeletions(const PendingChange& change, uint64_t latest_version,
                                        absl::Span<const DeletedItem> deleted) {
  Entry& entry = *change.entry;
  const std::lock_guard<std::mutex> guard(mutex_);
  if (entry.view.retriever != change.retriever) return;
  Hide(deleted, &entry);
  RecordDuringLoads(deleted, &entry);
  entry.adopted_version = latest_version;
}

}  // namespace privatemail::server
