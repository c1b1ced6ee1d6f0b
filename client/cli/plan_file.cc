#include "client/cli/plan_file.h"

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client::cli {
namespace {

using nlohmann::json;

constexpr size_t kFingerprintBytes = 32;

absl::Status NoPlan(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("--plan ", path, " is not a file written by `privatemail plan --out`: ", why));
}

template <typename Value>
absl::Status Take(const std::string& path, const json& plan, const char* field,
                  bool (json::*is)() const noexcept, Value* value) {
  if (!plan.contains(field) || !(plan[field].*is)()) {
    return NoPlan(path, absl::StrCat(field, " is missing or of another type"));
  }
  *value = plan[field].get<Value>();
  return absl::OkStatus();
}

// nlohmann::json stores numbers beyond int64_t as unsigned; get<int64_t>() makes them negative.
absl::Status TakeCount(const std::string& path, const json& plan, const char* field,
                       int64_t* value) {
  PM_RETURN_IF_ERROR(Take(path, plan, field, &json::is_number_integer, value));
  if (!plan[field].is_number_unsigned() || *value >= 0) return absl::OkStatus();
  return NoPlan(path, absl::StrCat(field, " is ", plan[field].dump(), ", which is too large"));
}

}  // namespace

std::string PlanText(const PlannedQuery& query) {
  return absl::StrCat(json{{"collection", query.collection},
                           {"fingerprint", ToHex(query.fingerprint)},
                           {"scheme", "cells"},
                           {"partition", query.cost.partition},
                           {"ask", query.cost.ask},
                           {"focus", query.cost.focus},
                           {"epsilon", query.cost.epsilon},
                           {"items", query.items},
                           {"k", query.k}}
                          .dump(),
                      "\n");
}

absl::StatusOr<PlannedQuery> ReadPlan(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile("--plan", path);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  const json plan = json::parse(*text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!plan.is_object()) return NoPlan(path, "it holds no JSON object");
  PlannedQuery query;
  std::string scheme, fingerprint;
  PM_RETURN_IF_ERROR(Take(path, plan, "collection", &json::is_string, &query.collection));
  PM_RETURN_IF_ERROR(Take(path, plan, "fingerprint", &json::is_string, &fingerprint));
  PM_RETURN_IF_ERROR(Take(path, plan, "scheme", &json::is_string, &scheme));
  PM_RETURN_IF_ERROR(TakeCount(path, plan, "partition", &query.cost.partition));
  PM_RETURN_IF_ERROR(TakeCount(path, plan, "ask", &query.cost.ask));
  PM_RETURN_IF_ERROR(TakeCount(path, plan, "focus", &query.cost.focus));
  PM_RETURN_IF_ERROR(Take(path, plan, "epsilon", &json::is_number, &query.cost.epsilon));
  PM_RETURN_IF_ERROR(TakeCount(path, plan, "items", &query.items));
  PM_RETURN_IF_ERROR(TakeCount(path, plan, "k", &query.k));
  if (scheme != "cells") {
    return NoPlan(path, absl::StrCat("scheme must be cells, but is ", scheme));
  }
  query.fingerprint = absl::HexStringToBytes(fingerprint);
  if (query.fingerprint.size() == kFingerprintBytes && ToHex(query.fingerprint) == fingerprint) {
    return query;
  }
  return NoPlan(path, "fingerprint must be 64 hexadecimal digits");
}

}  // namespace privatemail::client::cli
