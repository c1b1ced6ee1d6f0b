#include "client/schemes/cells/cell_answer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "client/schemes/answer_check.h"
#include "client/schemes/request_checks.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/items/item_checks.h"
#include "common/items/item_code.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client {
namespace {

using Response = std::vector<v1::RetrieveCellsResponse>;

// An id, a label and their protobuf framing.
constexpr int64_t kItemBytes = kMaxItemIdBytes + 64;
constexpr int64_t kPayloadBytes = int64_t{1} << 30;  // in all; one payload has no limit

absl::Status CheckItems(const PublicParameters& parameters, bool with_payloads,
                        const v1::RetrieveCellsResponse& message) {
  const int items = message.ids_size();
  const int payloads = with_payloads ? items : 0;
  if (message.labels_size() != items || message.payloads_size() != payloads) {
    return absl::DataLossError(
        absl::StrCat("it must have ", items, " labels and ", payloads, " payloads for its ", items,
                     " items, but has ", message.labels_size(), " and ", message.payloads_size()));
  }
  for (const std::string& id : message.ids()) PM_RETURN_IF_ERROR(CheckReceivedId(id));
  for (const int32_t label : message.labels()) {
    PM_RETURN_IF_ERROR(CheckItemLabel(label, parameters));
  }
  for (const std::string& payload : message.payloads()) PM_RETURN_IF_ERROR(CheckPayload(payload));
  return absl::OkStatus();
}

absl::Status CheckDistinctIds(const Response& response) {
  size_t items = 0;
  for (const v1::RetrieveCellsResponse& message : response) {
    items += static_cast<size_t>(message.ids_size());
  }
  absl::flat_hash_set<std::string_view> ids(items);
  for (const v1::RetrieveCellsResponse& message : response) {
    for (const std::string& id : message.ids()) {
      if (!ids.insert(id).second) return absl::DataLossError("answer: an item is repeated");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FloatMatrix>> DecodeAll(const PublicParameters& parameters,
                                                   const v1::RetrieveCellsRequest& request,
                                                   const Response& response) {
  CellAnswerLimit limit(parameters, request);
  std::vector<FloatMatrix> rows;
  for (size_t i = 0; i < response.size(); ++i) {
    PM_RETURN_IF_ERROR(limit.Add(response[i]));
    absl::StatusOr<FloatMatrix> decoded =
        DecodeItems(parameters, request.with_payloads(), response[i]);
    if (!decoded.ok()) {
      return absl::DataLossError(
          absl::StrCat("answer, message ", i, ": ", decoded.status().message()));
    }
    rows.push_back(*std::move(decoded));
  }
  PM_RETURN_IF_ERROR(CheckDistinctIds(response));
  return rows;
}

}  // namespace

absl::StatusOr<FloatMatrix> DecodeItems(const PublicParameters& parameters, bool with_payloads,
                                        const v1::RetrieveCellsResponse& message) {
  PM_RETURN_IF_ERROR(CheckItems(parameters, with_payloads, message));
  PM_ASSIGN_OR_RETURN(FloatMatrix rows, DecodeItemCodes(parameters, message.codes()));
  if (rows.rows() == message.ids_size()) return rows;
  return absl::DataLossError(absl::StrCat("it must have a code for each of its ",
                                          message.ids_size(), " items, but has ", rows.rows()));
}

int64_t MaxItems(const v1::RetrieveCellsRequest& request) {
  const int64_t cells = std::max(request.cells_size(), 1);
  return (request.items() + cells - 1) / cells * cells;
}

CellAnswerLimit::CellAnswerLimit(const PublicParameters& parameters,
                                 const v1::RetrieveCellsRequest& request)
    : items_left_(MaxItems(request)),
      bytes_left_(items_left_ * (kItemBytes + ItemCodeBytes(parameters)) +
                  (request.with_payloads() ? kPayloadBytes : 0) + kItemBytes) {}

absl::Status CellAnswerLimit::Add(const v1::RetrieveCellsResponse& message) {
  items_left_ -= message.ids_size();
  if (items_left_ < 0) {
    return absl::DataLossError(
        absl::StrCat("answer: ", -items_left_, " items more than requested"));
  }
  bytes_left_ -= static_cast<int64_t>(message.ByteSizeLong());
  if (bytes_left_ < 0) {
    return absl::DataLossError(
        absl::StrCat("answer: ", -bytes_left_, " bytes more than its items can take"));
  }
  if (message.ids_size() > 0 || empty_messages_left_-- > 0) return absl::OkStatus();
  return absl::DataLossError("answer: a second message without items");
}

absl::StatusOr<CellTarget> CellTarget::From(const PublicParameters& parameters,
                                            const Eigen::RowVectorXf& features, int64_t k) {
  PM_RETURN_IF_ERROR(CheckColumns("query", parameters.feature_dim, features.size()));
  PM_ASSIGN_OR_RETURN(const Matrix unit, UnitRows("query", FloatMatrix(features)));
  return CellTarget{.point = unit.row(0), .k = k};
}

absl::Status ReadCellAnswer(const PublicParameters& parameters,
                            const v1::RetrieveCellsRequest& request, const CellTarget& target,
                            const std::vector<v1::RetrieveCellsResponse>& response,
                            SearchResult* result) {
  PM_ASSIGN_OR_RETURN(const std::vector<FloatMatrix> rows,
                      DecodeAll(parameters, request, response));
  std::vector<int64_t> payloads;
  for (const v1::RetrieveCellsResponse& message : response) {
    for (const std::string& payload : message.payloads()) payloads.push_back(std::ssize(payload));
  }
  PM_RETURN_IF_ERROR(
      CheckPayloadMemory(std::move(payloads), target.k, target.targets, target.max_memory));
  CellsResult& cells = result->cells.emplace();
  cells.partition = request.partition();
  cells.cells.assign(request.cells().begin(), request.cells().end());
  TopK nearest(target.k, nullptr);
  RowVector decoded;
  std::vector<std::pair<size_t, int>> positions;  // of candidates: message, item in it
  for (size_t i = 0; i < rows.size(); ++i) {
    for (Eigen::Index item = 0; item < rows[i].rows(); ++item) {
      decoded = rows[i].row(item).cast<double>();
      nearest.Offer({std::ssize(positions),
                     SquaredDistance(decoded.data(), target.point.data(), decoded.size())});
      positions.emplace_back(i, static_cast<int>(item));
    }
    cells.items_version = response[i].items_version();
  }
  cells.candidates = std::ssize(positions);
  for (const Neighbor& neighbor : nearest.Sorted()) {
    const auto& [i, item] = positions[static_cast<size_t>(neighbor.row)];
    const v1::RetrieveCellsResponse& message = response[i];
    result->matches.push_back({message.ids(item), message.labels(item), neighbor.squared_distance,
                               request.with_payloads() ? message.payloads(item) : ""});
  }
  return absl::OkStatus();
}

}  // namespace privatemail::client
