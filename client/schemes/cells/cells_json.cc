#include <nlohmann/json.hpp>
#include <vector>

#include "client/schemes/cells/cells_search.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {

void AddCellsJson(const SearchResponse&, const SearchResult& result, nlohmann::json* json) {
  json->update({{"partition", result.cells->partition},
                {"cells", result.cells->cells},
                {"candidates", result.cells->candidates},
                {"items_version", result.cells->items_version},
                {"timings", {{"round_trip_ms", result.times.answer_ms}}}});
  if (result.cells->own_cell_probability.has_value()) {
    (*json)["own_cell_probability"] = *result.cells->own_cell_probability;
  }
  // Nothing is released when a message is sent again.
  if (result.guarantee.has_value()) (*json)["timings"]["release_ms"] = result.times.prepare_ms;
}

absl::StatusOr<nlohmann::json> ExplainCells(const v1::RetrieveCellsRequest& request,
                                            const PublicParameters& parameters) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("partition", request.partition(), 0,
                                         std::ssize(parameters.cell_partitions) - 1));
  return nlohmann::json{
      {"partition", request.partition()},
      {"of_cells", parameters.cell_partitions[request.partition()].cells},
      {"cells", std::vector<uint32_t>(request.cells().begin(), request.cells().end())},
      {"epsilon", request.epsilon()},
      {"items", request.items()},
      {"with_payloads", request.with_payloads()},
      {"bytes", request.ByteSizeLong()}};
}

}  // namespace privatemail::client
