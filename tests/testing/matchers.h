// Matchers for absl::Status and absl::StatusOr.
#ifndef PRIVATEMAIL_TESTS_TESTING_MATCHERS_H_
#define PRIVATEMAIL_TESTS_TESTING_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace privatemail {

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
