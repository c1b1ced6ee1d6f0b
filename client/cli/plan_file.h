// Plans of queries in files: written by `privatemail plan`, read by `privatemail query`.
#ifndef PRIVATEMAIL_CLIENT_CLI_PLAN_FILE_H_
#define PRIVATEMAIL_CLIENT_CLI_PLAN_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "privatemail/cell_scheme.h"

namespace privatemail::client::cli {

// All that a query takes from a plan. Public.
struct PlannedQuery {
  std::string collection;   // its name
  std::string fingerprint;  // of its public parameters, 32 bytes
  CellCost cost;
  int64_t items = 0;
  int64_t k = 8;
};

// As one line of JSON, which people may read and change.
std::string PlanText(const PlannedQuery& query);

// INVALID_ARGUMENT naming the file and the field: it cannot be read, or is no plan.
absl::StatusOr<PlannedQuery> ReadPlan(const std::string& path);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_PLAN_FILE_H_
