// v1.RetrievalService: cells.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/cells/cell_lists.h"
#include "common/embedding/offered_schemes.h"
#include "server/services/collection_state.h"
#include "server/services/response_encoders.h"
#include "server/services/services.h"

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

absl::Status CheckRequest(const v1::RetrieveCellsRequest& request,
                          const PublicParameters& parameters) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("partition", request.partition(), 0,
                                         std::ssize(parameters.cell_partitions) - 1));
  PM_RETURN_IF_ERROR(CheckCells(request, parameters.cell_partitions[request.partition()].cells));
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", request.epsilon()));
  if (request.items() >= static_cast<uint32_t>(request.cells_size())) return absl::OkStatus();
  return InvalidField("items",
                      absl::StrCat("must be at least one for each of the ", request.cells_size(),
                                   " cells, but is ", request.items()));
}

// ceil(items / cells) rows of each cell's list, at most all.
int64_t RowsPerCell(const v1::RetrieveCellsRequest& request, int64_t items) {
  const int64_t cells = request.cells_size();
  return std::min((request.items() + cells - 1) / cells, items);
}

absl::Status CheckMemory(const CellIndex& index, const v1::RetrieveCellsRequest& request,
                         Call& call) {
  const int64_t bytes =
      index.MemoryOfRows(request.cells_size(), RowsPerCell(request, index.items()));
  PM_RETURN_IF_ERROR(CheckLimit("memory of this request in bytes", bytes,
                                call.limits().max_request_memory, "memory / 16"));
  return call.ReserveSearchMemory(bytes);
}

using BlockSource = absl::FunctionRef<absl::StatusOr<std::shared_ptr<const EncodedBlock>>(
    absl::Span<const int32_t> rows, int64_t first)>;

// Sends the rows in blocks of one message each and skips blocks whose items are all deleted. If
// none is left, one empty message ends the answer.
absl::Status SendBlocks(absl::Span<const int32_t> rows, int64_t rows_per_block,
                        const BlockSource& block_of, Call& call) {
  int64_t first = 0, sent = 0;
  do {
    const auto block_rows =
        rows.subspan(static_cast<size_t>(first), static_cast<size_t>(rows_per_block));
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const EncodedBlock> block,
                        block_of(block_rows, first));
    first += std::ssize(block_rows);
    const bool is_last = first >= std::ssize(rows);
    if (block->items == 0 && !(is_last && sent == 0)) continue;
    sent += block->items;
    call.AddRows(block->items);
    PM_RETURN_IF_ERROR(call.Write(std::shared_ptr<const std::string>(block, &block->bytes)));
  } while (first < std::ssize(rows));
  return absl::OkStatus();
}

absl::Status SendCells(const Catalog& catalog, const v1::RetrieveCellsRequest& request,
                       Call& call) {
  PM_ASSIGN_OR_RETURN(const CollectionView view,
                      FindCollection(catalog, request.collection(), request.fingerprint()));
  PM_RETURN_IF_ERROR(CheckHasCells(request.collection(), view.published->parameters));
  PM_RETURN_IF_ERROR(CheckRequest(request, view.published->parameters));
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const CellIndex> index, RequireCells(view));
  PM_RETURN_IF_ERROR(CheckEmbeddingVersion(request, index->embedding_version()));
  PM_RETURN_IF_ERROR(CheckDeletionsAreHidden(catalog, view, call));
  PM_RETURN_IF_ERROR(CheckMemory(*index, request, call));
  const auto cancelled = [&call] { return call.Cancelled(); };
  PM_ASSIGN_OR_RETURN(const std::vector<int32_t> rows,
                      index->RowsFor(request.partition(), request.cells(), request.epsilon(),
                                     RowsPerCell(request, index->items()), cancelled));
  const bool with_payloads = request.with_payloads();
  const auto encode = [&](absl::Span<const int32_t> block_rows) {
    return EncodeCellBlock(*index, block_rows, view.hidden_in_cells.get(), with_payloads);
  };
  const int64_t rows_per_block = index->RowsPerBlock(with_payloads);
  if (request.cells_size() > 1) {  // too many possible sets for a cache to pay off
    const auto block_of = [&](absl::Span<const int32_t> block_rows, int64_t /*first*/) {
      return std::make_shared<const EncodedBlock>(encode(block_rows));
    };
    return SendBlocks(rows, rows_per_block, block_of, call);
  }
  const auto block_of = [&](absl::Span<const int32_t> block_rows, int64_t first) {
    return index->BlockFor({request.partition(), QuantiseEpsilon(request.epsilon()),
                            request.cells(0), with_payloads, first, first + std::ssize(block_rows)},
                           view.hidden_in_cells, cancelled, [&] { return encode(block_rows); });
  };
  return SendBlocks(rows, rows_per_block, block_of, call);
}

}  // namespace

void ServeRetrieveCells(const Catalog* catalog, Dispatcher* dispatcher) {
  dispatcher->Serve<v1::RetrieveCellsRequest>(
      "RetrieveCells",
      [catalog](Call& call, const auto& request) { return SendCells(*catalog, request, call); });
}

}  // namespace privatemail::server
