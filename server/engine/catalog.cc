#include "server/engine/catalog.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

// The store's NOT_FOUND names a UUID.
template <typename Result>
Result NameInNotFound(Result result, const CollectionView& collection) {
  if (!absl::IsNotFound(result.status())) return result;
  return NoSuchCollection(collection.published->name);
}

}  // namespace

Catalog::Catalog(std::unique_ptr<Store> store, std::string directory)
    : store_(std::move(store)),
      directory_(std::move(directory)),
      preparer_(store_.get(), &registry_),
      synchronizer_(store_.get(), &registry_, &preparer_),
      builder_(store_.get(), &registry_, &synchronizer_, directory_) {}

absl::StatusOr<std::unique_ptr<Catalog>> Catalog::Open(std::unique_ptr<Store> store,
                                                       std::string directory, RefreshReport report,
                                                       const CatalogOptions& options) {
  auto catalog = std::unique_ptr<Catalog>(new Catalog(std::move(store), std::move(directory)));
  catalog->SetOptions(options);
  PM_ASSIGN_OR_RETURN(catalog->problems_, catalog->synchronizer_.Load());
  catalog->watch_ = catalog->store_->Watch(
      [synchronizer = &catalog->synchronizer_] { return synchronizer->Refresh(); },
      std::move(report));
  return catalog;
}

absl::StatusOr<CollectionView> Catalog::Create(NewCollection collection) {
  PM_RETURN_IF_ERROR(CheckCollectionName(collection.name));
  PM_RETURN_IF_ERROR(CheckCellCode(!collection.cells.empty(), collection.cell_code.has_value()));
  // Before the training, which takes long.
  if (!collection.cells.empty()) PM_RETURN_IF_ERROR(CheckNewName(collection.name));
  PM_ASSIGN_OR_RETURN(StoredCollection stored, PrepareCollection(std::move(collection)));
  return synchronizer_.Create(std::move(stored));
}

absl::StatusOr<CollectionView> Catalog::Restore(StoredCollection collection,
                                                Store::GallerySource items) {
  PM_RETURN_IF_ERROR(CheckCollectionName(collection.name));
  PM_RETURN_IF_ERROR(CheckSnapshotParameters(collection));
  PM_RETURN_IF_ERROR(ImportCollection(*store_, &collection, items));
  // Without a lock, because it can take minutes. The result is adopted like another daemon's.
  const absl::Status refreshed = synchronizer_.Refresh();
  const absl::StatusOr<CollectionView> view = Find(collection.name);
  const std::string& uuid = collection.parameters.collection_uuid;
  if (view.ok() && view->published->parameters.collection_uuid == uuid) return view;
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
  const PublishedCollection& published = *collection.published;
  auto result = NameInNotFound(store_->Upsert(published.parameters, items), collection);
  if (result.ok()) registry_.RecordItems(published, result->items, result->latest_version);
  return result;
}

absl::StatusOr<DeleteResult> Catalog::DeleteItems(const CollectionView& collection,
                                                  absl::Span<const std::string> ids) {
  const PublishedCollection& published = *collection.published;
  auto result = NameInNotFound(store_->DeleteItems(published.parameters, ids), collection);
  if (!result.ok()) return result;
  registry_.RecordDeletion(published, result->items,
                           {result->latest_version, {ids.begin(), ids.end()}});
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

}  // namespace privatemail::server
