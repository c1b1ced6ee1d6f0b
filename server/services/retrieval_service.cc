#include <google/protobuf/arena.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/base/stopwatch.h"
#include "common/embedding/offered_schemes.h"
#include "common/embedding/plan_affinity.h"
#include "common/embedding/public_parameters.h"
#include "common/rpc/status.h"
#include "common/wire/proto_conversions.h"
#include "server/services/collection_state.h"
#include "server/services/response_encoders.h"
#include "server/services/services.h"

namespace privatemail::server {
namespace {

// Bounds memory and lets callers show progress.
constexpr int64_t kAnchorChunkBytes = 1 << 20;

constexpr int64_t kEncodedMatchBytes = 64;  // estimate, without payload
constexpr int64_t kMinMatchBytes = 14;      // an id of one byte and the distance

absl::Status SendAnchors(const CollectionView& view, Call& call) {
  const Anchors& anchors = view.published->anchors;
  // In the embedding that answers, anchors x embedding_dim.
  FloatMatrix coordinates;
  if (view.retriever != nullptr) coordinates = view.retriever->anchor_coordinates().cast<float>();
  if (!coordinates.allFinite()) coordinates.resize(0, 0);  // answers align in double
  const Eigen::Index rows = anchors.features.rows();
  const Eigen::Index columns = anchors.features.cols() + coordinates.cols();
  const int64_t row_bytes = columns * static_cast<int64_t>(sizeof(float));
  const int64_t chunk = std::max<int64_t>(1, kAnchorChunkBytes / row_bytes);
  for (Eigen::Index first = 0; first < rows; first += chunk) {
    const Eigen::Index count = std::min<Eigen::Index>(chunk, rows - first);
    v1::GetAnchorsResponse response;
    ToProto(FloatMatrix(anchors.features.middleRows(first, count)), response.mutable_features());
    if (!anchors.labels.empty()) {
      response.mutable_labels()->Assign(anchors.labels.begin() + first,
                                        anchors.labels.begin() + first + count);
    }
    if (coordinates.size() > 0) {
      ToProto(FloatMatrix(coordinates.middleRows(first, count)), response.mutable_coordinates());
      response.set_embedding_version(view.retriever->version());
    }
    PM_RETURN_IF_ERROR(call.Write(response));
  }
  return absl::OkStatus();
}

void AlignmentToProto(const RetrievalAnswer& answer, const Retriever& retriever,
                      bool with_server_anchors, v1::Alignment* proto) {
  const Similarity& map = answer.alignment;
  proto->set_scale(map.scale);
  proto->mutable_rotation()->Assign(map.rotation.data(), map.rotation.data() + map.rotation.size());
  proto->mutable_translation()->Assign(map.translation.data(),
                                       map.translation.data() + map.translation.size());
  proto->set_relative_residual(answer.relative_residual);
  if (with_server_anchors) {
    ToProto(retriever.anchor_coordinates(), proto->mutable_server_anchors());
  }
}

// Maximum matches of the answer.
int64_t CountMatches(const v1::RetrieveRequest& request, const CollectionView& view) {
  const int64_t of_slot = view.retriever == nullptr
                              ? request.k()
                              : std::min<int64_t>(request.k(), view.retriever->items());
  return std::ssize(view.published->parameters.slot_labels) * of_slot;
}

absl::Status CheckMatches(int64_t matches, int64_t max_bytes) {
  if (matches <= max_bytes / kMinMatchBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the response of ", matches, " matches, k for each slot, would exceed the limit of ",
      max_bytes, " bytes: ask for a smaller k"));
}

// Estimated bytes of one search:
//   kCopies x 8 x (slots + anchors) x embedding_dim   release, post-processed, aligned
//   affinities                                        with post-processing only
//   slots x min(k, items) x kNeighbourBytes           neighbours, found and encoded
int64_t EstimateSearchMemory(const v1::RetrieveRequest& request, int64_t columns, int64_t matches) {
  constexpr int64_t kCopies = 5;
  constexpr int64_t kNeighbourBytes = sizeof(Neighbor) + kEncodedMatchBytes;
  const int64_t affinities =
      request.post_processing_steps() > 0
          ? MaxAffinityBytes(request.release().values_size() / columns, columns)
          : 0;
  return kCopies * static_cast<int64_t>(sizeof(double)) * request.release().values_size() +
         affinities + matches * kNeighbourBytes;
}

// Before any work: the sizes of request and response, and the memory of all searches.
absl::Status CheckLimits(const v1::RetrieveRequest& request, const CollectionView& view,
                         Call& call) {
  const Limits& limits = call.limits();
  PM_RETURN_IF_ERROR(CheckLimit("k", request.k(), limits.max_k, "max_k"));
  const int64_t matches = CountMatches(request, view);
  PM_RETURN_IF_ERROR(CheckMatches(matches, limits.max_message_bytes));
  const int64_t bytes =
      EstimateSearchMemory(request, view.published->parameters.settings.embedding_dim, matches);
  PM_RETURN_IF_ERROR(CheckLimit("memory of this search in bytes", bytes, limits.max_request_memory,
                                "memory / 16"));
  return call.ReserveSearchMemory(bytes);
}

// Quality is measured again when cells are prepared; until then it is of deleted items as well.
bool IsQualityCurrent(const CollectionView& view) {
  constexpr int64_t kMaxDeletedShare = 20;  // a twentieth
  if (view.quality == nullptr) return false;
  const int64_t hidden = view.hidden_in_cells == nullptr ? 0 : view.hidden_in_cells->count;
  return kMaxDeletedShare * hidden <= view.cells->items();
}

// The paths of the request that no item of the embedding has.
absl::StatusOr<std::vector<std::string>> UnknownPaths(const v1::GetCollectionRequest& request,
                                                      const CollectionView& view, Call& call) {
  const std::vector<std::string> paths(request.filter_paths().begin(),
                                       request.filter_paths().end());
  PM_RETURN_IF_ERROR(CheckFilterPaths(paths));
  return view.retriever->UnknownPaths(
      paths, view.hidden.get(),
      {.cancelled = [&call] { return call.Cancelled(); },
       .memory = call.limits().max_request_memory,
       .reserve = [&call](int64_t bytes) { return call.ReserveSearchMemory(bytes); },
       .owner = call.key().id});
}

absl::Status GetCollection(const Catalog& catalog, const v1::GetCollectionRequest& request,
                           Call& call, v1::GetCollectionResponse* answer) {
  PM_ASSIGN_OR_RETURN(const CollectionView view, catalog.Find(request.collection()));
  DescribeCollection(view, answer);
  if (request.with_quality() && IsQualityCurrent(view)) {
    ToProto(*view.quality, answer->mutable_quality());
  }
  answer->set_max_k(static_cast<uint32_t>(call.limits().max_k));
  if (!request.filter_paths().empty() && view.retriever != nullptr) {
    PM_ASSIGN_OR_RETURN(const std::vector<std::string> unknown, UnknownPaths(request, view, call));
    answer->mutable_unknown_paths()->Assign(unknown.begin(), unknown.end());
  }
  // Counting by kind reads every item, so it needs a writing key.
  if (!request.with_changes() || !view.published->parameters.HasAnchors() ||
      !call.key().Has(kWriteScope | kAdminScope)) {
    return absl::OkStatus();
  }
  PM_ASSIGN_OR_RETURN(const ChangesSinceEmbedding changes, catalog.CountChanges(view));
  answer->mutable_changes()->set_inserted(changes.inserted);
  answer->mutable_changes()->set_updated(changes.updated);
  answer->mutable_changes()->set_deleted(changes.deleted);
  return absl::OkStatus();
}

absl::Status GetAnchors(const Catalog& catalog, const v1::GetAnchorsRequest& request, Call& call) {
  PM_ASSIGN_OR_RETURN(const CollectionView view,
                      FindCollection(catalog, request.collection(), request.fingerprint()));
  PM_RETURN_IF_ERROR(CheckHasAnchors(request.collection(), view.published->parameters));
  call.AddRows(static_cast<uint64_t>(view.published->parameters.anchor_count));
  return SendAnchors(view, call);
}

// Whether the search costs less than a context switch, see Method.
bool IsCheap(const Catalog& catalog, const v1::RetrieveRequest& request) {
  // About a millisecond: gRPC serves all connections on few threads.
  constexpr int64_t kMaxCheapMatches = 1000;
  constexpr int64_t kMaxCheapValues = 10'000;
  constexpr int64_t kMaxCheapHidden = 10'000;  // a slot whose class was deleted passes them all
  if (!request.filter().empty() || request.post_processing_steps() != 0) return false;
  const absl::StatusOr<CollectionView> view = catalog.Find(request.collection());
  if (!view.ok() || view->retriever == nullptr) return true;  // fails at once
  const auto slots = static_cast<int64_t>(view->published->parameters.slot_labels.size());
  const int64_t hidden = view->hidden == nullptr ? 0 : view->hidden->count;
  return view->retriever->IsFast() && hidden <= kMaxCheapHidden &&
         slots * request.k() <= kMaxCheapMatches &&
         request.release().values_size() <= kMaxCheapValues;
}

absl::Status Retrieve(const Catalog& catalog, const v1::RetrieveRequest& request, Call& call) {
  const Stopwatch running;
  PM_ASSIGN_OR_RETURN(const CollectionView view,
                      FindCollection(catalog, request.collection(), request.fingerprint()));
  PM_RETURN_IF_ERROR(CheckHasClasses(request.collection(), view.published->parameters));
  PM_RETURN_IF_ERROR(CheckLimits(request, view, call));
  PM_ASSIGN_OR_RETURN(const FloatView release, ViewOf("release", request.release()));
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Retriever> retriever, RequireRetriever(view));
  PM_RETURN_IF_ERROR(CheckEmbeddingVersion(request, retriever->version()));
  PM_RETURN_IF_ERROR(CheckDeletionsAreHidden(catalog, view, call));
  RetrievalQuery query;
  query.release = release.cast<double>();
  query.post_processing_steps = request.post_processing_steps();
  query.k = request.k();
  query.cancelled = [&call] { return call.Cancelled(); };
  query.hidden = view.hidden;
  if (!request.filter().empty()) {
    PM_ASSIGN_OR_RETURN(query.filter, PayloadFilter::Parse(request.filter()));
    query.filter_memory = call.limits().max_request_memory;
    query.searcher = call.key().id;
    query.reserve = [&call](int64_t bytes) { return call.ReserveSearchMemory(bytes); };
  }
  PM_ASSIGN_OR_RETURN(const RetrievalAnswer answer, retriever->Retrieve(query));
  const SlotEncoder slots(answer, *retriever, request.with_payloads());
  PM_RETURN_IF_ERROR(call.CheckAnswerSize(slots.size(), "ask for a smaller k or for no payloads"));
  call.AddRows(slots.matches());
  PM_RETURN_IF_ERROR(call.ReserveSearchMemory(static_cast<int64_t>(slots.size())));
  std::string bytes;
  slots.AppendTo(&bytes);
  google::protobuf::Arena arena;
  auto& rest = *google::protobuf::Arena::CreateMessage<v1::RetrieveResponse>(&arena);
  AlignmentToProto(answer, *retriever, request.with_alignment(), rest.mutable_alignment());
  rest.set_embedding_version(retriever->version());
  rest.set_changes_since_embedding(view.changes_since_embedding());
  rest.set_truncated(answer.truncated);
  rest.set_server_seconds(absl::ToDoubleSeconds(running.Elapsed()));
  rest.AppendToString(&bytes);
  call.ReduceSearchMemoryTo(std::ssize(bytes));
  call.SetAnswer(std::move(bytes));
  return absl::OkStatus();
}

}  // namespace

void ServeRetrieval(const Catalog* catalog, Dispatcher* dispatcher) {
  dispatcher->ServeUnary<v1::GetCollectionRequest, v1::GetCollectionResponse>(
      "GetCollection", [catalog](Call& call, const auto& request, auto* answer) {
        return GetCollection(*catalog, request, call, answer);
      });
  dispatcher->Serve<v1::GetAnchorsRequest>(
      "GetAnchors",
      [catalog](Call& call, const auto& request) { return GetAnchors(*catalog, request, call); });
  dispatcher->Serve<v1::RetrieveRequest>(
      "Retrieve",
      [catalog](Call& call, const auto& request) { return Retrieve(*catalog, request, call); },
      [catalog](const auto& request) { return IsCheap(*catalog, request); });
  ServeRetrieveCells(catalog, dispatcher);
}

}  // namespace privatemail::server
