#include "server/access/limits.h"

#include "absl/strings/str_cat.h"

namespace privatemail::server {

absl::Status CheckLimit(absl::string_view what, int64_t value, int64_t limit,
                        absl::string_view setting) {
  if (value <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " is ", value, ", more than the limit of ", limit, " (", setting, ")"));
}

}  // namespace privatemail::server
