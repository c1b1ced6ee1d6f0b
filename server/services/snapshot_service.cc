// CollectionsService: snapshots of whole collections.
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "server/services/collection_state.h"
#include "server/services/collections_service.h"
#include "server/snapshot/snapshot_io.h"

namespace privatemail::server {
namespace {

// Decouples store and caller: neither blocks the other, and only complete snapshots are used.
absl::StatusOr<std::unique_ptr<ScratchFile>> CreateScratchFile(const Catalog& catalog) {
  return ScratchFile::Create(catalog.directory(), "a snapshot");
}

absl::Status Append(absl::string_view bytes, const Limits& limits, ByteQuota::Reservation* disk,
                    ScratchFile* file) {
  PM_RETURN_IF_ERROR(disk->Take(static_cast<int64_t>(bytes.size()), limits.max_snapshot_bytes));
  return file->Append(bytes);
}

// Fails before the first write if the feature vectors alone exceed the limit.
absl::Status CheckFeatureBytes(const CollectionView& collection, const Limits& limits,
                               const ByteQuota::Reservation& disk) {
  const int64_t row_bytes =
      collection.published->parameters.feature_dim * static_cast<int64_t>(sizeof(float));
  return disk.Check(static_cast<int64_t>(collection.items) * row_bytes, limits.max_snapshot_bytes);
}

absl::Status Send(const ScratchFile& file, Call& call) {
  v1::SnapshotCollectionResponse response;
  std::string& piece = *response.mutable_data();
  for (int64_t at = 0; at < file.size(); at += static_cast<int64_t>(piece.size())) {
    constexpr int64_t kPieceBytes = kSnapshotPieceBytes;
    piece.resize(static_cast<size_t>(std::min(kPieceBytes, file.size() - at)));
    PM_RETURN_IF_ERROR(file.Read(at, piece.size(), piece.data()));
    PM_RETURN_IF_ERROR(call.Write(response));
  }
  return absl::OkStatus();
}

absl::Status Snapshot(const Catalog& catalog, ByteQuota* budget, Call& call,
                      const std::string& name) {
  PM_ASSIGN_OR_RETURN(const CollectionView view, catalog.Find(name));
  ByteQuota::Reservation disk(budget);
  PM_RETURN_IF_ERROR(CheckFeatureBytes(view, call.limits(), disk));
  PM_ASSIGN_OR_RETURN(const std::unique_ptr<ScratchFile> file, CreateScratchFile(catalog));
  const auto write = [&](absl::string_view block) -> absl::Status {
    PM_RETURN_IF_ERROR(call.StreamStatus());
    return Append(block, call.limits(), &disk, file.get());
  };
  PM_ASSIGN_OR_RETURN(const uint64_t items, WriteSnapshot(catalog, view, write));
  PM_RETURN_IF_ERROR(Send(*file, call));
  call.AddRows(items);
  return absl::OkStatus();
}

absl::Status CheckLimits(const v1::SnapshotCollection& head, const Limits& limits) {
  constexpr uint64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
  PM_RETURN_IF_ERROR(CheckLimit("number of items of the snapshot",
                                static_cast<int64_t>(std::min(head.items(), kMaxInt64)),
                                limits.max_items, "max_items"));
  return CheckAnchorLimits(" of the snapshot", head.parameters().anchor_count(),
                           head.parameters().feature_dim(), limits);
}

// Copies the whole stream to `file` and validates it; the result has the name of the messages.
absl::StatusOr<StoredCollection> ReceiveSnapshot(
    Call& call, const std::function<absl::Status(const std::string&)>& check_name,
    ByteQuota::Reservation* disk, ScratchFile* file) {
  SnapshotParser snapshot(
      {[&](const v1::SnapshotCollection& head) { return CheckLimits(head, call.limits()); },
       [](const Gallery&) { return absl::OkStatus(); }});
  v1::RestoreCollectionRequest message;
  std::string name;
  for (int64_t number = 0; call.Read(&message); ++number) {
    PM_RETURN_IF_ERROR(call.RecordAndCheckAccess(message));
    if (number == 0) {
      name = message.collection();
      // Before the caller sends the rest in vain.
      PM_RETURN_IF_ERROR(check_name(name));
    }
    PM_RETURN_IF_ERROR(
        CheckSameCollection(name, message.collection(), number, "nothing is stored"));
    PM_RETURN_IF_ERROR(snapshot.Read(message.data()));
    PM_RETURN_IF_ERROR(Append(message.data(), call.limits(), disk, file));
  }
  // Read returns false for a broken stream as well.
  PM_RETURN_IF_ERROR(call.StreamStatus());
  PM_RETURN_IF_ERROR(CheckNotEmpty("collection", name));
  PM_ASSIGN_OR_RETURN(StoredCollection collection, snapshot.Finish());
  collection.name = std::move(name);
  return collection;
}

}  // namespace

absl::Status CollectionsService::CheckCollectionQuota(const Limits& limits) const {
  return CheckLimit("number of collections with this one",
                    static_cast<int64_t>(catalog_->List().size()) + reserved_ + 1,
                    limits.max_collections, "max_collections");
}

absl::Status CollectionsService::ReserveCollection(const Limits& limits) {
  const std::lock_guard<std::mutex> guard(create_mutex_);
  PM_RETURN_IF_ERROR(CheckCollectionQuota(limits));
  ++reserved_;
  return absl::OkStatus();
}

absl::Status CollectionsService::Restore(Call& call, v1::RestoreCollectionResponse* response) {
  ByteQuota::Reservation disk(&snapshot_bytes_);
  PM_ASSIGN_OR_RETURN(const std::unique_ptr<ScratchFile> file, CreateScratchFile(*catalog_));
  const auto check_name = [&](const std::string& name) -> absl::Status {
    PM_RETURN_IF_ERROR(catalog_->CheckNewName(name));
    return CheckCollectionQuota(call.limits());
  };
  PM_ASSIGN_OR_RETURN(StoredCollection collection,
                      ReceiveSnapshot(call, check_name, &disk, file.get()));
  PM_RETURN_IF_ERROR(ReserveCollection(call.limits()));
  const auto end = absl::MakeCleanup([this] { ReleaseCollection(); });
  const auto items = [&](Store::GalleryPartVisitor visit) {
    return ReadSnapshotItems(*file, [&](Gallery part) -> absl::Status {
      PM_RETURN_IF_ERROR(call.StreamStatus());
      return visit(std::move(part));
    });
  };
  PM_ASSIGN_OR_RETURN(const CollectionView view, catalog_->Restore(std::move(collection), items));
  call.AddRows(view.items);
  CollectionToProto(view, response->mutable_collection());
  return absl::OkStatus();
}

void CollectionsService::ServeSnapshots(Dispatcher* dispatcher) {
  dispatcher->Serve<v1::SnapshotCollectionRequest>(
      "SnapshotCollection", [this](Call& call, const auto& request) {
        return Snapshot(*catalog_, &snapshot_bytes_, call, request.collection());
      });
  dispatcher->ServeUpload<v1::RestoreCollectionRequest, v1::RestoreCollectionResponse>(
      "RestoreCollection", [this](Call& call, auto* restored) { return Restore(call, restored); });
}

}  // namespace privatemail::server
