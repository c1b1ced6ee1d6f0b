#include "server/services/retrieval_service.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/embedding/plan_affinity.h"
#include "common/wire/codec.h"
#include "common/embedding/public_parameters.h"
#include "common/wire/parameters_proto.h"
#include "common/rpc/status.h"
#include "server/services/answer_bytes.h"
#include "server/services/answer_cells.h"
#include "server/services/collection_state.h"
#include "server/services/request.h"
#include "server/services/wire.h"

namespace privatemail::server {
namespace {

// Large enough for little overhead, small enough to show progress and to bound memory.
constexpr int64_t kAnchorChunkBytes = 1 << 20;

constexpr int64_t kMatchBytes = 64;  // on the wire, about, without its payload

// Where the rows lie in the embedding that answers for cells.
void AddCoordinates(const CellIndex& cells, Eigen::Index first, Eigen::Index count,
                    v1::GetAnchorsResponse* response) {
  ToProto(FloatMatrix(cells.anchor_coordinates().middleRows(first, count)),
          response->mutable_coordinates());
  response->set_embedding_version(cells.embedding_version());
}

absl::Status SendAnchors(const CollectionView& view, Call& call,
                         MessageWriter<v1::GetAnchorsResponse>& writer) {
  const Anchors& anchors = view.published->anchors;
  const bool with_coordinates =
      view.published->parameters.SendsCoordinates() && view.cells != nullptr;
  const Eigen::Index rows = anchors.features.rows();
  const Eigen::Index columns =
      anchors.features.cols() + (with_coordinates ? view.cells->anchor_coordinates().cols() : 0);
  const int64_t row_bytes = columns * static_cast<int64_t>(sizeof(float));
  const int64_t chunk = std::max<int64_t>(1, kAnchorChunkBytes / row_bytes);
  for (Eigen::Index first = 0; first < rows; first += chunk) {
    const Eigen::Index count = std::min<Eigen::Index>(chunk, rows - first);
    v1::GetAnchorsResponse response;
    ToProto(FloatMatrix(anchors.features.middleRows(first, count)), response.mutable_features());
    response.mutable_labels()->Assign(anchors.labels.begin() + first,
                                      anchors.labels.begin() + first + count);
    if (with_coordinates) AddCoordinates(*view.cells, first, count, &response);
    if (writer.Write(response)) continue;
    PM_RETURN_IF_ERROR(call.StreamStatus());
    return absl::CancelledError("the caller stopped reading");
  }
  return absl::OkStatus();
}

void EncodeAlignment(const RetrievalAnswer& answer, const Retriever& retriever,
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

// Fails before a response is made that no client would accept.
absl::Status CheckSize(const SlotBytes& slots, int64_t max_bytes) {
  if (static_cast<int64_t>(slots.size()) <= max_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the response would exceed the limit of ", max_bytes,
                   " bytes (max_message_bytes): ask for a smaller k or for no payloads"));
}

// The release in double, its images under post-processing and alignment, the affinities that
// post-processing keeps, and every slot's neighbours twice: found, and encoded.
int64_t MemoryOf(const v1::RetrieveRequest& request, const PublicParameters& parameters) {
  constexpr int64_t kCopies = 5;
  constexpr int64_t kNeighbourBytes = sizeof(Neighbor) + kMatchBytes;
  const int64_t slots = static_cast<int64_t>(parameters.slot_labels.size());
  const int64_t columns = parameters.settings.embedding_dim;
  const int64_t affinities =
      request.post_processing_steps() > 0
          ? MostAffinityBytes(request.release().values_size() / columns, columns)
          : 0;
  return kCopies * static_cast<int64_t>(sizeof(double)) * request.release().values_size() +
         affinities + slots * static_cast<int64_t>(request.k()) * kNeighbourBytes;
}

absl::Status CheckLimits(const v1::RetrieveRequest& request, const PublicParameters& parameters,
                         const Limits& limits) {
  PM_RETURN_IF_ERROR(CheckLimit("k", request.k(), limits.max_k, "max_k"));
  return CheckLimit("memory of this search in bytes", MemoryOf(request, parameters),
                    limits.max_request_memory, "max_request_memory");
}

// A searcher who was told of an embedding by one daemon is not answered from an earlier one by
// another. UNAVAILABLE makes clients send the same again.
absl::Status CheckVersion(const v1::RetrieveRequest& request, const Retriever& retriever) {
  if (request.embedding_version() <= retriever.version()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "embedding_version ", request.embedding_version(), " of collection ", request.collection(),
      " is not here yet: this daemon has version ", retriever.version(), "; send it again"));
}

}  // namespace

grpc::ServerUnaryReactor* RetrievalService::GetCollection(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request,
                                                          grpc::ByteBuffer* response) {
  return gate_->Serve<v1::GetCollectionRequest, v1::GetCollectionResponse>(
      context, "GetCollection", request, response,
      [this](Call& call, const v1::GetCollectionRequest& message,
             v1::GetCollectionResponse* answer) -> absl::Status {
        PM_ASSIGN_OR_RETURN(const CollectionView view, catalog_->Find(message.collection()));
        ToProto(view, answer);
        answer->set_max_k(static_cast<uint32_t>(call.limits().max_k));
        // Whoever searches is told how many, above; to tell them apart takes a look at every item.
        if (!message.with_changes() || !call.Has(kWriteScope | kAdminScope))
          return absl::OkStatus();
        PM_ASSIGN_OR_RETURN(const ChangesSinceEmbedding changes, catalog_->CountChanges(view));
        answer->mutable_changes()->set_inserted(changes.inserted);
        answer->mutable_changes()->set_updated(changes.updated);
        answer->mutable_changes()->set_deleted(changes.deleted);
        return absl::OkStatus();
      });
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* RetrievalService::GetAnchors(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return gate_->ServeWriting<v1::GetAnchorsRequest, v1::GetAnchorsResponse>(
      context, "GetAnchors", request,
      [this](Call& call, const v1::GetAnchorsRequest& message,
             MessageWriter<v1::GetAnchorsResponse>& writer) -> absl::Status {
        PM_ASSIGN_OR_RETURN(const CollectionView view,
                            FindMatching(*catalog_, message.collection(), message.fingerprint()));
        call.AddRows(view.published->anchors.labels.size());
        return SendAnchors(view, call, writer);
      });
}

bool RetrievalService::IsBrief(const v1::RetrieveRequest& request) const {
  constexpr int64_t kFewMatches = 10'000;
  if (request.has_filter() || request.post_processing_steps() != 0) return false;
  const absl::StatusOr<CollectionView> view = catalog_->Find(request.collection());
  if (!view.ok() || view->retriever == nullptr) return true;  // refused at once
  const auto slots = static_cast<int64_t>(view->published->parameters.slot_labels.size());
  return view->retriever->IsBrief() && slots * request.k() <= kFewMatches &&
         request.release().values_size() <= kFewMatches;
}

absl::Status RetrievalService::Answer(const v1::RetrieveRequest& request, Call& call,
                                      grpc::ByteBuffer* response) {
  const absl::Time start = absl::Now();
  PM_ASSIGN_OR_RETURN(const CollectionView view,
                      FindMatching(*catalog_, request.collection(), request.fingerprint()));
  PM_RETURN_IF_ERROR(CheckLimits(request, view.published->parameters, call.limits()));
  PM_ASSIGN_OR_RETURN(const FloatView release, ViewOf("release", request.release()));
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Retriever> retriever, RequireRetriever(view));
  PM_RETURN_IF_ERROR(CheckVersion(request, *retriever));
  RetrievalQuery query;
  query.release = release.cast<double>();
  query.post_processing_steps = request.post_processing_steps();
  query.k = request.k();
  query.cancelled = [&call] { return call.Cancelled(); };
  query.hidden = view.hidden;
  if (request.has_filter()) {
    PM_ASSIGN_OR_RETURN(query.filter, PayloadFilter::FromProto("filter", request.filter()));
    query.filter_memory = call.limits().max_request_memory;
  }
  PM_ASSIGN_OR_RETURN(const RetrievalAnswer answer, retriever->Retrieve(query));
  const SlotBytes slots(answer, *retriever, request.with_payloads());
  PM_RETURN_IF_ERROR(CheckSize(slots, call.limits().max_message_bytes));
  call.AddRows(slots.matches());
  std::string bytes;
  slots.AppendTo(&bytes);
  google::protobuf::Arena arena;
  auto& rest = *google::protobuf::Arena::CreateMessage<v1::RetrieveResponse>(&arena);
  EncodeAlignment(answer, *retriever, request.with_alignment(), rest.mutable_alignment());
  rest.set_embedding_version(retriever->version());
  rest.set_changes_since_embedding(view.changes_since_embedding());
  rest.set_truncated(answer.truncated);
  rest.set_server_seconds(absl::ToDoubleSeconds(absl::Now() - start));
  rest.AppendToString(&bytes);
  *response = ToWire(bytes);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* RetrievalService::Retrieve(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request,
                                                     grpc::ByteBuffer* response) {
  return gate_->ServeBytes<v1::RetrieveRequest>(
      context, "Retrieve", request,
      [this](const v1::RetrieveRequest& message) {
        return IsBrief(message) ? Gate::Pace::kBrief : Gate::Pace::kAny;
      },
      [this, response](Call& call, const v1::RetrieveRequest& message) {
        return Answer(message, call, response);
      });
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* RetrievalService::RetrieveCells(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return gate_->ServeWriting<v1::RetrieveCellsRequest, v1::RetrieveCellsResponse>(
      context, "RetrieveCells", request,
      [this](Call& call, const v1::RetrieveCellsRequest& message,
             MessageWriter<v1::RetrieveCellsResponse>& writer) {
        return AnswerForCells(*catalog_, message, call, writer);
      });
}

}  // namespace privatemail::server
