#include "server/store/types.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/protocol/item_text.h"

namespace privatemail {
namespace {

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
  return CheckPayload(item.payload);
}

}  // namespace privatemail
