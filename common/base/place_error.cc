#include "common/base/place_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace privatemail {
namespace {

constexpr absl::string_view kMark = "privatemail/place";

absl::string_view What(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
      return "the store is unavailable";
    case absl::StatusCode::kResourceExhausted:
      return "the store has no room left";
    case absl::StatusCode::kDeadlineExceeded:
      return "the store took too long";
    case absl::StatusCode::kDataLoss:
      return "what is stored is damaged";
    default:
      return "the store cannot do this";
  }
}

}  // namespace

absl::Status PlaceError(absl::Status status) {
  status.SetPayload(kMark, absl::Cord());
  return status;
}

bool IsPlaceError(const absl::Status& status) { return status.GetPayload(kMark).has_value(); }

absl::Status WithoutPlace(const absl::Status& status) {
  if (!IsPlaceError(status)) return status;
  return absl::Status(status.code(),
                      absl::StrCat(What(status.code()), ": the log of the server says why"));
}

}  // namespace privatemail
