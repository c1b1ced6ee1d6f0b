// What CollectionsService does with whole collections.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/engine/snapshot_io.h"
#include "server/services/collections_service.h"
#include "server/services/request.h"

namespace privatemail {
namespace {

absl::Status Snapshot(const Catalog& catalog, Call& call, const std::string& name,
                      MessageWriter<v1::SnapshotCollectionResponse>& writer) {
  PM_ASSIGN_OR_RETURN(const CollectionView view, catalog.Find(name));
  const auto watch = [&](int64_t bytes) -> absl::Status {
    PM_RETURN_IF_ERROR(call.StreamStatus());
    return CheckLimit("memory of this snapshot in bytes", bytes, call.limits().max_build_memory,
                      "max_build_memory");
  };
  PM_ASSIGN_OR_RETURN(const Gallery gallery, catalog.LoadGallery(view, watch));
  v1::SnapshotCollectionResponse response;
  const auto send = [&](absl::string_view bytes) -> absl::Status {
    for (size_t first = 0; first < bytes.size(); first += kSnapshotPieceBytes) {
      const absl::string_view piece = bytes.substr(first, kSnapshotPieceBytes);
      response.set_data(piece.data(), piece.size());
      if (writer.Write(response)) continue;
      PM_RETURN_IF_ERROR(call.StreamStatus());
      return absl::CancelledError("the caller stopped reading");
    }
    return absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(WriteSnapshot(*view.published, gallery, send));
  call.AddRows(gallery.ids.size());
  return absl::OkStatus();
}

absl::Status CheckLimits(const v1::SnapshotCollection& head, const Limits& limits) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  PM_RETURN_IF_ERROR(CheckLimit("number of items of the snapshot",
                                static_cast<int64_t>(std::min(head.items(), kMost)),
                                limits.max_items, "max_items"));
  PM_RETURN_IF_ERROR(CheckLimit("number of anchors of the snapshot",
                                head.parameters().anchor_count(), limits.max_anchors,
                                "max_anchors"));
  return CheckLimit("number of dimensions of the snapshot", head.parameters().feature_dim(),
                    limits.max_dims, "max_dims");
}

absl::Status CheckCollections(const Catalog& catalog, const Limits& limits) {
  return CheckLimit("number of collections with this one",
                    static_cast<int64_t>(catalog.List().size()) + 1, limits.max_collections,
                    "max_collections");
}

// Reads the whole stream; what it holds gets the name that the messages say.
absl::StatusOr<SnapshotContents> Receive(const Catalog& catalog, Call& call,
                                         MessageReader<v1::RestoreCollectionRequest>& reader) {
  SnapshotCollector snapshot(
      [&](const v1::SnapshotCollection& head) { return CheckLimits(head, call.limits()); });
  v1::RestoreCollectionRequest message;
  std::string name;
  int64_t bytes = 0;
  for (int64_t number = 0; reader.Read(&message); ++number) {
    PM_RETURN_IF_ERROR(call.Admit(message));
    if (number == 0) {
      name = message.collection();
      // Before anything large is sent in vain.
      PM_RETURN_IF_ERROR(catalog.CheckNewName(name));
      PM_RETURN_IF_ERROR(CheckCollections(catalog, call.limits()));
    } else if (message.collection() != name) {
      return absl::InvalidArgumentError(
          absl::StrCat("collection must be the same in every message of the stream: expected '",
                       name, "', got '", absl::CHexEscape(message.collection().substr(0, 64)),
                       "' in message ", number, " (from 0); nothing is stored"));
    }
    bytes += static_cast<int64_t>(message.data().size());
    PM_RETURN_IF_ERROR(CheckLimit("number of bytes of the snapshot", bytes,
                                  call.limits().max_build_memory, "max_build_memory"));
    PM_RETURN_IF_ERROR(snapshot.Read(message.data()));
  }
  // A stream that broke ends like one that is complete.
  PM_RETURN_IF_ERROR(call.StreamStatus());
  PM_RETURN_IF_ERROR(CheckGiven("collection", name));
  PM_ASSIGN_OR_RETURN(SnapshotContents contents, snapshot.Finish());
  contents.collection.name = std::move(name);
  return contents;
}

}  // namespace

grpc::ServerWriteReactor<v1::SnapshotCollectionResponse>* CollectionsService::SnapshotCollection(
    grpc::CallbackServerContext* context, const v1::SnapshotCollectionRequest* request) {
  return gate_->ServeWriting<v1::SnapshotCollectionResponse>(
      context, "SnapshotCollection", *request,
      [this, request](Call& call, MessageWriter<v1::SnapshotCollectionResponse>& writer) {
        return Snapshot(*catalog_, call, request->collection(), writer);
      });
}

grpc::ServerReadReactor<v1::RestoreCollectionRequest>* CollectionsService::RestoreCollection(
    grpc::CallbackServerContext* context, v1::RestoreCollectionResponse* response) {
  return gate_->ServeReading<v1::RestoreCollectionRequest>(
      context, "RestoreCollection",
      [this, response](Call& call,
                       MessageReader<v1::RestoreCollectionRequest>& reader) -> absl::Status {
        PM_ASSIGN_OR_RETURN(SnapshotContents contents, Receive(*catalog_, call, reader));
        const std::lock_guard<std::mutex> guard(create_mutex_);
        PM_RETURN_IF_ERROR(CheckCollections(*catalog_, call.limits()));
        PM_ASSIGN_OR_RETURN(
            const CollectionView view,
            catalog_->Restore(std::move(contents.collection), std::move(contents.gallery)));
        call.AddRows(view.items);
        ToProto(view, response->mutable_collection());
        return absl::OkStatus();
      });
}

}  // namespace privatemail
