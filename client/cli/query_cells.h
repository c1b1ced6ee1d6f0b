// `privatemail query --scheme cells`: private queries for cells of the anchors.
#ifndef PRIVATEMAIL_CLIENT_CLI_QUERY_CELLS_H_
#define PRIVATEMAIL_CLIENT_CLI_QUERY_CELLS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "client/cli/query_targets.h"
#include "client/queries/cell_queries.h"
#include "privatemail/cell_client.h"
#include "privatemail/transport.h"

namespace privatemail::client::cli {

// Options of this scheme only.
struct CellsOptions {
  int64_t partition = 0;
  int64_t ask = 1;
  int64_t focus = 1;
  std::optional<int64_t> items = {};  // by the published quality if absent
};
inline constexpr const char* kCellsFlags[] = {"--partition", "--ask", "--focus", "--items",
                                              "--own-anchors"};

void AddCellsOptions(CLI::App* command, CellsOptions* options);

struct CellsQuery {
  std::string collection;
  std::string fingerprint = {};  // the collection must have it; empty: any
  TargetOptions targets;         // with labels only if the collection's cell code is none
  CellsOptions cells;
  double epsilon = 0;
  int64_t k = 8;
  bool with_payloads = false;
  bool accept_misalignment = false;
};

// INVALID_ARGUMENT naming `option`: labels are given, but the collection's items are ranked
// without.
absl::Status CheckLabelsUsable(const TargetOptions& targets, const PublicParameters& parameters,
                               const std::string& option);

// Queries for each target in turn and prints each answer. Failures that this machine can detect
// come before the first charge.
absl::Status QueryCells(const Context& context, const CellsQuery& query);

// The class by which a target was placed among coordinates (guessed: from its features). Nothing
// where items are codes.
void AddPlaceJson(const CellTarget& target, bool guessed, nlohmann::json* answer);
std::string PlaceText(const CellTarget& target, bool guessed, const PublicParameters& parameters,
                      const std::optional<ExpectedAlignment>& alignment = std::nullopt);

nlohmann::json OutcomeJson(const CellsOutcome& outcome, const CellClient& client,
                           const std::vector<std::string>& warnings);

// Matches as `query` and `resend` print them.
std::string MatchesText(const std::vector<QueryMatch>& matches, const PublicParameters& parameters);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_QUERY_CELLS_H_
