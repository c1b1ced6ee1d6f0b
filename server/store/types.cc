#include "server/store/types.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {
namespace {

// The JSON library's strict writer is the UTF-8 check: it throws on anything else.
bool IsUtf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

absl::Status CheckId(const std::string& id) {
  if (id.empty() || id.size() > kMaxItemIdBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "id must be 1 to ", kMaxItemIdBytes, " bytes of UTF-8, but has ", id.size(), " bytes"));
  }
  if (!IsUtf8(id)) {
    return absl::InvalidArgumentError(
        absl::StrCat("id must be 1 to ", kMaxItemIdBytes, " bytes of UTF-8, but is not UTF-8"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckItem(const Item& item, const PublicParameters& parameters) {
  PM_RETURN_IF_ERROR(CheckId(item.id));
  const auto columns = static_cast<int64_t>(item.features.size());
  PM_RETURN_IF_ERROR(CheckColumns("features", parameters.feature_dim, columns));
  PM_RETURN_IF_ERROR(CheckUnitScalable("features", item.features.data(), columns));
  if (const auto slot = parameters.SlotOf(item.label); !slot.ok()) {
    return absl::InvalidArgumentError(slot.status().message());
  }
  if (!item.payload.empty() && !nlohmann::json::accept(item.payload)) {
    return absl::InvalidArgumentError(absl::StrCat("payload must be empty or a JSON text, but its ",
                                                   item.payload.size(), " bytes are not JSON"));
  }
  return absl::OkStatus();
}

}  // namespace privatemail
