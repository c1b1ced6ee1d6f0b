// Files of query plans, written by `privatemail plan` and read by `privatemail query`.
#ifndef PRIVATEMAIL_CLIENT_CLI_PLAN_FILE_H_
#define PRIVATEMAIL_CLIENT_CLI_PLAN_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/schemes/cells/cell_scheme.h"

namespace privatemail::client::cli {

// The settings of a query that a plan holds. Public.
struct PlannedQuery {
  std::string collection;   // its name
  std::string fingerprint;  // of its public parameters, 32 bytes
  CellCost cost;
  int64_t items = 0;
  int64_t k = 8;
};

// One line of JSON.
std::string PlanText(const PlannedQuery& query);

// INVALID_ARGUMENT naming the file and the field: the file cannot be read or is no plan.
absl::StatusOr<PlannedQuery> ReadPlan(const std::string& path);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_PLAN_FILE_H_
