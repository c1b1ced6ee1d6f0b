#include "client/cell_client.h"

#include "absl/strings/str_cat.h"
#include "client/release/published_collection.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/neighbors.h"
#include "common/numerics/smlq.h"
#include "common/protocol/cell_code.h"
#include "common/protocol/codec.h"
#include "common/protocol/item_text.h"

namespace privatemail {
namespace {

absl::Status CheckItems(const PublicParameters& parameters, const CellQueryOptions& options,
                        const v1::RetrieveCellsResponse& message) {
  const int items = message.ids_size();
  const int payloads = options.with_payloads ? items : 0;
  if (message.labels_size() != items || message.payloads_size() != payloads) {
    return absl::DataLossError(
        absl::StrCat("it must have ", items, " labels and ", payloads, " payloads for its ", items,
                     " items, but has ", message.labels_size(), " and ", message.payloads_size()));
  }
  for (const int32_t label : message.labels()) {
    if (const auto slot = parameters.SlotOf(label); !slot.ok()) {
      return absl::DataLossError(slot.status().message());
    }
  }
  for (const std::string& payload : message.payloads()) PM_RETURN_IF_ERROR(CheckPayload(payload));
  return absl::OkStatus();
}

// The feature vectors of one message, one an item.
absl::StatusOr<FloatMatrix> Decode(const PublicParameters& parameters,
                                   const CellQueryOptions& options,
                                   const v1::RetrieveCellsResponse& message) {
  PM_RETURN_IF_ERROR(CheckItems(parameters, options, message));
  PM_ASSIGN_OR_RETURN(FloatMatrix rows,
                      DecodeCodes(*parameters.cell_code, parameters.feature_dim, message.codes()));
  if (rows.rows() == message.ids_size()) return rows;
  return absl::DataLossError(absl::StrCat("it must have a code for each of its ",
                                          message.ids_size(), " items, but has ", rows.rows()));
}

}  // namespace

absl::StatusOr<CellClient> CellClient::Create(const v1::GetCollectionResponse& collection,
                                              const std::vector<v1::GetAnchorsResponse>& anchors) {
  PM_ASSIGN_OR_RETURN(PublicParameters parameters, ReadBuiltCollection(collection));
  PM_ASSIGN_OR_RETURN(const Anchors joined, JoinAnchors(anchors, parameters.feature_dim));
  PM_ASSIGN_OR_RETURN(CellScheme scheme, CellScheme::Create(std::move(parameters), joined));
  return CellClient(collection.name(), std::move(scheme));
}

absl::StatusOr<PreparedCellQuery> CellClient::Prepare(const Eigen::RowVectorXf& features,
                                                      const CellQueryOptions& options,
                                                      Ledger& ledger, BitSource& bits) const {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", options.k, 1, kMaxNeighbors));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("items", options.items,
                                         std::max<int64_t>(options.cost.ask, 1),
                                         std::numeric_limits<uint32_t>::max()));
  PM_ASSIGN_OR_RETURN(const CellRelease release,
                      scheme_.Release(features, options.cost, ledger, bits));
  PreparedCellQuery prepared;
  v1::RetrieveCellsRequest& request = prepared.request;
  request.set_collection(name_);
  request.set_fingerprint(Fingerprint(parameters()));
  request.set_partition(static_cast<uint32_t>(options.cost.partition));
  request.mutable_cells()->Assign(release.cells.begin(), release.cells.end());
  request.set_epsilon(options.cost.epsilon);
  request.set_items(static_cast<uint32_t>(options.items));
  request.set_with_payloads(options.with_payloads);
  prepared.state = {.unit_features = features.cast<double>().normalized(),
                    .options = options,
                    .guarantee = release.guarantee};
  return prepared;
}

absl::StatusOr<CellQueryResult> CellClient::Finish(
    const CellQueryState& state, const std::vector<v1::RetrieveCellsResponse>& response) const {
  CellQueryResult result;
  NearestSoFar nearest(state.options.k, nullptr);
  std::vector<QueryMatch> items;
  for (size_t i = 0; i < response.size(); ++i) {
    const v1::RetrieveCellsResponse& message = response[i];
    const absl::StatusOr<FloatMatrix> rows = Decode(parameters(), state.options, message);
    if (!rows.ok()) {
      return absl::Status(rows.status().code(),
                          absl::StrCat("answer, message ", i, ": ", rows.status().message()));
    }
    const Matrix decoded = rows->cast<double>();
    for (int item = 0; item < message.ids_size(); ++item) {
      const double distance = SquaredDistance(decoded.row(item).data(), state.unit_features.data(),
                                              state.unit_features.size());
      nearest.Offer({std::ssize(items), distance});
      items.push_back({message.ids(item), message.labels(item), distance,
                       state.options.with_payloads ? message.payloads(item) : ""});
    }
    result.items_version = message.items_version();
  }
  result.candidates = std::ssize(items);
  // The server rounds up to the same number for every cell.
  if (result.candidates > state.options.items + state.options.cost.ask - 1) {
    return absl::DataLossError(absl::StrCat("answer: at most ", state.options.items,
                                            " items were asked for, but ", result.candidates,
                                            " came"));
  }
  for (const Neighbor& one : nearest.Sorted()) {
    result.matches.push_back(std::move(items[static_cast<size_t>(one.row)]));
  }
  return result;
}

}  // namespace privatemail
