#include "common/base/field_error.h"

#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace privatemail {
namespace {

constexpr char kPayload[] = "privatemail/field";
constexpr char kSeparator = '\0';

}  // namespace

std::string FieldProblem::Text() const {
  if (actual.empty()) return absl::StrCat(field, " ", expected);
  return absl::StrCat(field, " must be ", expected, ", but is ", actual);
}

absl::Status FieldError(absl::StatusCode code, absl::string_view field, absl::string_view expected,
                        absl::string_view actual) {
  const FieldProblem problem{std::string(field), std::string(expected), std::string(actual)};
  absl::Status status(code, problem.Text());
  const std::vector<std::string> parts = {problem.field, problem.expected, problem.actual};
  status.SetPayload(kPayload, absl::Cord(absl::StrJoin(parts, std::string(1, kSeparator))));
  return status;
}

absl::Status FieldError(absl::string_view field, absl::string_view expected,
                        absl::string_view actual) {
  return FieldError(absl::StatusCode::kInvalidArgument, field, expected, actual);
}

absl::Status InvalidField(absl::string_view field, absl::string_view problem) {
  return FieldError(absl::StatusCode::kInvalidArgument, field, problem, "");
}

std::optional<FieldProblem> FieldProblemOf(const absl::Status& status) {
  const std::string payload = FieldPayloadOf(status);
  if (payload.empty()) return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(payload, kSeparator);
  if (parts.size() != 3) return std::nullopt;
  return FieldProblem{parts[0], parts[1], parts[2]};
}

std::string FieldPayloadOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  return payload.has_value() ? std::string(*payload) : "";
}

void SetFieldPayload(absl::string_view bytes, absl::Status* status) {
  const std::vector<absl::string_view> parts = absl::StrSplit(bytes, kSeparator);
  if (parts.size() != 3 || parts[0].empty()) return;
  if (absl::StartsWith(status->message(), parts[0]))
    status->SetPayload(kPayload, absl::Cord(bytes));
}

absl::Status WithNote(const absl::Status& status, absl::string_view note) {
  absl::Status noted(status.code(), absl::StrCat(status.message(), note));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { noted.SetPayload(url, payload); });
  return noted;
}

}  // namespace privatemail
