// `privatemail query --scheme cells`: a private query that asks for cells of the anchors.
#ifndef PRIVATEMAIL_CLIENT_CLI_QUERY_CELLS_H_
#define PRIVATEMAIL_CLIENT_CLI_QUERY_CELLS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "privatemail/cell_client.h"
#include "client/cli/command.h"
#include "client/cli/query_targets.h"
#include "privatemail/transport.h"

namespace privatemail::client::cli {

// The options that this scheme alone has. items: -1 where it is not given.
struct CellsOptions {
  int64_t partition = 0;
  int64_t ask = 1;
  int64_t focus = 1;
  int64_t items = -1;
};
inline constexpr const char* kCellsFlags[] = {"--partition", "--ask", "--focus", "--items",
                                              "--own-anchors"};

void AddCellsOptions(CLI::App* command, CellsOptions* options);

struct CellsQuery {
  std::string collection;
  std::string fingerprint;  // the collection must still have it; empty: any
  TargetOptions targets;    // labels: only where the collection's code is none
  CellsOptions cells;
  double epsilon = 0;
  int64_t k = 8;
  bool with_payloads = false;
};

// INVALID_ARGUMENT: labels are given and the collection's items are ranked without any. asked:
// the option by which cells were chosen, for the message.
absl::Status CheckLabelsOfUse(const TargetOptions& targets, const PublicParameters& parameters,
                              const std::string& asked);

// Asks for each target in turn. What can fail on this machine, or is known to fail on the server,
// fails before the first charge.
absl::Status QueryCells(const Context& context, const CellsQuery& query);

// Sends a request for cells of this collection; more than was asked for is not read to its end.
absl::StatusOr<std::vector<v1::RetrieveCellsResponse>> RetrieveCells(
    const Transport& transport, const v1::GetCollectionResponse& collection,
    const v1::RetrieveCellsRequest& request);

// The label that was given with a target, if one was.
std::optional<int32_t> LabelOf(const NamedTarget& target);

// How a target was placed among coordinates, where items are such: of which class (guessed: from
// its features). Nothing for codes.
void AddPlace(const CellTarget& target, bool guessed, nlohmann::json* answer);
void PrintPlace(const CellTarget& target, bool guessed, const PublicParameters& parameters,
                std::optional<double> relative_residual = std::nullopt);

// Matches as both `query` and `resend` print them.
void PrintMatches(const CellQueryResult& result, const PublicParameters& parameters);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_QUERY_CELLS_H_
