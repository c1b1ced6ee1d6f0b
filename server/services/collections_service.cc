#include "server/services/collections_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/wire/codec.h"
#include "common/wire/parameters_proto.h"
#include "server/services/collection_state.h"
#include "server/services/request.h"

namespace privatemail::server {
namespace {

constexpr int kMaxRejectionsListed = 100;

// Moves the items out of a message that is about to be overwritten.
std::vector<Item> TakeItems(v1::UpsertItemsRequest* message) {
  std::vector<Item> items;
  items.reserve(static_cast<size_t>(message->items_size()));
  for (v1::Item& from : *message->mutable_items()) {
    Item& item = items.emplace_back();
    item.id = std::move(*from.mutable_id());
    item.label = from.label();
    item.features.assign(from.features().begin(), from.features().end());
    item.payload = std::move(*from.mutable_payload());
  }
  return items;
}

// Adds the result of one message whose first item is number `offset` of the stream.
void AddResult(const UpsertResult& result, const std::vector<Item>& items, uint64_t offset,
               v1::UpsertItemsResponse* totals) {
  totals->set_inserted(totals->inserted() + result.inserted);
  totals->set_updated(totals->updated() + result.updated);
  totals->set_unchanged(totals->unchanged() + result.unchanged);
  totals->set_rejected(totals->rejected() + result.rejected.size());
  for (const UpsertResult::Rejection& rejection : result.rejected) {
    if (totals->first_rejected_size() == kMaxRejectionsListed) return;
    v1::RejectedItem* listed = totals->add_first_rejected();
    listed->set_position(offset + rejection.position);
    const std::string& id = items[rejection.position].id;
    // An oversized id is what the reason is about; repeating it could exceed the message limit.
    if (id.size() <= kMaxItemIdBytes) listed->set_id(id);
    listed->set_reason(rejection.reason);
  }
}

absl::Status CheckSameCollection(const std::string& expected, const std::string& actual,
                                 int64_t message) {
  if (expected == actual) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("collection must be the same in every message of the stream: expected '",
                   expected, "', got '", absl::CHexEscape(actual.substr(0, 64)), "' in message ",
                   message, " (from 0); earlier messages are stored"));
}

// Items that replace others are counted as if they were new: which they are is known only once
// they are stored.
absl::Status CheckLimits(const v1::UpsertItemsRequest& message, const Catalog& catalog,
                         const Limits& limits) {
  PM_RETURN_IF_ERROR(CheckLimit("number of items in one message", message.items_size(),
                                limits.max_batch_items, "max_batch_items"));
  PM_ASSIGN_OR_RETURN(const CollectionView view, catalog.Find(message.collection()));
  return CheckLimit("number of items of the collection with this message",
                    static_cast<int64_t>(view.items) + message.items_size(), limits.max_items,
                    "max_items");
}

// A key is for a name, the store goes by UUID: that of a collection which was deleted may come back
// under a name that the key is not for.
absl::Status CheckStillThere(const Catalog& catalog, const CollectionView& collection) {
  const std::string& name = collection.published->name;
  PM_ASSIGN_OR_RETURN(const CollectionView now, catalog.Find(name));
  if (now.published->parameters.collection_uuid ==
      collection.published->parameters.collection_uuid) {
    return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrCat("collection ", name,
                                         " was deleted and made again while items were sent; what "
                                         "was acknowledged went with the former one"));
}

absl::Status Upsert(Catalog* catalog, Call& call, MessageReader<v1::UpsertItemsRequest>& reader,
                    v1::UpsertItemsResponse* totals) {
  v1::UpsertItemsRequest message;
  std::string name;
  CollectionView collection;
  uint64_t offset = 0;
  for (int64_t number = 0; reader.Read(&message); ++number) {
    PM_RETURN_IF_ERROR(call.Admit(message));
    if (number == 0) {
      name = message.collection();
      PM_ASSIGN_OR_RETURN(collection, catalog->Find(name));
    }
    PM_RETURN_IF_ERROR(CheckSameCollection(name, message.collection(), number));
    PM_RETURN_IF_ERROR(CheckStillThere(*catalog, collection));
    PM_RETURN_IF_ERROR(CheckLimits(message, *catalog, call.limits()));
    const std::vector<Item> items = TakeItems(&message);
    PM_ASSIGN_OR_RETURN(const UpsertResult result, catalog->Upsert(collection, items));
    AddResult(result, items, offset, totals);
    offset += items.size();
    call.AddRows(items.size());
  }
  // A stream that broke ends like one that is complete.
  PM_RETURN_IF_ERROR(call.StreamStatus());
  return CheckGiven("collection", name);
}

absl::Status Build(Catalog* catalog, Call& call, const std::string& name,
                   MessageWriter<v1::BuildEmbeddingResponse>& writer) {
  const absl::Time start = absl::Now();
  v1::BuildEmbeddingResponse progress;
  const StepObserver report = [&](double done, int steps) -> absl::Status {
    progress.set_steps_done(static_cast<uint32_t>(done));
    progress.set_steps(static_cast<uint32_t>(steps));
    progress.set_share(done / steps);
    const double elapsed = absl::ToDoubleSeconds(absl::Now() - start);
    progress.set_elapsed_seconds(elapsed);
    progress.set_remaining_seconds(done > 0 ? elapsed / done * (steps - done) : 0);
    call.ReportBuild(done / steps);
    if (!call.Cancelled() && writer.Write(progress)) return absl::OkStatus();
    const absl::Status ended = call.StreamStatus();  // revoked, expired, or nobody takes answers
    if (!ended.ok() && !absl::IsCancelled(ended)) return ended;
    return absl::CancelledError("the caller cancelled the build; the former embedding stays");
  };
  PM_ASSIGN_OR_RETURN(const CollectionView before, catalog->Find(name));
  PM_RETURN_IF_ERROR(CheckLimit("memory of this build in bytes",
                                before.build_memory(CollectionView::Features::kInFile),
                                call.limits().max_build_memory, "max_build_memory"));
  PM_RETURN_IF_ERROR(CheckHasItems(before));
  progress.set_rows(before.items +
                    static_cast<uint64_t>(before.published->parameters.anchor_count));
  PM_ASSIGN_OR_RETURN(const CollectionView built,
                      catalog->Build(name, report, call.limits().max_build_memory));
  progress.set_elapsed_seconds(absl::ToDoubleSeconds(absl::Now() - start));
  call.AddRows(static_cast<uint64_t>(built.retriever->items()));
  ToProto(built, progress.mutable_collection());
  progress.set_objective(built.retriever->objective());
  progress.set_plan(built.retriever->plan());
  writer.Write(progress);  // the embedding is in place whether or not anybody still listens
  return absl::OkStatus();
}

// An answer that is too large is refused before all of it is in memory.
absl::Status List(const Catalog& catalog, Call& call, v1::ListCollectionsResponse* response) {
  constexpr size_t kCollectionOverhead = 16;  // tag and length, at most
  const int64_t most = call.limits().max_message_bytes;
  size_t bytes = 0;
  for (const CollectionView& view : catalog.List()) {
    if (!call.Covers(view.published->name)) continue;
    v1::GetCollectionResponse& listed = *response->add_collections();
    ToProto(view, &listed);
    bytes += listed.ByteSizeLong() + kCollectionOverhead;
    if (bytes > static_cast<size_t>(most)) {
      response->Clear();
      return AnswerTooLarge(most, "raise it, or get collections one by one");
    }
  }
  call.AddRows(static_cast<uint64_t>(response->collections_size()));
  return absl::OkStatus();
}

absl::Status CheckLimits(const v1::CreateCollectionRequest& request, const Limits& limits) {
  PM_RETURN_IF_ERROR(
      CheckLimit("number of anchors", request.anchors().rows(), limits.max_anchors, "max_anchors"));
  PM_RETURN_IF_ERROR(CheckLimit("number of dimensions of the anchors", request.anchors().cols(),
                                limits.max_dims, "max_dims"));
  return CheckAnchorMemory("memory of the anchors", request.anchors().rows(),
                           request.anchors().cols(), limits);
}

absl::StatusOr<NewCollection> Decode(const v1::CreateCollectionRequest& request) {
  NewCollection collection;
  collection.name = request.name();
  PM_ASSIGN_OR_RETURN(collection.settings, FromProto(request.settings()));
  PM_ASSIGN_OR_RETURN(collection.anchors.features, FromProto("anchors", request.anchors()));
  collection.anchors.labels.assign(request.anchor_labels().begin(), request.anchor_labels().end());
  collection.class_names.assign(request.class_names().begin(), request.class_names().end());
  collection.extractor = request.extractor();
  collection.cells.assign(request.cells().begin(), request.cells().end());
  if (request.cell_code() != v1::CELL_CODE_UNSPECIFIED) {
    PM_ASSIGN_OR_RETURN(collection.cell_code, FromProto(request.cell_code()));
  }
  return collection;
}

}  // namespace

grpc::ServerUnaryReactor* CollectionsService::CreateCollection(grpc::CallbackServerContext* context,
                                                               const grpc::ByteBuffer* request,
                                                               grpc::ByteBuffer* response) {
  return gate_->Serve<v1::CreateCollectionRequest, v1::CreateCollectionResponse>(
      context, "CreateCollection", request, response,
      [this](Call& call, const v1::CreateCollectionRequest& message,
             v1::CreateCollectionResponse* answer) -> absl::Status {
        PM_RETURN_IF_ERROR(CheckLimits(message, call.limits()));
        PM_ASSIGN_OR_RETURN(NewCollection collection, Decode(message));
        const std::lock_guard<std::mutex> guard(create_mutex_);
        PM_RETURN_IF_ERROR(CheckOneMore(call.limits()));
        PM_ASSIGN_OR_RETURN(const CollectionView view, catalog_->Create(std::move(collection)));
        ToProto(view, answer->mutable_collection());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* CollectionsService::ListCollections(grpc::CallbackServerContext* context,
                                                              const grpc::ByteBuffer* request,
                                                              grpc::ByteBuffer* response) {
  return gate_->Serve<v1::ListCollectionsRequest, v1::ListCollectionsResponse>(
      context, "ListCollections", request, response,
      [this](Call& call, const v1::ListCollectionsRequest&, v1::ListCollectionsResponse* answer) {
        return List(*catalog_, call, answer);
      });
}

grpc::ServerUnaryReactor* CollectionsService::DeleteCollection(grpc::CallbackServerContext* context,
                                                               const grpc::ByteBuffer* request,
                                                               grpc::ByteBuffer* response) {
  return gate_->Serve<v1::DeleteCollectionRequest, v1::DeleteCollectionResponse>(
      context, "DeleteCollection", request, response,
      [this](Call& call, const v1::DeleteCollectionRequest& message,
             v1::DeleteCollectionResponse* answer) -> absl::Status {
        PM_ASSIGN_OR_RETURN(const uint64_t items, catalog_->Delete(message.name()));
        call.AddRows(items);
        answer->set_deleted_items(items);
        return absl::OkStatus();
      });
}

grpc::ServerReadReactor<grpc::ByteBuffer>* CollectionsService::UpsertItems(
    grpc::CallbackServerContext* context, grpc::ByteBuffer* response) {
  return gate_->ServeReading<v1::UpsertItemsRequest, v1::UpsertItemsResponse>(
      context, "UpsertItems", response,
      [this](Call& call, MessageReader<v1::UpsertItemsRequest>& reader,
             v1::UpsertItemsResponse* totals) { return Upsert(catalog_, call, reader, totals); });
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* CollectionsService::BuildEmbedding(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return gate_->ServeWriting<v1::BuildEmbeddingRequest, v1::BuildEmbeddingResponse>(
      context, "BuildEmbedding", request,
      [this](Call& call, const v1::BuildEmbeddingRequest& message,
             MessageWriter<v1::BuildEmbeddingResponse>& writer) {
        return Build(catalog_, call, message.collection(), writer);
      });
}

}  // namespace privatemail::server
