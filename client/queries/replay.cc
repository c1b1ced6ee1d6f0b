#include "client/queries/replay.h"

#include "absl/strings/str_cat.h"
#include "client/queries/cell_queries.h"
#include "client/queries/memory_limit.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/wire/parameters_proto.h"
#include "privatemail/joint_client.h"

namespace privatemail::client {
namespace {

MemoryLimit PayloadLimit(const QuerySettings& settings) {
  return {"memory of the matches' payloads", settings.limits.max_memory};
}

}  // namespace

// The slot stays on this machine; the answer is checked for every slot alike.
absl::StatusOr<QueryResult> ResendJoint(const Transport& transport, const QuerySettings& settings,
                                        const LastRelease& last, int32_t label,
                                        std::optional<int64_t> k) {
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(last.collection.parameters()));
  const absl::StatusOr<int64_t> slot = parameters.SlotOf(label);
  if (!slot.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("label must be one of the collection's ", parameters.slot_labels.size(),
                     " classes, but is not"));  // without the label, which is private
  }
  v1::RetrieveRequest request = last.request;
  if (k.has_value()) {
    PM_RETURN_IF_ERROR(CheckIntegerBetween("k", *k, 1, kMaxNeighbors));
    request.set_k(static_cast<uint32_t>(*k));
  }
  PM_ASSIGN_OR_RETURN(const v1::RetrieveResponse response, transport.Retrieve(request));
  const ExpectedAnswer expected{request.k(), request.with_payloads(), request.with_alignment()};
  const std::vector<ClassPlaces> places = {{.slot = *slot, .places = expected.k, .posterior = 1}};
  PM_ASSIGN_OR_RETURN(QueryResult result, ReadAnswer(parameters, places, expected, response));
  MemoryLimit limit = PayloadLimit(settings);
  PM_RETURN_IF_ERROR(ReservePayloads(result.matches, &limit));
  return result;
}

absl::StatusOr<RankedItems> ResendCells(const Transport& transport, const QuerySettings& settings,
                                        const LastRelease& last, const NamedTarget& target,
                                        int64_t k, const std::optional<FloatMatrix>& own_anchors) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", k, 1, kMaxNeighbors));
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(last.collection.parameters()));
  std::vector<v1::GetAnchorsResponse> anchors;  // codes need none
  if (parameters.SendsCoordinates()) {
    PM_ASSIGN_OR_RETURN(anchors,
                        FetchAnchors(transport, last.collection, Scheme::kCells, settings.limits));
  }
  PM_ASSIGN_OR_RETURN(const CellTargetFactory places,
                      CellTargetFactory::Create(parameters, anchors, own_anchors, settings.limits));
  RankedItems ranked;
  PM_ASSIGN_OR_RETURN(ranked.target, places.Make(target.target.features, k, LabelOf(target)));
  PM_ASSIGN_OR_RETURN(const auto response, RetrieveCells(transport, last.collection, last.cells));
  PM_ASSIGN_OR_RETURN(ranked.result,
                      ReadCellAnswer(parameters, last.cells, ranked.target, response));
  MemoryLimit limit = PayloadLimit(settings);
  PM_RETURN_IF_ERROR(ReservePayloads(ranked.result.matches, &limit));
  return ranked;
}

}  // namespace privatemail::client
