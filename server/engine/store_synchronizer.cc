#include "server/engine/store_synchronizer.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/cancellation.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

std::shared_ptr<const Retriever> CreateRetriever(const PublishedCollection& published,
                                                 Embedding embedding) {
  return std::make_shared<const Retriever>(published.parameters, published.anchors.labels,
                                           std::move(embedding));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> StoreSynchronizer::Load() {
  PM_ASSIGN_OR_RETURN(std::vector<StoredCollection> stored, store_->LoadCollections());
  std::vector<std::string> problems;
  // Small collections do not wait for large ones.
  std::sort(stored.begin(), stored.end(), [](const auto& a, const auto& b) {
    return std::pair(a.items, a.name) < std::pair(b.items, b.name);
  });
  std::vector<CollectionRegistry::EntryPtr> built;
  for (StoredCollection& collection : stored) {
    absl::StatusOr<std::optional<Embedding>> embedding =
        store_->LoadEmbedding(collection.parameters);
    if (absl::IsNotFound(embedding.status())) continue;  // another daemon has just deleted it
    if (absl::IsDataLoss(embedding.status())) {
      // A build can replace it, and the other collections are not affected.
      problems.push_back(absl::StrCat(
          "collection ", collection.name,
          " is not built: its embedding cannot be read: ", embedding.status().message()));
      embedding = std::nullopt;
    }
    PM_RETURN_IF_ERROR(embedding.status());
    const CollectionRegistry::EntryPtr entry = registry_->Add(std::move(collection));
    if (!embedding->has_value()) continue;
    const CollectionView view = registry_->ViewOf(*entry);
    const absl::Status fits = CheckMemory(view.published->name, Retriever::MemoryFor(**embedding));
    registry_->SetEmbeddingProblem(entry.get(), fits);
    if (!fits.ok()) problems.emplace_back(fits.message());
    if (!fits.ok()) continue;
    const std::vector<DeletedItem> deleted = std::move((*embedding)->deleted);
    registry_->InstallRetriever(entry.get(),
                                CreateRetriever(*view.published, **std::move(embedding)), deleted);
    built.push_back(entry);
  }
  for (const auto& entry : built) preparer_->Schedule(entry);
  for (const CollectionView& view : registry_->List()) {
    if (view.encrypted != nullptr && view.published->parameters.feature_dim > 0) loader_.Add(view);
  }
  return problems;
}

absl::Status StoreSynchronizer::CheckMemory(absl::string_view name, int64_t bytes,
                                            int64_t replaced) const {
  return registry_->CheckMemory(absl::StrCat("the embedding of collection ", name), bytes,
                                replaced);
}

absl::StatusOr<CollectionView> StoreSynchronizer::Create(StoredCollection collection,
                                                         const CancelledFunction& cancelled) {
  const std::lock_guard<std::mutex> administration(administration_mutex_);
  PM_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
  PM_RETURN_IF_ERROR(store_->Create(collection));
  return registry_->ViewOf(*registry_->Add(std::move(collection)));
}

absl::StatusOr<uint64_t> StoreSynchronizer::Delete(absl::string_view name) {
  const std::lock_guard<std::mutex> administration(administration_mutex_);
  PM_ASSIGN_OR_RETURN(const CollectionView view, registry_->Find(name));
  const absl::StatusOr<uint64_t> items = store_->Delete(view.published->parameters.collection_uuid);
  // Another daemon may have deleted it; Refresh will remove it here.
  if (absl::IsNotFound(items.status())) return NoSuchCollection(name);
  PM_RETURN_IF_ERROR(items.status());
  registry_->Remove(name);
  return items;
}

bool StoreSynchronizer::Install(const CollectionRegistry::EntryPtr& entry, Embedding embedding,
                                absl::Span<const DeletedItem> deleted) {
  const CollectionView view = registry_->ViewOf(*entry);
  auto retriever = CreateRetriever(*view.published, std::move(embedding));
  if (!registry_->InstallRetriever(entry.get(), std::move(retriever), deleted)) return false;
  preparer_->Schedule(entry);
  return true;
}

absl::Status StoreSynchronizer::Refresh() {
  const std::lock_guard<std::mutex> refresh(refresh_mutex_);
  std::vector<CollectionState> states;
  absl::Status outcome;
  {
    // No Create or Delete may run between the listing and its adoption.
    const std::lock_guard<std::mutex> administration(administration_mutex_);
    PM_ASSIGN_OR_RETURN(states, store_->ListStates());
    outcome.Update(AdoptCollections(states));
  }
  for (const CollectionState& state : states) outcome.Update(AdoptState(state));
  return outcome;
}

absl::Status StoreSynchronizer::AdoptCollections(const std::vector<CollectionState>& states) {
  absl::Status outcome;
  for (const CollectionState& state : registry_->RemoveUnlisted(states)) {
    absl::StatusOr<StoredCollection> stored = store_->LoadCollection(state.uuid);
    if (absl::IsNotFound(stored.status())) continue;  // deleted again: the next Refresh sees it
    outcome.Update(stored.status());
    if (!stored.ok()) continue;
    registry_->Add(*std::move(stored));
  }
  return outcome;
}

absl::Status StoreSynchronizer::AdoptState(const CollectionState& state) {
  PM_RETURN_IF_ERROR(AdoptDimension(state));
  absl::Status outcome = AdoptEmbeddingState(state);
  outcome.Update(AdoptRows(state));
  return outcome;
}

absl::Status StoreSynchronizer::AdoptEmbeddingState(const CollectionState& state) {
  const std::optional<CollectionRegistry::PendingChange> change = registry_->Compare(state);
  if (!change.has_value()) return absl::OkStatus();
  if (!change->new_embedding) return AdoptDeletions(*change, state.latest_version);
  const absl::Cleanup end = [&] { registry_->EndLoad(change->entry.get()); };
  return AdoptEmbedding(change->entry);
}

absl::Status StoreSynchronizer::AdoptRows(const CollectionState& state) {
  const absl::StatusOr<CollectionView> view = registry_->Find(state.name);
  if (!view.ok() || view->encrypted == nullptr) return absl::OkStatus();
  const PublicParameters& parameters = view->published->parameters;
  if (parameters.collection_uuid != state.uuid || parameters.feature_dim == 0) {
    return absl::OkStatus();
  }
  const std::shared_ptr<const EncryptedRows> rows = view->encrypted->rows();
  if (rows == nullptr) {
    loader_.Add(*view);  // without delaying what else is adopted
    return absl::OkStatus();
  }
  const bool is_present =
      rows->collection == state.key && rows->items_version >= state.latest_version;
  return is_present ? absl::OkStatus() : CatchUpRows(*view);
}

absl::Status StoreSynchronizer::CatchUpRows(const CollectionView& view) {
  const PublicParameters& parameters = view.published->parameters;
  if (view.encrypted == nullptr || parameters.feature_dim == 0) return absl::OkStatus();
  const absl::Status status = view.encrypted->CatchUp(*store_, parameters);
  // Deleted since, which the next Refresh sees.
  if (absl::IsNotFound(status)) return absl::OkStatus();
  if (status.ok() || view.encrypted->rows() != nullptr) return status;
  // Searches are refused, so that none finds what was deleted. The loader says why.
  loader_.Add(view);
  return absl::OkStatus();
}

absl::Status StoreSynchronizer::CatchUpRows(const PublishedCollection& of) {
  const absl::StatusOr<CollectionView> view = registry_->Find(of.name);
  // Deleted since the write, which is acknowledged all the same.
  if (!view.ok() || view->published->parameters.collection_uuid != of.parameters.collection_uuid) {
    return absl::OkStatus();
  }
  return CatchUpRows(*view);
}

void StoreSynchronizer::LoadRows(const CollectionView& view) {
  const PublicParameters& parameters = view.published->parameters;
  if (view.encrypted == nullptr || parameters.feature_dim == 0) return;
  const std::atomic<bool> stopped = false;
  if (!view.encrypted->Load(*store_, parameters, stopped).ok()) loader_.Add(view);
}

absl::Status StoreSynchronizer::AdoptDimension(const CollectionState& state) {
  const auto published = registry_->FindWithoutDimension(state);
  if (published == nullptr) return absl::OkStatus();
  const absl::StatusOr<StoredCollection> stored = store_->LoadCollection(state.uuid);
  if (absl::IsNotFound(stored.status())) return absl::OkStatus();  // the next Refresh sees it
  PM_RETURN_IF_ERROR(stored.status());
  const auto set = registry_->SetDimension(*published, stored->parameters.feature_dim);
  return absl::IsNotFound(set.status()) ? absl::OkStatus() : set.status();
}

absl::Status StoreSynchronizer::AdoptEmbedding(const CollectionRegistry::EntryPtr& entry) {
  const CollectionView view = registry_->ViewOf(*entry);
  absl::StatusOr<std::optional<Embedding>> embedding =
      store_->LoadEmbedding(view.published->parameters);
  if (absl::IsNotFound(embedding.status())) return absl::OkStatus();  // the next Refresh sees it
  PM_RETURN_IF_ERROR(embedding.status());
  if (!embedding->has_value()) return absl::OkStatus();
  PM_RETURN_IF_ERROR(CheckMemory(view.published->name, Retriever::MemoryFor(**embedding),
                                 view.retriever == nullptr ? 0 : view.retriever->memory()));
  const std::vector<DeletedItem> deleted = std::move((*embedding)->deleted);
  Install(entry, **std::move(embedding), deleted);
  return absl::OkStatus();
}

absl::Status StoreSynchronizer::AdoptDeletions(const CollectionRegistry::PendingChange& change,
                                               uint64_t latest_version) {
  const CollectionView view = registry_->ViewOf(*change.entry);
  const auto deleted =
      store_->DeletedSince(view.published->parameters, change.retriever->version(), change.after);
  if (absl::IsNotFound(deleted.status())) return absl::OkStatus();
  PM_RETURN_IF_ERROR(deleted.status());
  // Empty: the store has another embedding. Its adoption, or the end of its build here, hides them.
  if (deleted->has_value()) registry_->AdoptDeletions(change, latest_version, **deleted);
  return absl::OkStatus();
}

}  // namespace privatemail::server
