// Macros for early return on a status other than OK.
#ifndef PRIVATEMAIL_COMMON_BASE_STATUS_MACROS_H_
#define PRIVATEMAIL_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// NOLINTBEGIN(bugprone-macro-parentheses): names and a declaration cannot stand in parentheses.
#define PM_STATUS_CONCAT_INNER(a, b) a##b
#define PM_STATUS_CONCAT(a, b) PM_STATUS_CONCAT_INNER(a, b)

// PM_RETURN_IF_ERROR(expression of type absl::Status);
#define PM_RETURN_IF_ERROR(expression) \
  PM_RETURN_IF_ERROR_INNER(PM_STATUS_CONCAT(pm_status_, __LINE__), expression)

// A unique name, so that the expression may be a variable of any name.
#define PM_RETURN_IF_ERROR_INNER(result, expression)        \
  do {                                                      \
    if (absl::Status result = (expression); !result.ok()) { \
      return result;                                        \
    }                                                       \
  } while (false)

// PM_ASSIGN_OR_RETURN(declaration or lvalue, expression of type absl::StatusOr<T>);
// Variadic, because an expression may have a comma outside of parentheses.
#define PM_ASSIGN_OR_RETURN(left, ...) \
  PM_ASSIGN_OR_RETURN_INNER(PM_STATUS_CONCAT(status_or_, __LINE__), left, __VA_ARGS__)

#define PM_ASSIGN_OR_RETURN_INNER(status_or, left, ...) \
  auto status_or = (__VA_ARGS__);                       \
  if (!status_or.ok()) return status_or.status();       \
  left = *std::move(status_or)
// NOLINTEND(bugprone-macro-parentheses)

#endif  // PRIVATEMAIL_COMMON_BASE_STATUS_MACROS_H_
