#include "server/services/answer_cells.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/cells/cell_lists.h"
#include "server/services/cell_bytes.h"
#include "server/services/collection_state.h"
#include "server/services/request.h"

namespace privatemail::server {
namespace {

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

absl::Status CheckMemory(const CellIndex& index, const v1::RetrieveCellsRequest& request,
                         const Limits& limits) {
  const int64_t bytes =
      index.MemoryOfRows(request.cells_size(), RowsOfEachCell(request, index.items()));
  return CheckLimit("memory of this request in bytes", bytes, limits.max_request_memory,
                    "max_request_memory");
}

// A searcher whose anchors are of one embedding is not sent coordinates of an earlier one, which
// another daemon still has. UNAVAILABLE makes clients send the same again.
absl::Status CheckVersion(const CellIndex& index, const v1::RetrieveCellsRequest& request) {
  if (request.embedding_version() <= index.embedding_version()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "embedding_version ", request.embedding_version(), " of collection ", request.collection(),
      " is not here yet: this daemon sends coordinates of version ", index.embedding_version(),
      "; send it again"));
}

using Blocks = absl::FunctionRef<absl::StatusOr<std::shared_ptr<const CellBlock>>(
    absl::Span<const int32_t> rows, int64_t first)>;

// The blocks of these rows, one message each, without those whose items are all deleted. One also
// where no item is left: the caller sees that it has been answered.
absl::Status Send(absl::Span<const int32_t> rows, int64_t rows_of_block, const Blocks& block_of,
                  Call& call, MessageWriter<v1::RetrieveCellsResponse>& writer) {
  int64_t first = 0, sent = 0;
  do {
    const auto some = rows.subspan(static_cast<size_t>(first), static_cast<size_t>(rows_of_block));
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const CellBlock> block, block_of(some, first));
    first += std::ssize(some);
    const bool is_last = first >= std::ssize(rows);
    if (block->items == 0 && !(is_last && sent == 0)) continue;  // all deleted
    sent += block->items;
    call.AddRows(block->items);
    if (!writer.WriteBytes({block, &block->message})) {
      PM_RETURN_IF_ERROR(call.StreamStatus());
      return absl::CancelledError("the caller stopped reading");
    }
  } while (first < std::ssize(rows));
  return absl::OkStatus();
}

}  // namespace

absl::Status AnswerForCells(const Catalog& catalog, const v1::RetrieveCellsRequest& request,
                            Call& call, MessageWriter<v1::RetrieveCellsResponse>& writer) {
  PM_ASSIGN_OR_RETURN(const CollectionView view,
                      FindMatching(catalog, request.collection(), request.fingerprint()));
  PM_RETURN_IF_ERROR(CheckHasCells(view));
  PM_RETURN_IF_ERROR(Check(request, view.published->parameters));
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const CellIndex> index, RequireCells(view));
  if (view.published->parameters.SendsCoordinates()) {
    PM_RETURN_IF_ERROR(CheckVersion(*index, request));
  }
  PM_RETURN_IF_ERROR(CheckMemory(*index, request, call.limits()));
  const auto cancelled = [&call] { return call.Cancelled(); };
  PM_ASSIGN_OR_RETURN(const std::vector<int32_t> rows,
                      index->RowsFor(request.partition(), request.cells(), request.epsilon(),
                                     RowsOfEachCell(request, index->items()), cancelled));
  const bool with_payloads = request.with_payloads();
  const auto make = [&](absl::Span<const int32_t> some) {
    return CellBytes(*index, some, view.hidden_in_cells.get(), with_payloads);
  };
  const int64_t rows_of_block = index->RowsOfBlock(with_payloads);
  if (request.cells_size() > 1) {  // too many sets of cells for others to ask for the same
    const auto block_of = [&](absl::Span<const int32_t> some, int64_t /*first*/) {
      return std::make_shared<const CellBlock>(make(some));
    };
    return Send(rows, rows_of_block, block_of, call, writer);
  }
  const auto block_of = [&](absl::Span<const int32_t> some, int64_t first) {
    return index->BlockFor({request.partition(), ListedEpsilon(request.epsilon()), request.cells(0),
                            with_payloads, first, first + std::ssize(some)},
                           view.hidden_in_cells, cancelled, [&] { return make(some); });
  };
  return Send(rows, rows_of_block, block_of, call, writer);
}

}  // namespace privatemail::server
