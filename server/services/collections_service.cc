#include "server/services/collections_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/cancellation.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/stopwatch.h"
#include "common/base/validate.h"
#include "common/embedding/offered_schemes.h"
#include "common/wire/proto_conversions.h"
#include "server/services/collection_state.h"

namespace privatemail::server {
namespace {

constexpr int kMaxRejectionsListed = 100;

// INVALID_ARGUMENT: no item can have such a label.
absl::StatusOr<std::vector<Item>> TakeItems(v1::UpsertItemsRequest* message) {
  std::vector<Item> items;
  items.reserve(static_cast<size_t>(message->items_size()));
  for (v1::Item& from : *message->mutable_items()) {
    const absl::StatusOr<int32_t> label = LabelFromProto(from);
    if (!label.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("items[", items.size(), "]: ", label.status().message()));
    }
    Item& item = items.emplace_back();
    item.id = std::move(*from.mutable_id());
    item.label = *label;
    item.features.assign(from.features().begin(), from.features().end());
    item.payload = std::move(*from.mutable_payload());
  }
  return items;
}

// `offset`: index of the message's first item in the stream.
void AddResult(const UpsertResult& result, const std::vector<Item>& items, uint64_t offset,
               v1::UpsertItemsResponse* totals) {
  totals->set_inserted(totals->inserted() + result.inserted);
  totals->set_updated(totals->updated() + result.updated);
  totals->set_stripped(totals->stripped() + result.stripped);
  totals->set_unchanged(totals->unchanged() + result.unchanged);
  totals->set_rejected(totals->rejected() + result.rejected.size());
  for (const UpsertResult::Rejection& rejection : result.rejected) {
    if (totals->first_rejected_size() == kMaxRejectionsListed) return;
    v1::RejectedItem* listed = totals->add_first_rejected();
    listed->set_position(offset + rejection.position);
    const std::string& id = items[rejection.position].id;
    // An oversized id could exceed the message limit; the reason describes it.
    if (id.size() <= kMaxItemIdBytes) listed->set_id(id);
    listed->set_reason(rejection.reason);
  }
}

// Counts every item as new: the store alone knows which ones replace others.
absl::Status CheckLimits(const v1::UpsertItemsRequest& message, const CollectionView& view,
                         const Limits& limits) {
  for (const v1::Item& item : message.items()) {
    if (view.published->parameters.feature_dim > 0) break;
    PM_RETURN_IF_ERROR(
        CheckLimit("number of features of the first items", item.features_size(), limits.max_dims));
  }
  return CheckLimit("number of items of the collection with this message",
                    static_cast<int64_t>(view.items) + message.items_size(), limits.max_items,
                    "max_items");
}

// The collection as it is now, perhaps with a dimension. ABORTED: it was replaced. Keys cover
// names, the store uses UUIDs: the UUID of a deleted collection may come back under a name that the
// key does not cover.
absl::StatusOr<CollectionView> FindSame(const Catalog& catalog, const CollectionView& collection) {
  const std::string& name = collection.published->name;
  PM_ASSIGN_OR_RETURN(const CollectionView now, catalog.Find(name));
  if (now.published->parameters.collection_uuid ==
      collection.published->parameters.collection_uuid) {
    return now;
  }
  return absl::AbortedError(absl::StrCat("collection ", name,
                                         " was deleted and created again during this upload; the "
                                         "items acknowledged so far were deleted with it"));
}

absl::Status Upsert(Catalog* catalog, Call& call, v1::UpsertItemsResponse* totals) {
  v1::UpsertItemsRequest message;
  std::string name;
  CollectionView collection;
  uint64_t offset = 0;
  for (int64_t number = 0; call.Read(&message); ++number) {
    PM_RETURN_IF_ERROR(call.RecordAndCheckAccess(message));
    if (number == 0) {
      name = message.collection();
      PM_ASSIGN_OR_RETURN(collection, catalog->Find(name));
    }
    PM_RETURN_IF_ERROR(
        CheckSameCollection(name, message.collection(), number, "earlier messages are stored"));
    PM_ASSIGN_OR_RETURN(collection, FindSame(*catalog, collection));
    PM_RETURN_IF_ERROR(CheckLimits(message, collection, call.limits()));
    PM_ASSIGN_OR_RETURN(const std::vector<Item> items, TakeItems(&message));
    if (message.class_names_size() > 0) {
      PM_RETURN_IF_ERROR(catalog->AppendClassNames(
          collection, {message.class_names().begin(), message.class_names().end()}));
    }
    PM_ASSIGN_OR_RETURN(const UpsertResult result, catalog->Upsert(collection, items));
    AddResult(result, items, offset, totals);
    offset += items.size();
    call.AddRows(items.size());
  }
  // Read returns false for a broken stream as well.
  PM_RETURN_IF_ERROR(call.StreamStatus());
  return CheckNotEmpty("collection", name);
}

absl::Status Build(Catalog* catalog, Call& call, const v1::BuildEmbeddingRequest& request) {
  const std::string& name = request.collection();
  const Stopwatch running;
  v1::BuildEmbeddingResponse progress;
  const StepObserver report = [&](double done, int steps) -> absl::Status {
    progress.set_steps_done(static_cast<uint32_t>(done));
    progress.set_steps(static_cast<uint32_t>(steps));
    progress.set_share(done / steps);
    const double elapsed = absl::ToDoubleSeconds(running.Elapsed());
    progress.set_elapsed_seconds(elapsed);
    progress.set_remaining_seconds(done > 0 ? elapsed / done * (steps - done) : 0);
    const absl::Status sent =
        call.Write(progress);  // fails when the key is revoked or expired, too
    if (!absl::IsCancelled(sent)) return sent;
    return absl::CancelledError("the caller cancelled the build; the former embedding stays");
  };
  uint64_t version = 0;  // that a front gives to the embeddings of all shards
  if (catalog->is_shard() &&
      !absl::SimpleAtoi(call.Metadata(kVersionMetadata).value_or("0"), &version)) {
    return InvalidField(kVersionMetadata, "must be a number");
  }
  // A front may know a collection that was created a moment ago before a shard has heard of it.
  const Stopwatch waited;
  while (version > 0 && !catalog->Find(name).ok() && waited.Elapsed() < absl::Seconds(5)) {
    PM_RETURN_IF_ERROR(CheckNotCancelled([&call] { return call.Cancelled(); }));
    absl::SleepFor(absl::Milliseconds(10));
  }
  PM_ASSIGN_OR_RETURN(const CollectionView before, catalog->Find(name));
  PM_RETURN_IF_ERROR(CheckLimit("memory of this build in bytes",
                                before.build_memory(CollectionView::Features::kInFile),
                                call.limits().max_build_memory, "memory / 4"));
  PM_RETURN_IF_ERROR(CheckHasAnchors(name, before.published->parameters));
  progress.set_rows(before.items +
                    static_cast<uint64_t>(before.published->parameters.anchor_count));
  PM_ASSIGN_OR_RETURN(const CollectionView built,
                      catalog->Build(name, report, call.limits().max_build_memory,
                                     request.accept_misalignment() ? Catalog::LabelCheck::kOff
                                                                   : Catalog::LabelCheck::kOn,
                                     version));
  progress.set_elapsed_seconds(absl::ToDoubleSeconds(running.Elapsed()));
  call.AddRows(static_cast<uint64_t>(built.retriever->items()));
  CollectionToProto(built, progress.mutable_collection());
  progress.set_objective(built.retriever->objective());
  progress.set_plan(built.retriever->plan());
  call.Write(progress).IgnoreError();  // the build is done even if the caller is gone
  return absl::OkStatus();
}

// Fails as soon as the response is too large, before all of it is in memory.
absl::Status List(const Catalog& catalog, Call& call, v1::ListCollectionsResponse* response) {
  constexpr size_t kCollectionOverhead = 16;  // tag and length, at most
  size_t bytes = 0;
  for (const CollectionView& view : catalog.List()) {
    if (!call.key().Covers(view.published->name)) continue;
    v1::GetCollectionResponse& listed = *response->add_collections();
    DescribeCollection(view, &listed);
    bytes += listed.ByteSizeLong() + kCollectionOverhead;
    PM_RETURN_IF_ERROR(call.CheckAnswerSize(bytes, "get collections one by one"));
  }
  call.AddRows(static_cast<uint64_t>(response->collections_size()));
  return absl::OkStatus();
}

absl::StatusOr<NewCollection> ParseNewCollection(const v1::CreateCollectionRequest& request) {
  NewCollection collection;
  collection.name = request.name();
  if (request.has_anchors()) {
    PM_ASSIGN_OR_RETURN(collection.settings, FromProto(request.settings()));
    PM_ASSIGN_OR_RETURN(collection.anchors.features, FromProto("anchors", request.anchors()));
  } else if (request.has_settings()) {
    return InvalidField("settings", "must not be given where there are no anchors");
  }
  collection.anchors.labels.assign(request.anchor_labels().begin(), request.anchor_labels().end());
  collection.class_names.assign(request.class_names().begin(), request.class_names().end());
  collection.extractor = request.extractor();
  collection.cells.assign(request.cells().begin(), request.cells().end());
  if (request.cell_code() != v1::CELL_CODE_UNSPECIFIED) {
    PM_ASSIGN_OR_RETURN(collection.cell_code, FromProto(request.cell_code()));
  }
  collection.publish_quality = request.publish_quality();
  PM_ASSIGN_OR_RETURN(collection.metric, FromProto(request.metric()));
  collection.with_encrypted = request.with_encrypted();
  return collection;
}

}  // namespace

CollectionsService::CollectionsService(Catalog* catalog, Dispatcher* dispatcher)
    : catalog_(catalog) {
  dispatcher->ServeUnary<v1::ListCollectionsRequest, v1::ListCollectionsResponse>(
      "ListCollections", [this](Call& call, const auto& /*request*/, auto* answer) {
        return List(*catalog_, call, answer);
      });
  dispatcher->Serve<v1::BuildEmbeddingRequest>(
      "BuildEmbedding",
      [this](Call& call, const auto& request) { return Build(catalog_, call, request); });
  if (catalog_->is_shard()) return;  // a front administers
  dispatcher->ServeUnary<v1::CreateCollectionRequest, v1::CreateCollectionResponse>(
      "CreateCollection", [this](Call& call, const auto& request, auto* answer) -> absl::Status {
        PM_RETURN_IF_ERROR(CheckAnchorLimits("", request.anchors().rows(), request.anchors().cols(),
                                             call.limits()));
        PM_ASSIGN_OR_RETURN(NewCollection collection, ParseNewCollection(request));
        PM_ASSIGN_OR_RETURN(const CollectionView view, Create(call, std::move(collection)));
        CollectionToProto(view, answer->mutable_collection());
        return absl::OkStatus();
      });
  dispatcher->ServeUnary<v1::DeleteCollectionRequest, v1::DeleteCollectionResponse>(
      "DeleteCollection", [this](Call& call, const auto& request, auto* answer) -> absl::Status {
        PM_ASSIGN_OR_RETURN(const uint64_t items, catalog_->Delete(request.name()));
        call.AddRows(items);
        answer->set_deleted_items(items);
        return absl::OkStatus();
      });
  dispatcher->ServeUpload<v1::UpsertItemsRequest, v1::UpsertItemsResponse>(
      "UpsertItems", [this](Call& call, auto* totals) { return Upsert(catalog_, call, totals); });
  ServeItems(dispatcher);
  ServeSnapshots(dispatcher);
}

absl::Status CheckSameCollection(absl::string_view first, absl::string_view actual, int64_t number,
                                 absl::string_view consequence) {
  if (first == actual) return absl::OkStatus();
  return InvalidField("collection",
                      absl::StrCat("must be the same in every message of the stream: expected '",
                                   first, "', got '", absl::CHexEscape(actual.substr(0, 64)),
                                   "' in message ", number, " (from 0); ", consequence));
}

absl::Status CheckAnchorLimits(absl::string_view whose, int64_t anchors, int64_t dims,
                               const Limits& limits) {
  // The received float values and their rows scaled to length 1 in double.
  constexpr int64_t kValueBytes = sizeof(float) + sizeof(double);
  PM_RETURN_IF_ERROR(
      CheckLimit(absl::StrCat("number of anchors", whose), anchors, limits.max_anchors));
  PM_RETURN_IF_ERROR(CheckLimit(absl::StrCat("number of dimensions of the anchors", whose), dims,
                                limits.max_dims));
  return CheckLimit(absl::StrCat("memory of the anchors", whose, " in bytes"),
                    anchors * dims * kValueBytes, limits.max_request_memory, "memory / 16");
}

std::shared_ptr<CancellableMutex> CollectionsService::CreationsOf(const std::string& key) {
  const std::lock_guard<std::mutex> guard(create_mutex_);
  std::erase_if(creations_, [](const auto& of_key) { return of_key.second.expired(); });
  std::shared_ptr<CancellableMutex> running = creations_[key].lock();
  if (running == nullptr) creations_[key] = running = std::make_shared<CancellableMutex>();
  return running;
}

absl::StatusOr<CollectionView> CollectionsService::Create(const Call& call,
                                                          NewCollection collection) {
  const auto gone = [&call] { return call.Cancelled(); };
  const Stopwatch running;
  const auto cancelled = [&] {
    return gone() || running.Elapsed() > absl::Seconds(call.limits().max_create_seconds);
  };
  const auto create = [&]() -> absl::StatusOr<CollectionView> {
    const std::shared_ptr<CancellableMutex> creations = CreationsOf(call.key().id);
    const auto turn = creations->Acquire(cancelled);
    PM_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
    PM_RETURN_IF_ERROR(ReserveCollection(call.limits()));
    const auto end = absl::MakeCleanup([this] { ReleaseCollection(); });
    return catalog_->Create(std::move(collection), cancelled);
  };
  const absl::StatusOr<CollectionView> created = create();
  if (!absl::IsCancelled(created.status()) || gone()) return created;
  return absl::ResourceExhaustedError(absl::StrCat(
      "creating this collection, after those of its key, takes longer than the limit of ",
      call.limits().max_create_seconds, " s: send fewer anchors or ask for fewer cells"));
}

}  // namespace privatemail::server
