#include "server/engine/catalog.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "server/engine/label_agreement.h"
#include "server/engine/row_file.h"

namespace privatemail::server {
namespace {

constexpr int64_t kEvaluationKeyBytes = int64_t{256} << 20;  // of some hundred sessions

int64_t MemoryOfKeys(const lattice::EvaluationKeys& keys) {
  return static_cast<int64_t>(lattice::EvaluationKeys::Memory(keys.delta));
}

// The store's NOT_FOUND names a UUID.
template <typename Result>
Result NameInNotFound(Result result, const CollectionView& collection) {
  if (!absl::IsNotFound(result.status())) return result;
  return NoSuchCollection(collection.published->name);
}

// The number of features of the first valid item; 0: there is none.
int64_t DimensionOfFirst(absl::Span<const Item> items, PublicParameters parameters) {
  for (const Item& item : items) {
    parameters.feature_dim = std::ssize(item.features);
    if (Validate(parameters).ok() && CheckItem(item, parameters).ok()) {
      return parameters.feature_dim;
    }
  }
  return 0;
}

std::string EmbeddingOf(const PublishedCollection& published) {
  return absl::StrCat("the embedding of collection ", published.name);
}

absl::Status CheckCanBeSharded(const PublishedCollection& published) {
  const PublicParameters& parameters = published.parameters;
  if (!parameters.HasClasses() || parameters.settings.label_graph == LabelGraphKind::kBalanced) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "collection ", published.name,
      " cannot be built by shards: only with the label graph that is balanced by class do the "
      "embeddings of all shards have their classes at the same places; create it anew with that "
      "graph, or serve it from daemons without the setting shard"));
}

std::shared_ptr<const Retriever> MakeRetriever(const PublishedCollection& published,
                                               Embedding embedding) {
  return std::make_shared<const Retriever>(published.parameters, published.anchors.labels,
                                           std::move(embedding));
}

absl::Status DeletedDuringBuild(absl::string_view name) {
  return absl::AbortedError(
      absl::StrCat("collection ", name, " was deleted while it was being built"));
}

}  // namespace

Catalog::Catalog(std::unique_ptr<Store> store, std::string directory, Warn warn)
    : store_(std::move(store)),
      directory_(std::move(directory)),
      warn_(std::move(warn)),
      evaluation_keys_({.bytes = kEvaluationKeyBytes}, MemoryOfKeys) {}

absl::StatusOr<std::unique_ptr<Catalog>> Catalog::Open(std::unique_ptr<Store> store,
                                                       std::string directory, RefreshReport report,
                                                       const CatalogOptions& options, Warn warn) {
  auto catalog = std::unique_ptr<Catalog>(
      new Catalog(std::move(store), std::move(directory), std::move(warn)));
  catalog->SetOptions(options);
  PM_RETURN_IF_ERROR(catalog->Load());
  catalog->watch_ = catalog->store_->Watch([catalog = catalog.get()] { return catalog->Refresh(); },
                                           std::move(report));
  return catalog;
}

absl::Status Catalog::Load() {
  PM_ASSIGN_OR_RETURN(std::vector<StoredCollection> stored, store_->LoadCollections());
  // Small collections do not wait for large ones.
  std::sort(stored.begin(), stored.end(), [](const auto& a, const auto& b) {
    return std::pair(a.items, a.name) < std::pair(b.items, b.name);
  });
  std::vector<CollectionPtr> built;
  for (StoredCollection& one : stored) {
    absl::StatusOr<std::optional<Embedding>> embedding = LoadEmbedding(one.parameters);
    if (absl::IsNotFound(embedding.status())) continue;  // another daemon has just deleted it
    if (absl::IsDataLoss(embedding.status())) {
      // A build can replace it, and the other collections are not affected.
      problems_.push_back(absl::StrCat(
          "collection ", one.name,
          " is not built: its embedding cannot be read: ", embedding.status().message()));
      embedding = std::nullopt;
    }
    PM_RETURN_IF_ERROR(embedding.status());
    const CollectionPtr collection = Add(std::move(one));
    if (embedding->has_value()) {
      const absl::Status fits = CheckMemory(EmbeddingOf(*collection->view().published),
                                            Retriever::MemoryFor(**embedding));
      collection->SetEmbeddingProblem(fits);
      if (!fits.ok()) problems_.emplace_back(fits.message());
      if (!fits.ok()) continue;
      Install(collection.get(), **std::move(embedding));
      built.push_back(collection);
    }
  }
  for (const CollectionPtr& collection : built) QueueCells(collection);
  for (const CollectionView& view : List()) QueueRows(view);
  QueueRemovals();
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Embedding>> Catalog::LoadEmbedding(
    const PublicParameters& parameters) const {
  if (options().is_front) return std::optional<Embedding>();
  return store_->LoadEmbedding(parameters);
}

CatalogOptions Catalog::options() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return options_;
}

void Catalog::SetOptions(const CatalogOptions& options) {
  const std::lock_guard<std::mutex> guard(mutex_);
  options_ = options;
}

absl::StatusOr<CollectionView> Catalog::Find(absl::string_view name) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = collections_.find(name);
  if (found == collections_.end()) return NoSuchCollection(name);
  return found->second->view();
}

std::vector<CollectionView> Catalog::List() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<CollectionView> views;
  for (const auto& [name, collection] : collections_) views.push_back(collection->view());
  return views;
}

Catalog::CollectionPtr Catalog::Add(StoredCollection stored) {
  const std::string name = stored.name;
  EncryptedCollection::MemoryCheck check = [this, name](int64_t bytes) {
    return CheckMemory(absl::StrCat("the rows of collection ", name), bytes);
  };
  if (options().is_front) check = nullptr;
  const auto collection = std::make_shared<Collection>(std::move(stored), std::move(check));
  CollectionPtr former = collection;  // destroyed after the lock is released: it is large
  const std::lock_guard<std::mutex> guard(mutex_);
  std::swap(collections_[name], former);
  return collection;
}

absl::Status Catalog::CheckMemory(absl::string_view purpose, int64_t bytes,
                                  int64_t replaced) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return CheckMemoryLocked(purpose, bytes, replaced);
}

int64_t Catalog::CollectionMemoryLocked() const {
  int64_t bytes = 0;
  for (const auto& [name, collection] : collections_) bytes += collection->memory();
  return bytes;
}

absl::Status Catalog::CheckMemoryLocked(absl::string_view purpose, int64_t bytes,
                                        int64_t replaced) const {
  const int64_t all = bytes - replaced + CollectionMemoryLocked();
  const int64_t limit = options_.resident_memory;
  if (all + evaluation_keys_.bytes() > limit) evaluation_keys_.Clear();  // searchers have them
  if (all <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("memory of all collections in bytes with ", purpose, " is at least ", all,
                   ", of it ", bytes, " for that, more than the limit of ", limit,
                   " (memory / 2): delete collections or raise memory, then try again or restart"));
}

absl::Status Catalog::ReserveForBuild(Collection* collection, int64_t bytes) {
  const std::lock_guard<std::mutex> guard(mutex_);
  collection->ReserveForBuild(0);
  const CollectionView view = collection->view();
  const int64_t replaced = view.retriever == nullptr ? 0 : view.retriever->memory();
  PM_RETURN_IF_ERROR(CheckMemoryLocked(EmbeddingOf(*view.published), bytes, replaced));
  collection->ReserveForBuild(std::max(int64_t{0}, bytes - replaced));
  return absl::OkStatus();
}

bool Catalog::CacheEvaluationKeys(const std::string& digest, EvaluationKeyCache::Handle keys,
                                  const std::string& caller) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const int64_t room = options_.resident_memory - CollectionMemoryLocked();
  return MemoryOfKeys(*keys) <= room &&
         evaluation_keys_.Insert(digest, std::move(keys), std::min(room, kEvaluationKeyBytes),
                                 caller);
}

absl::StatusOr<CollectionView> Catalog::Create(NewCollection collection,
                                               const CancelledFunction& cancelled) {
  PM_RETURN_IF_ERROR(CheckNewName(collection.name));  // before the training, which takes long
  PM_ASSIGN_OR_RETURN(StoredCollection stored, PrepareCollection(std::move(collection), cancelled));
  PM_RETURN_IF_ERROR(CheckMemory("this one", MemoryOf(stored.parameters)));
  PM_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
  // Without the lock: if another daemon restores a collection of this name, the store waits for it.
  PM_RETURN_IF_ERROR(store_->Create(stored));
  const std::lock_guard<std::mutex> administration(administration_mutex_);
  absl::StatusOr<CollectionView> adopted = Find(stored.name);  // by a Refresh since
  if (adopted.ok() &&
      adopted->published->parameters.collection_uuid == stored.parameters.collection_uuid) {
    return adopted;
  }
  return Add(std::move(stored))->view();
}

absl::StatusOr<CollectionView> Catalog::Restore(StoredCollection collection,
                                                Store::GallerySource items) {
  PM_RETURN_IF_ERROR(CheckCollectionName(collection.name));
  PM_RETURN_IF_ERROR(CheckSnapshotParameters(collection));
  int64_t memory = MemoryOf(collection.parameters);
  if (collection.parameters.with_encrypted) {
    memory += MinEncryptedMemory(static_cast<int64_t>(collection.items),
                                 collection.parameters.feature_dim);
  }
  PM_RETURN_IF_ERROR(CheckMemory("this one", memory));
  absl::Status imported = store_->Import(collection, items);
  if (absl::IsAlreadyExists(imported)) {  // if it is the name that is taken, so it is again
    PM_ASSIGN_OR_RETURN(collection.parameters.collection_uuid, NewUuid());
    collection.latest_version = 0;
    imported = store_->Import(collection, items);
  }
  if (!imported.ok()) QueueRemovals();
  PM_RETURN_IF_ERROR(imported);
  // Without a lock, because it can take minutes. The result is adopted like another daemon's.
  const absl::Status refreshed = Refresh();
  const absl::StatusOr<CollectionView> view = Find(collection.name);
  const std::string& uuid = collection.parameters.collection_uuid;
  if (view.ok() && view->published->parameters.collection_uuid == uuid) {
    if (view->encrypted != nullptr && view->published->parameters.feature_dim > 0) {
      // The caller may search at once.
      const std::atomic<bool> stopped = false;
      if (!view->encrypted->Load(*store_, view->published->parameters, stopped).ok()) {
        QueueRows(*view);
      }
    }
    return view;
  }
  PM_RETURN_IF_ERROR(refreshed);
  return absl::AbortedError(
      absl::StrCat("collection ", collection.name, " was deleted as soon as it was restored"));
}

absl::Status Catalog::CheckNewName(absl::string_view name) const {
  PM_RETURN_IF_ERROR(CheckCollectionName(name));
  if (!Find(name).ok()) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("collection ", name, " exists already"));
}

absl::StatusOr<uint64_t> Catalog::Delete(absl::string_view name) {
  const std::lock_guard<std::mutex> administration(administration_mutex_);
  PM_ASSIGN_OR_RETURN(const CollectionView view, Find(name));
  const absl::StatusOr<uint64_t> items = store_->Delete(view.published->parameters.collection_uuid);
  // Another daemon may have deleted it; Refresh will remove it here.
  if (absl::IsNotFound(items.status())) return NoSuchCollection(name);
  PM_RETURN_IF_ERROR(items.status());
  view.collection->Remove();
  QueueRemovals();
  const std::lock_guard<std::mutex> guard(mutex_);
  collections_.erase(view.published->name);
  return items;
}

void Catalog::QueueRemovals() {
  const auto remove = [this](const std::atomic<bool>& /*stopped*/) {
    // After a failure (a full disk) the next deletion or start goes on.
    const absl::StatusOr<bool> more = store_->RemoveSomeRows();
    if (more.ok() && *more) QueueRemovals();
  };
  // Writers take their turns in between, and collections are loaded first.
  loads_.Add(remove, absl::Milliseconds(5), std::numeric_limits<uint64_t>::max());
}

absl::StatusOr<UpsertResult> Catalog::Upsert(const CollectionView& collection,
                                             absl::Span<const Item> all) {
  PM_ASSIGN_OR_RETURN(const auto published, FixDimension(collection, all));
  std::vector<UpsertResult::Rejection> rejected;
  std::vector<Item> valid;  // copies only if others are rejected
  for (size_t i = 0; i < all.size(); ++i) {
    if (const absl::Status status = CheckItem(all[i], published->parameters); !status.ok()) {
      if (rejected.empty()) valid.assign(all.begin(), all.begin() + static_cast<ptrdiff_t>(i));
      rejected.push_back({i, std::string(status.message())});
    } else if (!rejected.empty()) {
      valid.push_back(all[i]);
    }
  }
  const absl::Span<const Item> items = rejected.empty() ? all : absl::MakeConstSpan(valid);
  if (collection.encrypted != nullptr) {
    PM_RETURN_IF_ERROR(
        collection.encrypted->CheckMemoryFor(items, static_cast<int64_t>(collection.items)));
  }
  auto result = NameInNotFound(store_->Upsert(published->parameters, items), collection);
  if (!result.ok()) return result;
  result->rejected = std::move(rejected);
  collection.collection->RecordItems(result->items, result->latest_version);
  PM_RETURN_IF_ERROR(FollowWrite(*collection.collection));
  return result;
}

absl::StatusOr<std::shared_ptr<const PublishedCollection>> Catalog::FixDimension(
    const CollectionView& collection, absl::Span<const Item> items) {
  const PublishedCollection& published = *collection.published;
  if (published.parameters.feature_dim > 0) return collection.published;
  const int64_t first = DimensionOfFirst(items, published.parameters);
  if (first == 0) return collection.published;
  // Another first upsert, perhaps of another daemon, may have fixed another dimension.
  PM_ASSIGN_OR_RETURN(
      const int64_t dimension,
      NameInNotFound(store_->FixDimension(published.parameters.collection_uuid, first),
                     collection));
  return collection.collection->Extend(dimension);
}

absl::Status Catalog::AppendClassNames(const CollectionView& collection,
                                       const std::vector<std::string>& names) {
  const PublicParameters& parameters = collection.published->parameters;
  if (parameters.HasClasses()) {
    return InvalidField("class_names", "must not be given in a collection with classes");
  }
  if (names == parameters.class_names) return absl::OkStatus();
  const absl::Status appended = store_->AppendClassNames(parameters.collection_uuid, names);
  if (absl::IsNotFound(appended)) return NoSuchCollection(collection.published->name);
  if (absl::IsAborted(appended)) {  // a caller who fetches them again gets those of the store
    LoadParameters(collection).IgnoreError();
  }
  PM_RETURN_IF_ERROR(appended);
  return collection.collection->Extend(0, names).status();
}

absl::StatusOr<DeleteResult> Catalog::DeleteItems(const CollectionView& collection,
                                                  absl::Span<const std::string> ids) {
  auto result =
      NameInNotFound(store_->DeleteItems(collection.published->parameters, ids), collection);
  if (!result.ok()) return result;
  collection.collection->RecordDeletion(result->items, result->latest_version, ids);
  PM_RETURN_IF_ERROR(FollowWrite(*collection.collection));
  return result;
}

absl::Status Catalog::ReadGallery(const CollectionView& collection,
                                  Store::GalleryVisitor visit) const {
  const absl::Status read = store_->ReadGallery(collection.published->parameters, visit);
  if (absl::IsNotFound(read)) return NoSuchCollection(collection.published->name);
  return read;
}

absl::StatusOr<std::vector<Item>> Catalog::GetItems(const CollectionView& collection,
                                                    absl::Span<const std::string> ids) const {
  return NameInNotFound(store_->GetItems(collection.published->parameters, ids), collection);
}

absl::StatusOr<ItemPage> Catalog::ScrollItems(const CollectionView& collection,
                                              const std::optional<PayloadFilter>& filter,
                                              absl::string_view after, int64_t limit) const {
  return NameInNotFound(store_->ScrollItems(collection.published->parameters, filter, after, limit),
                        collection);
}

absl::StatusOr<uint64_t> Catalog::CountItems(const CollectionView& collection,
                                             const std::optional<PayloadFilter>& filter,
                                             const std::function<bool()>& cancelled) const {
  return NameInNotFound(store_->CountItems(collection.published->parameters, filter, cancelled),
                        collection);
}

absl::StatusOr<ChangesSinceEmbedding> Catalog::CountChanges(
    const CollectionView& collection) const {
  return NameInNotFound(store_->CountChanges(collection.published->parameters), collection);
}

absl::StatusOr<Embedding> Catalog::EmbedStored(const CollectionView& view,
                                               const StepObserver& observer, int64_t memory,
                                               bool check_labels) {
  const PublicParameters& parameters = view.published->parameters;
  const Anchors& anchors = view.published->anchors;
  const ProductObserver poll =
      OncePerSecond([&](double) { return observer(0, parameters.settings.steps); });
  const int64_t iterate_bytes = view.build_memory(CollectionView::Features::kInFile);
  const Store::LoadWatch watch = [&](int64_t bytes) -> absl::Status {
    PM_RETURN_IF_ERROR(poll(0));
    return CheckBuildMemory("this build", iterate_bytes + bytes, memory);
  };
  const auto embed = [&](Gallery gallery,
                         std::shared_ptr<const PointSource> points) -> absl::StatusOr<Embedding> {
    if (check_labels && parameters.HasClasses()) {
      PM_ASSIGN_OR_RETURN(
          const LabelAgreement agreement,
          CompareLabels(*points, gallery.labels, anchors.labels, [&] { return poll(0); }));
      PM_RETURN_IF_ERROR(CheckLabelsAgree(agreement));
    }
    return Embed(parameters, anchors, std::move(gallery), observer, std::move(points));
  };
  if (view.build_memory(CollectionView::Features::kInMemory) <= memory) {
    PM_ASSIGN_OR_RETURN(Gallery gallery, store_->LoadGallery(parameters, watch));
    PM_ASSIGN_OR_RETURN(UnitPoints rows,
                        UnitPoints::Create(std::move(gallery.features), anchors.features));
    return embed(std::move(gallery), std::make_shared<UnitPoints>(std::move(rows)));
  }
  PM_ASSIGN_OR_RETURN(SpooledGallery gallery,
                      SpoolGallery(*store_, parameters, anchors, directory_, watch));
  return embed(std::move(gallery.columns), std::move(gallery.points));
}

absl::Status Catalog::RunBuild(const CollectionPtr& collection, const StepObserver& observer,
                               int64_t memory, bool check_labels, uint64_t version) {
  const CollectionView view = collection->view();
  const PublishedCollection& published = *view.published;
  const StepObserver watch = [&](double done, int steps) -> absl::Status {
    if (collection->removed()) return DeletedDuringBuild(published.name);
    collection->SetBuildShare(done / steps);
    return observer ? observer(done, steps) : absl::OkStatus();
  };
  const int steps = published.parameters.settings.steps;
  PM_RETURN_IF_ERROR(watch(0, steps));
  PM_RETURN_IF_ERROR(ReserveForBuild(
      collection.get(), Retriever::MemoryFor(static_cast<int64_t>(view.items),
                                             published.parameters.settings.embedding_dim)));
  absl::StatusOr<Embedding> embedding;
  RunAtLowPriority(
      [&] { embedding = EmbedStored(view, watch, memory, check_labels); });  // searches come first
  PM_RETURN_IF_ERROR(embedding.status());
  PM_RETURN_IF_ERROR(ReserveForBuild(collection.get(), Retriever::MemoryFor(*embedding)));
  embedding->version = version;
  PM_ASSIGN_OR_RETURN(embedding->version, store_->SaveEmbedding(published.parameters, *embedding));
  // It is stored. If the rest fails, the Refresh after the build adopts it.
  absl::Cleanup refresh = [&] { collection->MarkOutdated(); };
  const auto retriever = MakeRetriever(published, *std::move(embedding));
  const ProductObserver poll = OncePerSecond([&](double) { return watch(steps, steps); });
  PM_RETURN_IF_ERROR(
      store_->TakeOver(published.parameters, retriever->version(), [&] { return poll(0); }));
  PM_ASSIGN_OR_RETURN(const auto deleted, store_->DeletedSince(published.parameters,
                                                               retriever->version(), /*after=*/0));
  if (!collection->InstallRetriever(retriever, deleted.value_or(std::vector<DeletedItem>()))) {
    return DeletedDuringBuild(published.name);
  }
  QueueCells(collection);
  std::move(refresh).Cancel();
  return absl::OkStatus();
}

absl::StatusOr<CollectionView> Catalog::Build(absl::string_view name, const StepObserver& observer,
                                              int64_t memory, LabelCheck label_check,
                                              uint64_t version) {
  if (store_->read_only()) PM_RETURN_IF_ERROR(store_->TryWritable());  // before the long work
  absl::StatusOr<CollectionView> found = Find(name);
  PM_RETURN_IF_ERROR(found.status());
  const CollectionPtr collection = CollectionView(*std::move(found)).collection;
  if (store_->is_shard()) {
    PM_RETURN_IF_ERROR(CheckCanBeSharded(*collection->view().published));
    if (version == 0) {
      return absl::FailedPreconditionError(
          "a shard builds together with all others: start the build at a front");
    }
  }
  PM_RETURN_IF_ERROR(collection->BeginBuild(/*needs_items=*/!store_->is_shard()));
  bool outdated = false;
  // Also after an exception, such as std::bad_alloc.
  auto end = absl::MakeCleanup([&] { outdated = collection->EndBuild(); });
  if (label_check != LabelCheck::kAsBefore) {
    collection->accepts_labels() = label_check == LabelCheck::kOff;
  }
  const absl::Status outcome =
      RunBuild(collection, observer, memory, !collection->accepts_labels(), version);
  std::move(end).Invoke();
  // If the store is unavailable now, its watch refreshes later.
  if (outdated) Refresh().IgnoreError();
  if (absl::IsNotFound(outcome)) return DeletedDuringBuild(name);
  PM_RETURN_IF_ERROR(outcome);
  return collection->view();
}

bool Catalog::Install(Collection* collection, Embedding embedding) {
  const std::vector<DeletedItem> deleted = std::move(embedding.deleted);
  const uint64_t until = embedding.deleted_until;
  const auto published = collection->view().published;
  return collection->InstallRetriever(MakeRetriever(*published, std::move(embedding)), deleted,
                                      until);
}

absl::Status Catalog::Refresh() {
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

absl::Status Catalog::AdoptCollections(const std::vector<CollectionState>& states) {
  std::map<std::string, CollectionPtr, std::less<>> known;
  std::vector<const CollectionState*> unknown;
  unknown.reserve(states.size());  // an exception below would lose collections
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (const CollectionState& state : states) {
      const auto found = collections_.find(state.name);
      if (found != collections_.end() && found->second->TakeKeyOf(state)) {
        known.insert(collections_.extract(found));
      } else {
        unknown.push_back(&state);
      }
    }
    known.swap(collections_);
  }
  // The others are destroyed without the lock: they are large.
  for (const auto& [name, collection] : known) collection->Remove();
  if (!known.empty() && store_->is_shard()) QueueRemovals();
  absl::Status outcome;
  for (const CollectionState* state : unknown) {
    absl::StatusOr<StoredCollection> stored = store_->LoadCollection(state->uuid);
    if (absl::IsNotFound(stored.status())) continue;  // deleted again: the next Refresh sees it
    outcome.Update(stored.status());
    if (stored.ok()) Add(*std::move(stored));
  }
  return outcome;
}

absl::Status Catalog::AdoptState(const CollectionState& state) {
  const absl::StatusOr<CollectionView> view = Find(state.name);
  if (!view.ok() || !view->collection->TakeKeyOf(state)) return absl::OkStatus();
  PM_RETURN_IF_ERROR(AdoptParameters(state, *view));
  absl::Status outcome = AdoptChange(state, view->collection);
  outcome.Update(AdoptRows(state, view->collection->view()));
  return outcome;
}

// A daemon, perhaps another one, has fixed a dimension or appended class names. The latest version
// tells neither: names need no item, and a write here may have a later one.
absl::Status Catalog::AdoptParameters(const CollectionState& state, const CollectionView& view) {
  if (view.published->parameters.HasClasses() ||
      view.collection->adopted_parameters_bytes == state.parameters_bytes) {
    return absl::OkStatus();
  }
  PM_RETURN_IF_ERROR(LoadParameters(view));
  view.collection->adopted_parameters_bytes = state.parameters_bytes;
  return absl::OkStatus();
}

absl::Status Catalog::LoadParameters(const CollectionView& view) {
  const absl::StatusOr<StoredCollection> stored =
      store_->LoadCollection(view.published->parameters.collection_uuid);
  if (absl::IsNotFound(stored.status())) return absl::OkStatus();  // the next Refresh sees it
  PM_RETURN_IF_ERROR(stored.status());
  view.collection->Extend(stored->parameters.feature_dim, stored->parameters.class_names)
      .IgnoreError();  // removed since
  return absl::OkStatus();
}

absl::Status Catalog::AdoptChange(const CollectionState& state, const CollectionPtr& collection) {
  const std::optional<Collection::PendingChange> change = collection->TakeState(state);
  if (!change.has_value()) return absl::OkStatus();
  if (change->retriever == nullptr) {
    const absl::Cleanup end = [&] { collection->EndLoad(); };
    return AdoptEmbedding(collection);
  }
  const auto deleted = store_->DeletedSince(collection->view().published->parameters,
                                            change->retriever->version(), change->after);
  if (absl::IsNotFound(deleted.status())) return absl::OkStatus();
  PM_RETURN_IF_ERROR(deleted.status());
  // Empty: the store has another embedding. Its adoption, or the end of its build here, hides them.
  if (deleted->has_value()) collection->AdoptDeletions(*change, state.latest_version, **deleted);
  return absl::OkStatus();
}

absl::Status Catalog::AdoptEmbedding(const CollectionPtr& collection) {
  const CollectionView view = collection->view();
  absl::StatusOr<std::optional<Embedding>> embedding = LoadEmbedding(view.published->parameters);
  if (absl::IsNotFound(embedding.status())) return absl::OkStatus();  // the next Refresh sees it
  PM_RETURN_IF_ERROR(embedding.status());
  if (!embedding->has_value()) return absl::OkStatus();
  PM_RETURN_IF_ERROR(CheckMemory(EmbeddingOf(*view.published), Retriever::MemoryFor(**embedding),
                                 view.retriever == nullptr ? 0 : view.retriever->memory()));
  if (Install(collection.get(), **std::move(embedding))) QueueCells(collection);
  return absl::OkStatus();
}

absl::Status Catalog::AdoptRows(const CollectionState& state, const CollectionView& view) {
  const auto rows = view.encrypted == nullptr ? nullptr : view.encrypted->rows();
  if (rows == nullptr) {
    QueueRows(view);  // without delaying what else is adopted
    return absl::OkStatus();
  }
  const bool is_present =
      rows->collection == state.key && rows->items_version >= state.latest_version;
  return is_present ? absl::OkStatus() : CatchUpRows(view);
}

absl::Status Catalog::FollowWrite(const Collection& collection) {
  // The write may have changed a restored collection with the UUID of this one.
  return collection.removed() ? Refresh() : CatchUpRows(collection.view());
}

absl::Status Catalog::CatchUpRows(const CollectionView& view) {
  const PublicParameters& parameters = view.published->parameters;
  if (view.encrypted == nullptr || parameters.feature_dim == 0 || view.collection->removed()) {
    return absl::OkStatus();
  }
  const absl::Status status = view.encrypted->CatchUp(*store_, parameters);
  // Deleted since, which the next Refresh sees.
  if (absl::IsNotFound(status)) return absl::OkStatus();
  if (status.ok()) return status;
  if (view.encrypted->rows() != nullptr) {
    // The write is stored: searches find it late, but not never.
    if (view.collection->ClaimCatchUp()) QueueCatchUp(view.collection);
    return status;
  }
  // Searches are refused, so that none finds what was deleted. QueueRows says why.
  QueueRows(view);
  return absl::OkStatus();
}

void Catalog::QueueCatchUp(std::weak_ptr<Collection> collection) {
  static constexpr absl::Duration kDelay = absl::Seconds(1);
  const auto catch_up = [this, weak = std::move(collection)](const std::atomic<bool>& stopped) {
    const CollectionPtr locked = weak.lock();
    if (locked == nullptr || stopped) return;
    locked->BeginCatchUp();
    CatchUpRows(locked->view()).IgnoreError();  // queued again
  };
  loads_.Add(catch_up, kDelay);
}

void Catalog::QueueRows(const CollectionView& view, absl::Duration delay) {
  static constexpr absl::Duration kFirstDelay = absl::Seconds(1), kMaxDelay = absl::Minutes(1);
  static constexpr int kFailingPart = 10;  // of the time, at most, goes to attempts that fail
  if (view.encrypted == nullptr || view.published->parameters.feature_dim == 0) return;
  if (!view.encrypted->AnnounceLoad()) return;  // queued already
  const auto load = [this, weak = std::weak_ptr(view.collection),
                     delay](const std::atomic<bool>& stopped) {
    const CollectionPtr collection = weak.lock();
    if (collection == nullptr || collection->removed()) return;
    const CollectionView view = collection->view();
    const Stopwatch running;
    const absl::Status status = view.encrypted->Load(*store_, view.published->parameters, stopped);
    view.encrypted->EndAnnouncedLoad();
    if (stopped || absl::IsNotFound(status) || view.encrypted->rows() != nullptr) return;
    if (warn_ && !status.ok() && delay == absl::ZeroDuration()) {
      warn_(absl::StrCat("encrypted searches of collection ", view.published->name,
                         " are refused, because its rows cannot be loaded: ", status.message()));
    }
    QueueRows(view, std::max(std::clamp(2 * delay, kFirstDelay, kMaxDelay),
                             kFailingPart * running.Elapsed()));
  };
  loads_.Add(load, delay, view.items);
}

}  // namespace privatemail::server
