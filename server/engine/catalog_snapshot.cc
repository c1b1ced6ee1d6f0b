// How a collection leaves a catalog for a snapshot, and comes back.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/engine/catalog.h"
#include "server/engine/publish.h"
#include "server/store/uuid.h"

namespace privatemail::server {
namespace {

// The blocks' checksums say that they are what was written, not that it made sense.
absl::Status CheckParameters(const StoredCollection& collection) {
  const PublicParameters& given = collection.parameters;
  const auto made = MakePublicParameters(given.collection_uuid, given.settings, collection.anchors,
                                         given.class_names, given.extractor, given.cell_partitions,
                                         given.cell_code, given.cell_codebook);
  if (!made.ok()) return absl::DataLossError(absl::StrCat("snapshot: ", made.status().message()));
  if (Fingerprint(*made) == Fingerprint(given)) return absl::OkStatus();
  return absl::DataLossError("snapshot: its parameters are not those of its anchors");
}

}  // namespace

absl::Status Catalog::ReadGallery(const CollectionView& collection,
                                  Store::GalleryVisitor visit) const {
  const absl::Status read = store_->ReadGallery(collection.published->parameters, visit);
  if (absl::IsNotFound(read)) return NoSuchCollection(collection.published->name);
  return read;
}

absl::Status Catalog::CheckNewName(absl::string_view name) const {
  PM_RETURN_IF_ERROR(CheckName(name));
  if (!Find(name).ok()) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("collection ", name, " exists already"));
}

absl::StatusOr<bool> Catalog::IsFree(const std::string& uuid) {
  PM_ASSIGN_OR_RETURN(const std::vector<CollectionState> states, store_->ListStates());
  for (const CollectionState& state : states) {
    if (state.uuid == uuid) return false;
  }
  return true;
}

absl::Status Catalog::Import(StoredCollection* collection, Store::GallerySource items) {
  std::string& uuid = collection->parameters.collection_uuid;
  PM_ASSIGN_OR_RETURN(const bool keep, IsFree(uuid));
  if (keep) {
    const absl::Status imported = store_->Import(*collection, items);
    // It may be the UUID that another daemon has just taken; if it is the name, the next says so.
    if (!absl::IsAlreadyExists(imported)) return imported;
  }
  PM_ASSIGN_OR_RETURN(uuid, NewUuid());
  collection->latest_version = 0;
  return store_->Import(*collection, items);
}

absl::StatusOr<CollectionView> Catalog::Restore(StoredCollection collection,
                                                Store::GallerySource items) {
  PM_RETURN_IF_ERROR(CheckName(collection.name));
  PM_RETURN_IF_ERROR(CheckParameters(collection));
  PM_RETURN_IF_ERROR(Import(&collection, items));
  // Without a lock until here: it may have taken minutes. Now it is taken over as if another daemon
  // had made it, which, in a shared store, may have deleted it already.
  const absl::Status refreshed = Refresh();
  const absl::StatusOr<CollectionView> view = Find(collection.name);
  const std::string& uuid = collection.parameters.collection_uuid;
  if (view.ok() && view->published->parameters.collection_uuid == uuid) return view;
  PM_RETURN_IF_ERROR(refreshed);
  return absl::AbortedError(
      absl::StrCat("collection ", collection.name, " was deleted as soon as it was restored"));
}

}  // namespace privatemail::server
