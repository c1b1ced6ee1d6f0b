// common/base/field_error.h without problems as data: errors of the C interface are texts.
#include "common/base/field_error.h"

#include "absl/strings/str_cat.h"

namespace privatemail {

absl::Status FieldError(absl::StatusCode code, absl::string_view field, absl::string_view expected,
                        absl::string_view actual) {
  if (actual.empty()) return {code, absl::StrCat(field, " ", expected)};
  return {code, absl::StrCat(field, " must be ", expected, ", but is ", actual)};
}

absl::Status FieldError(absl::string_view field, absl::string_view expected,
                        absl::string_view actual) {
  return FieldError(absl::StatusCode::kInvalidArgument, field, expected, actual);
}

absl::Status InvalidField(absl::string_view field, absl::string_view problem) {
  return FieldError(absl::StatusCode::kInvalidArgument, field, problem, "");
}

absl::Status WithContext(absl::string_view context, const absl::Status& status) {
  return {status.code(), absl::StrCat(context, status.message())};
}

}  // namespace privatemail
