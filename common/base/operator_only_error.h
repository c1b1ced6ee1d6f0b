// Errors whose messages only the operator of a store may read.
#ifndef PRIVATEMAIL_COMMON_BASE_OPERATOR_ONLY_ERROR_H_
#define PRIVATEMAIL_COMMON_BASE_OPERATOR_ONLY_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace privatemail {

inline constexpr absl::string_view kOperatorOnlyPayload = "privatemail/place";

// Marks an error whose message may name files, databases and hosts. OK stays OK.
inline absl::Status OperatorOnlyError(absl::Status status) {
  status.SetPayload(kOperatorOnlyPayload, absl::Cord());
  return status;
}

inline bool IsOperatorOnlyError(const absl::Status& status) {
  return status.GetPayload(kOperatorOnlyPayload).has_value();
}

// A marked error as clients may see it: its code and a reference to the server's log. Other
// statuses stay unchanged.
inline absl::Status HideOperatorDetails(const absl::Status& status) {
  if (!IsOperatorOnlyError(status)) return status;
  const char* const summary = absl::IsUnavailable(status)         ? "the store is unavailable"
                              : absl::IsResourceExhausted(status) ? "the store has no space left"
                              : absl::IsDeadlineExceeded(status)  ? "the store took too long"
                              : absl::IsDataLoss(status)          ? "stored data is damaged"
                                                                  : "the store cannot do this";
  return absl::Status(status.code(), absl::StrCat(summary, ": the log of the server says why"));
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_OPERATOR_ONLY_ERROR_H_
