#include "server/services/answer_cells.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "server/services/cell_bytes.h"
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

// How many rows of each cell's list.
int64_t RowsOfEachCell(const v1::RetrieveCellsRequest& request, int64_t items) {
  const int64_t asked = request.cells_size();
  return std::min((request.items() + asked - 1) / asked, items);
}

// The lists, and whether each item was taken.
absl::Status CheckMemory(const CellIndex& index, const v1::RetrieveCellsRequest& request,
                         const Limits& limits) {
  const int64_t length = RowsOfEachCell(request, index.items());
  const int64_t bytes = index.MemoryOfLists(request.cells_size(), length) + index.items() / 8;
  return CheckLimit("memory of this request in bytes", bytes, limits.max_request_memory,
                    "max_request_memory");
}

// The message of what was gathered.
absl::Status Send(CellBytes& items, Call& call, MessageWriter<v1::RetrieveCellsResponse>& writer) {
  call.AddRows(items.items());
  if (writer.WriteBytes(items.Take())) return absl::OkStatus();
  PM_RETURN_IF_ERROR(call.StreamStatus());
  return absl::CancelledError("the caller stopped reading");
}

bool IsHidden(const HiddenRows* hidden, int64_t row) {
  return hidden != nullptr && hidden->hidden[static_cast<size_t>(row)];
}

}  // namespace

absl::Status AnswerForCells(const Catalog& catalog, const v1::RetrieveCellsRequest& request,
                            Call& call, MessageWriter<v1::RetrieveCellsResponse>& writer) {
  PM_ASSIGN_OR_RETURN(const CollectionView view,
                      FindMatching(catalog, request.collection(), request.fingerprint()));
  PM_RETURN_IF_ERROR(view.CheckHasCells());
  PM_RETURN_IF_ERROR(Check(request, view.published->parameters));
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const CellIndex> index, view.Cells());
  PM_RETURN_IF_ERROR(CheckMemory(*index, request, call.limits()));
  const int64_t length = RowsOfEachCell(request, index->items());
  PM_ASSIGN_OR_RETURN(const std::vector<KeptLists::List> lists,
                      index->ListsFor(request.partition(), request.cells(), request.epsilon(),
                                      length, [&call] { return call.Cancelled(); }));
  CellBytes items(*index, request.with_payloads());
  std::vector<bool> taken(static_cast<size_t>(index->items()));
  for (const KeptLists::List& list : lists) {
    for (int64_t i = 0; i < length; ++i) {
      const int32_t row = (*list)[static_cast<size_t>(i)];
      if (taken[static_cast<size_t>(row)]) continue;
      taken[static_cast<size_t>(row)] = true;
      if (IsHidden(view.hidden_in_cells.get(), row)) continue;
      items.Add(row);
      if (items.size() >= kChunkBytes) PM_RETURN_IF_ERROR(Send(items, call, writer));
    }
  }
  // Also where no item is left: the caller sees that it has been answered.
  return Send(items, call, writer);
}

}  // namespace privatemail
