// How a catalog follows what other daemons do to the same store.
#include <map>
#include <set>
#include <utility>

#include "common/base/status_macros.h"
#include "server/engine/catalog.h"
#include "server/engine/publish.h"

namespace privatemail::server {

absl::Status Catalog::Refresh() {
  const std::lock_guard<std::mutex> refresh(refresh_mutex_);
  std::vector<CollectionState> states;
  absl::Status outcome;
  {
    // No Create or Delete of this catalog falls between the list and what is made of it.
    const std::lock_guard<std::mutex> administration(administration_mutex_);
    PM_ASSIGN_OR_RETURN(states, store_->ListStates());
    outcome.Update(AdoptCollections(states));
  }
  // One that cannot be read does not keep the others from being taken over.
  for (const CollectionState& state : states) outcome.Update(AdoptState(state));
  return outcome;
}

absl::Status Catalog::AdoptCollections(const std::vector<CollectionState>& states) {
  // Freed after the lock: what they hold is large.
  std::vector<std::shared_ptr<Entry>> former;
  std::map<std::string, const CollectionState*> stored_as;
  for (const CollectionState& state : states) stored_as[state.name] = &state;
  std::set<std::string> known;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const std::string& uuid = entry->second->view.published->parameters.collection_uuid;
      const auto state = stored_as.find(entry->first);
      int64_t& key = entry->second->key;
      // A restored collection may have the UUID of the deleted one that is known here.
      if (state != stored_as.end() && state->second->uuid == uuid &&
          (key == 0 || key == state->second->key)) {
        key = state->second->key;
        known.insert(uuid);
        ++entry;
      } else {
        entry->second->deleted = true;
        former.push_back(std::move(entry->second));
        entry = entries_.erase(entry);
      }
    }
  }
  absl::Status outcome;
  for (const CollectionState& state : states) {
    if (known.count(state.uuid) > 0) continue;
    absl::StatusOr<StoredCollection> stored = store_->LoadCollection(state.uuid);
    if (absl::IsNotFound(stored.status())) continue;  // gone again: that will be told, too
    outcome.Update(stored.status());
    if (!stored.ok()) continue;
    auto entry = std::make_shared<Entry>();
    entry->key = stored->key;
    entry->view.published = Publish(*std::move(stored));
    const std::lock_guard<std::mutex> guard(mutex_);
    std::swap(entries_[state.name], entry);
    former.push_back(std::move(entry));
  }
  return outcome;
}

absl::Status Catalog::AdoptState(const CollectionState& state) {
  std::shared_ptr<Entry> entry;
  bool new_embedding = false;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = entries_.find(state.name);
    if (found == entries_.end()) return absl::OkStatus();
    entry = found->second;
    const CollectionView& view = entry->view;
    if (view.published->parameters.collection_uuid != state.uuid) return absl::OkStatus();
    SetItems(state.items, state.latest_version, entry.get());
    const uint64_t version = view.retriever == nullptr ? 0 : view.retriever->version();
    new_embedding = state.embedding_version > version;
    if (entry->building && (new_embedding || state.latest_version > entry->adopted_version)) {
      // Most likely what is being built here: looked at again when that has ended.
      entry->outdated = true;
    }
    if (new_embedding && entry->building) return absl::OkStatus();
    if (new_embedding) ++entry->loads;
  }
  if (!new_embedding) return AdoptDeletions(state, entry.get());
  const absl::Status outcome = AdoptEmbedding(entry);
  const std::lock_guard<std::mutex> guard(mutex_);
  EndLoad(entry.get());
  return outcome;
}

absl::Status Catalog::AdoptEmbedding(const std::shared_ptr<Entry>& entry) {
  const PublishedCollection& published = *entry->view.published;  // never changes
  absl::StatusOr<std::optional<Embedding>> embedding = store_->LoadEmbedding(published.parameters);
  if (absl::IsNotFound(embedding.status())) return absl::OkStatus();  // that will be told, too
  PM_RETURN_IF_ERROR(embedding.status());
  if (!embedding->has_value()) return absl::OkStatus();
  const std::vector<std::string> deleted = std::move((*embedding)->deleted);
  const std::shared_ptr<const Retriever> retriever =
      MakeRetriever(published, **std::move(embedding), options().index);
  const Gone gone = FindGone(*retriever, *entry);
  PM_ASSIGN_OR_RETURN(const uint64_t told, VersionNow(published));
  std::shared_ptr<const Retriever> former;  // freed after the lock: it is large
  const std::lock_guard<std::mutex> guard(mutex_);
  former = entry->view.retriever;
  Install(retriever, {told, deleted}, gone, entry.get());
  MakeLater(entry);
  return absl::OkStatus();
}

absl::Status Catalog::AdoptDeletions(const CollectionState& state, Entry* entry) {
  std::shared_ptr<const Retriever> retriever;
  uint64_t adopted = 0;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    retriever = entry->view.retriever;
    adopted = entry->adopted_version;
  }
  if (retriever == nullptr || state.latest_version <= adopted) return absl::OkStatus();
  const PublicParameters& parameters = entry->view.published->parameters;
  const auto deleted = store_->DeletedSince(parameters, retriever->version(), adopted);
  if (absl::IsNotFound(deleted.status())) return absl::OkStatus();
  PM_RETURN_IF_ERROR(deleted.status());
  // Another embedding has come into the store: one that will be told of, or one that was built here
  // from a gallery without these or whose build looks again at its end.
  if (!deleted->has_value()) return absl::OkStatus();
  const std::lock_guard<std::mutex> guard(mutex_);
  if (entry->view.retriever != retriever) return absl::OkStatus();  // as above
  Hide(**deleted, entry);
  if (entry->loads > 0) entry->deletions.push_back({state.latest_version, **deleted});
  entry->adopted_version = state.latest_version;
  return absl::OkStatus();
}

}  // namespace privatemail::server
