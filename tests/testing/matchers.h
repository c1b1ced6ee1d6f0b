// Matchers for absl::Status and absl::StatusOr.
#ifndef PRIVATEMAIL_TESTS_TESTING_MATCHERS_H_
#define PRIVATEMAIL_TESTS_TESTING_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace privatemail {

// Short names of status codes.
inline constexpr auto kAborted = absl::StatusCode::kAborted;
inline constexpr auto kAlreadyExists = absl::StatusCode::kAlreadyExists;
inline constexpr auto kCancelled = absl::StatusCode::kCancelled;
inline constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
inline constexpr auto kDeadlineExceeded = absl::StatusCode::kDeadlineExceeded;
inline constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;
inline constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
inline constexpr auto kInternal = absl::StatusCode::kInternal;
inline constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
inline constexpr auto kNotFound = absl::StatusCode::kNotFound;
inline constexpr auto kOk = absl::StatusCode::kOk;
inline constexpr auto kPermissionDenied = absl::StatusCode::kPermissionDenied;
inline constexpr auto kUnauthenticated = absl::StatusCode::kUnauthenticated;
inline constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

// EXPECT_THAT(call, FailsWith(absl::StatusCode::kInvalidArgument, "part of the message"));
MATCHER_P2(FailsWith, code, part, "fails with the given code and part of a message") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status.ToString();
  return status.code() == code && std::string(status.message()).find(part) != std::string::npos;
}

MATCHER_P(FailsWith, code, "fails with the given code") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code;
}

// For matchers that want a std::string.
inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// NOLINTBEGIN(bugprone-macro-parentheses): names and a declaration cannot stand in parentheses.
// ASSERT_OK_AND_ASSIGN(auto value, call returning StatusOr);
#define ASSERT_OK_AND_ASSIGN(left, expression) \
  ASSERT_OK_AND_ASSIGN_INNER(PM_TEST_CONCAT(ok_or_, __LINE__), left, expression)
#define PM_TEST_CONCAT(a, b) PM_TEST_CONCAT_INNER(a, b)
#define PM_TEST_CONCAT_INNER(a, b) a##b
#define ASSERT_OK_AND_ASSIGN_INNER(status_or, left, expression) \
  auto status_or = (expression);                                \
  ASSERT_TRUE(status_or.ok()) << status_or.status();            \
  left = *std::move(status_or)
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_MATCHERS_H_
