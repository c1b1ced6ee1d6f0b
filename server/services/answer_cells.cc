#include "server/services/answer_cells.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "server/services/request.h"

namespace privatemail {
namespace {

// Large enough for little overhead, small enough to begin at once and to bound memory.
constexpr size_t kChunkBytes = 1 << 16;

absl::Status CheckCells(const v1::RetrieveCellsRequest& request, int64_t cells) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("number of cells", request.cells_size(), 1, cells - 1));
  for (int i = 0; i < request.cells_size(); ++i) {
    const std::string field = absl::StrCat("cells[", i, "]");
    PM_RETURN_IF_ERROR(CheckIntegerBetween(field, request.cells(i), 0, cells - 1));
    if (i == 0 || request.cells(i) > request.cells(i - 1)) continue;
    return absl::InvalidArgumentError(absl::StrCat(field, " must be more than the one before, ",
                                                   request.cells(i - 1), ", but is ",
                                                   request.cells(i)));
  }
  return absl::OkStatus();
}

absl::Status Check(const v1::RetrieveCellsRequest& request, const PublicParameters& parameters) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("partition", request.partition(), 0,
                                         std::ssize(parameters.cell_partitions) - 1));
  PM_RETURN_IF_ERROR(CheckCells(request, parameters.cell_partitions[request.partition()].cells));
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", request.epsilon()));
  if (request.items() >= static_cast<uint32_t>(request.cells_size())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("items must be at least one for each of the ",
                                                 request.cells_size(), " cells, but is ",
                                                 request.items()));
}

// Lists are kept for a few epsilons, of which neighbours differ little in what they are worth.
double Rounded(double epsilon) {
  constexpr double kSmallest = 1. / 16, kLargest = 32;
  return std::exp2(std::round(2 * std::log2(std::clamp(epsilon, kSmallest, kLargest))) / 2);
}

std::vector<int64_t> RowsThatAnswer(const CellIndex& index,
                                    const v1::RetrieveCellsRequest& request) {
  const int64_t asked = request.cells_size();
  const int64_t length = std::min((request.items() + asked - 1) / asked, index.items());
  const auto lists = index.ListsFor(request.partition(), Rounded(request.epsilon()), length);
  std::vector<int64_t> rows;
  std::vector<bool> taken(static_cast<size_t>(index.items()));
  for (const uint32_t cell : request.cells()) {
    for (const int64_t row : (*lists)[cell]) {
      if (taken[static_cast<size_t>(row)]) continue;
      taken[static_cast<size_t>(row)] = true;
      rows.push_back(row);
    }
  }
  return rows;
}

absl::Status Send(const v1::RetrieveCellsResponse& message, Call& call,
                  MessageWriter<v1::RetrieveCellsResponse>& writer) {
  call.AddRows(static_cast<uint64_t>(message.ids_size()));
  if (writer.Write(message)) return absl::OkStatus();
  PM_RETURN_IF_ERROR(call.StreamStatus());
  return absl::CancelledError("the caller stopped reading");
}

}  // namespace

absl::Status AnswerForCells(const Catalog& catalog, const v1::RetrieveCellsRequest& request,
                            Call& call, MessageWriter<v1::RetrieveCellsResponse>& writer) {
  PM_ASSIGN_OR_RETURN(const CollectionView view,
                      FindMatching(catalog, request.collection(), request.fingerprint()));
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const CellIndex> index, view.Cells());
  PM_RETURN_IF_ERROR(Check(request, view.published->parameters));
  const HiddenRows* hidden = view.hidden_in_cells.get();
  v1::RetrieveCellsResponse message;
  size_t bytes = 0;
  for (const int64_t row : RowsThatAnswer(*index, request)) {
    if (hidden != nullptr && hidden->hidden[static_cast<size_t>(row)]) continue;
    message.add_ids(index->IdOf(row));
    message.add_labels(index->LabelOf(row));
    absl::StrAppend(message.mutable_codes(), index->CodeOf(row));
    bytes += index->IdOf(row).size() + index->CodeOf(row).size();
    if (request.with_payloads()) {
      message.add_payloads(index->PayloadOf(row));
      bytes += index->PayloadOf(row).size();
    }
    if (bytes < kChunkBytes) continue;
    message.set_items_version(index->items_version());
    PM_RETURN_IF_ERROR(Send(message, call, writer));
    message.Clear();
    bytes = 0;
  }
  // Also where no item is left: the caller sees that it has been answered.
  message.set_items_version(index->items_version());
  return Send(message, call, writer);
}

}  // namespace privatemail
