#include "server/engine/catalog.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/background_queue.h"
#include "common/base/status_macros.h"
#include "server/engine/label_agreement.h"
#include "server/engine/row_file.h"

namespace privatemail::server {
namespace {

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

absl::Status DeletedDuringBuild(absl::string_view name) {
  return absl::AbortedError(
      absl::StrCat("collection ", name, " was deleted while it was being built"));
}

}  // namespace

Catalog::Catalog(std::unique_ptr<Store> store, std::string directory, CellsPreparer::Warn warn)
    : store_(std::move(store)),
      directory_(std::move(directory)),
      preparer_(store_.get(), &registry_, directory_, warn),
      synchronizer_(store_.get(), &registry_, &preparer_, warn) {}

absl::StatusOr<std::unique_ptr<Catalog>> Catalog::Open(std::unique_ptr<Store> store,
                                                       std::string directory, RefreshReport report,
                                                       const CatalogOptions& options,
                                                       CellsPreparer::Warn warn) {
  auto catalog = std::unique_ptr<Catalog>(
      new Catalog(std::move(store), std::move(directory), std::move(warn)));
  catalog->SetOptions(options);
  PM_ASSIGN_OR_RETURN(catalog->problems_, catalog->synchronizer_.Load());
  catalog->watch_ = catalog->store_->Watch(
      [synchronizer = &catalog->synchronizer_] { return synchronizer->Refresh(); },
      std::move(report));
  return catalog;
}

absl::StatusOr<CollectionView> Catalog::Create(NewCollection collection,
                                               const CancelledFunction& cancelled) {
  PM_RETURN_IF_ERROR(CheckCollectionName(collection.name));
  PM_RETURN_IF_ERROR(CheckCellCode(!collection.cells.empty(), collection.cell_code.has_value()));
  PM_RETURN_IF_ERROR(CheckNewName(collection.name));  // before the training, which takes long
  PM_ASSIGN_OR_RETURN(StoredCollection stored, PrepareCollection(std::move(collection), cancelled));
  PM_RETURN_IF_ERROR(registry_.CheckMemory("this one", MemoryOf(stored.parameters)));
  return synchronizer_.Create(std::move(stored), cancelled);
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
  PM_RETURN_IF_ERROR(registry_.CheckMemory("this one", memory));
  PM_RETURN_IF_ERROR(ImportCollection(*store_, &collection, items));
  // Without a lock, because it can take minutes. The result is adopted like another daemon's.
  const absl::Status refreshed = synchronizer_.Refresh();
  const absl::StatusOr<CollectionView> view = Find(collection.name);
  const std::string& uuid = collection.parameters.collection_uuid;
  if (view.ok() && view->published->parameters.collection_uuid == uuid) {
    synchronizer_.LoadRows(*view);  // the caller may search at once
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

absl::StatusOr<UpsertResult> Catalog::Upsert(const CollectionView& collection,
                                             absl::Span<const Item> items) {
  PM_ASSIGN_OR_RETURN(const auto published, FixDimension(collection, items));
  if (collection.encrypted != nullptr) {
    PM_RETURN_IF_ERROR(
        collection.encrypted->CheckMemoryFor(items, static_cast<int64_t>(collection.items)));
  }
  auto result = NameInNotFound(store_->Upsert(published->parameters, items), collection);
  if (!result.ok()) return result;
  registry_.RecordItems(*published, result->items, result->latest_version);
  PM_RETURN_IF_ERROR(synchronizer_.CatchUpRows(*published));
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
  return registry_.SetDimension(published, dimension);
}

absl::StatusOr<DeleteResult> Catalog::DeleteItems(const CollectionView& collection,
                                                  absl::Span<const std::string> ids) {
  const PublishedCollection& published = *collection.published;
  auto result = NameInNotFound(store_->DeleteItems(published.parameters, ids), collection);
  if (!result.ok()) return result;
  registry_.RecordDeletion(published, result->items, result->latest_version, ids);
  PM_RETURN_IF_ERROR(synchronizer_.CatchUpRows(published));
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
                                               LabelCheck label_check) {
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
    if (label_check == LabelCheck::kOn && parameters.HasClasses()) {
      PM_ASSIGN_OR_RETURN(
          const LabelAgreement agreement,
          CompareLabels(*points, gallery.labels, anchors.labels, [&] { return poll(0); }));
      PM_RETURN_IF_ERROR(CheckLabelsAgree(agreement));
    }
    return Embed(parameters, anchors, std::move(gallery), std::move(points), observer);
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

Catalog::LabelCheck Catalog::ResolveLabelCheck(const CollectionView& view, LabelCheck label_check) {
  const std::string& uuid = view.published->parameters.collection_uuid;
  const std::lock_guard<std::mutex> guard(unchecked_mutex_);
  if (label_check == LabelCheck::kAsBefore) {
    return unchecked_.count(uuid) != 0 ? LabelCheck::kOff : LabelCheck::kOn;
  }
  if (label_check == LabelCheck::kOff) unchecked_.insert(uuid);
  if (label_check == LabelCheck::kOn) unchecked_.erase(uuid);
  return label_check;
}

absl::Status Catalog::RunBuild(const CollectionRegistry::EntryPtr& entry,
                               const StepObserver& observer, int64_t memory,
                               LabelCheck label_check) {
  const CollectionView view = registry_.ViewOf(*entry);
  const PublishedCollection& published = *view.published;
  const StepObserver watch = [&](double done, int steps) -> absl::Status {
    if (registry_.IsRemoved(*entry)) return DeletedDuringBuild(published.name);
    return observer ? observer(done, steps) : absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(watch(0, published.parameters.settings.steps));
  PM_RETURN_IF_ERROR(registry_.ReserveForBuild(
      entry.get(), Retriever::MemoryFor(static_cast<int64_t>(view.items),
                                        published.parameters.settings.embedding_dim)));
  absl::StatusOr<Embedding> embedding;
  RunAtLowPriority(
      [&] { embedding = EmbedStored(view, watch, memory, label_check); });  // searches come first
  if (absl::IsNotFound(embedding.status())) return DeletedDuringBuild(published.name);
  PM_RETURN_IF_ERROR(embedding.status());
  PM_RETURN_IF_ERROR(registry_.ReserveForBuild(entry.get(), Retriever::MemoryFor(*embedding)));
  const absl::StatusOr<uint64_t> version = store_->SaveEmbedding(published.parameters, *embedding);
  if (absl::IsNotFound(version.status())) return DeletedDuringBuild(published.name);
  PM_RETURN_IF_ERROR(version.status());
  embedding->version = *version;
  // It is stored. If the rest fails, the Refresh after the build adopts it.
  absl::Cleanup refresh = [&] { registry_.MarkOutdated(entry.get()); };
  auto deleted = store_->DeletedSince(published.parameters, *version, /*after=*/0);
  if (absl::IsNotFound(deleted.status())) return DeletedDuringBuild(published.name);
  PM_RETURN_IF_ERROR(deleted.status());
  if (!synchronizer_.Install(entry, *std::move(embedding),
                             deleted->value_or(std::vector<DeletedItem>()))) {
    return DeletedDuringBuild(published.name);
  }
  std::move(refresh).Cancel();
  return absl::OkStatus();
}

absl::StatusOr<CollectionView> Catalog::Build(absl::string_view name, const StepObserver& observer,
                                              int64_t memory, LabelCheck label_check) {
  if (store_->read_only()) PM_RETURN_IF_ERROR(store_->TryWritable());  // before the long work
  PM_ASSIGN_OR_RETURN(const CollectionRegistry::EntryPtr entry, registry_.BeginBuild(name));
  bool outdated = false;
  // Also after an exception, such as std::bad_alloc.
  auto end = absl::MakeCleanup([&] { outdated = registry_.EndBuild(entry.get()); });
  const absl::Status outcome =
      RunBuild(entry, observer, memory, ResolveLabelCheck(registry_.ViewOf(*entry), label_check));
  std::move(end).Invoke();
  // If the store is unavailable now, its watch refreshes later.
  if (outdated) synchronizer_.Refresh().IgnoreError();
  PM_RETURN_IF_ERROR(outcome);
  return registry_.ViewOf(*entry);
}

}  // namespace privatemail::server
