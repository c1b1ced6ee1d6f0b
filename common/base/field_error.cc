#include "common/base/field_error.h"

#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace privatemail {
namespace {

constexpr char kPayload[] = "privatemail/field";
constexpr char kSeparator = '\0';

std::string ToBytes(const FieldProblem& problem) {
  return absl::StrJoin(
      {problem.field, problem.expected, problem.actual, problem.context, problem.note},
      absl::string_view(&kSeparator, 1));
}

std::optional<FieldProblem> FromBytes(absl::string_view bytes) {
  const std::vector<std::string> parts = absl::StrSplit(bytes, kSeparator);
  if (parts.size() != 5 || parts[0].empty()) return std::nullopt;
  return FieldProblem{parts[0], parts[1], parts[2], parts[3], parts[4]};
}

absl::Status StatusOf(absl::StatusCode code, const FieldProblem& problem, absl::string_view name) {
  absl::Status status(code, problem.Text(name));
  status.SetPayload(kPayload, absl::Cord(ToBytes(problem)));
  return status;
}

}  // namespace

std::string FieldProblem::Text(absl::string_view name) const {
  const std::string sentence =
      absl::StrCat(name, actual.empty() ? " " : " must be ", expected,
                   actual.empty() || actual == "absent" ? "" : absl::StrCat(", but is ", actual));
  return absl::StrCat(context, sentence, note);
}

absl::Status FieldError(absl::StatusCode code, absl::string_view field, absl::string_view expected,
                        absl::string_view actual) {
  return StatusOf(code, {std::string(field), std::string(expected), std::string(actual)}, field);
}

absl::Status FieldError(absl::string_view field, absl::string_view expected,
                        absl::string_view actual) {
  return FieldError(absl::StatusCode::kInvalidArgument, field, expected, actual);
}

absl::Status InvalidField(absl::string_view field, absl::string_view problem) {
  return FieldError(absl::StatusCode::kInvalidArgument, field, problem, "");
}

std::optional<FieldProblem> FieldProblemOf(const absl::Status& status) {
  return FromBytes(FieldPayloadOf(status));
}

std::string FieldPayloadOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  return payload.has_value() ? std::string(*payload) : "";
}

void SetFieldPayload(absl::string_view bytes, absl::Status* status) {
  const std::optional<FieldProblem> problem = FromBytes(bytes);
  if (!problem.has_value() || problem->Text(problem->field) != status->message()) return;
  if (problem->field == "budget") return;  // only the ledger of this side knows it
  status->SetPayload(kPayload, absl::Cord(bytes));
}

absl::Status WithContext(absl::string_view context, const absl::Status& status) {
  std::optional<FieldProblem> problem = FieldProblemOf(status);
  if (!problem.has_value()) {
    return absl::Status(status.code(), absl::StrCat(context, status.message()));
  }
  problem->context = absl::StrCat(context, problem->context);
  return StatusOf(status.code(), *problem, problem->field);
}

absl::Status WithNote(const absl::Status& status, absl::string_view note) {
  std::optional<FieldProblem> problem = FieldProblemOf(status);
  if (!problem.has_value()) {
    return absl::Status(status.code(), absl::StrCat(status.message(), note));
  }
  absl::StrAppend(&problem->note, note);
  return StatusOf(status.code(), *problem, problem->field);
}

absl::Status WithFieldName(const absl::Status& status, absl::string_view name) {
  const std::optional<FieldProblem> problem = FieldProblemOf(status);
  return problem.has_value() ? StatusOf(status.code(), *problem, name) : status;
}

}  // namespace privatemail
