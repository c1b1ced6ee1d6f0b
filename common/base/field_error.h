// Errors about a field as data, so that front ends can render the field's name as they spell it: as
// a flag, an argument or the field of a form.
#ifndef PRIVATEMAIL_COMMON_BASE_FIELD_ERROR_H_
#define PRIVATEMAIL_COMMON_BASE_FIELD_ERROR_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace privatemail {

struct FieldProblem {
  std::string field;     // "private_iterations"
  std::string expected;  // "between 1 and 100"
  // "0"; "absent": the sentence does not repeat it; empty: `expected` is the whole sentence, "must
  // be finite".
  std::string actual;
  std::string context = {};  // precedes the sentence: "2 of 3 queries failed: "
  std::string note = {};     // follows it: "; nothing was spent"

  // "private_iterations must be between 1 and 100, but is 0", with the field spelled as `name`,
  // between context and note.
  std::string Text(absl::string_view name) const;
};

// A status with the problem as its payload and its text as the message. Neither value may name a
// target or its label.
absl::Status FieldError(absl::StatusCode code, absl::string_view field, absl::string_view expected,
                        absl::string_view actual);
// INVALID_ARGUMENT.
absl::Status FieldError(absl::string_view field, absl::string_view expected,
                        absl::string_view actual);

// INVALID_ARGUMENT: "radius must be given for lap-output", of which the problem is "must be given
// for lap-output".
absl::Status InvalidField(absl::string_view field, absl::string_view problem);

// The problem of a status that these made; nullopt for others.
std::optional<FieldProblem> FieldProblemOf(const absl::Status& status);

// The payload as bytes, to send it; empty: none.
std::string FieldPayloadOf(const absl::Status& status);
// Sets the payload from bytes of a peer, if they are one and say what the message says.
void SetFieldPayload(absl::string_view bytes, absl::Status* status);

// The same status, and its payload, with text before or after its message.
absl::Status WithContext(absl::string_view context, const absl::Status& status);
absl::Status WithNote(const absl::Status& status, absl::string_view note);

// The same status, and its payload, with the field spelled as `name` in its message. Others are
// returned as they are.
absl::Status WithFieldName(const absl::Status& status, absl::string_view name);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_FIELD_ERROR_H_
