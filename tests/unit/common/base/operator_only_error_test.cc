#include "common/base/operator_only_error.h"

#include "common/base/status_macros.h"
#include "tests/testing/matchers.h"

namespace privatemail::testing {
namespace {

absl::Status Passed(const absl::Status& status) {
  PM_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

TEST(OperatorOnlyError, HidingDetailsKeepsOnlyTheCode) {
  const absl::Status error =
      Passed(OperatorOnlyError(absl::UnavailableError("database d at 10.0.0.1:5432 is away")));
  EXPECT_THAT(error, FailsWith(kUnavailable, "10.0.0.1"));
  EXPECT_TRUE(IsOperatorOnlyError(error));
  const absl::Status hidden = HideOperatorDetails(error);
  EXPECT_EQ(hidden.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(hidden.message(), "the store is unavailable: the log of the server says why");
}

TEST(OperatorOnlyError, UnmarkedStatusesAreUnchanged) {
  const absl::Status error = absl::NotFoundError("collection fruit does not exist");
  EXPECT_FALSE(IsOperatorOnlyError(error));
  EXPECT_EQ(HideOperatorDetails(error), error);
  EXPECT_THAT(OperatorOnlyError(absl::OkStatus()), IsOk());
  EXPECT_FALSE(IsOperatorOnlyError(OperatorOnlyError(absl::OkStatus())));
}

}  // namespace
}  // namespace privatemail::testing
