#include "common/base/place_error.h"

#include "common/base/status_macros.h"
#include "tests/testing/matchers.h"

namespace privatemail::testing {
namespace {

absl::Status Passed(const absl::Status& status) {
  PM_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

TEST(PlaceError, KeepsItsMessageUntilItIsToldWithoutThePlace) {
  const absl::Status error =
      Passed(PlaceError(absl::UnavailableError("database d at 10.0.0.1:5432 is away")));
  EXPECT_THAT(error, FailsWith(absl::StatusCode::kUnavailable, "10.0.0.1"));
  EXPECT_TRUE(IsPlaceError(error));
  const absl::Status told = WithoutPlace(error);
  EXPECT_EQ(told.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(told.message(), "the store is unavailable: the log of the server says why");
}

TEST(PlaceError, LeavesOtherErrorsAsTheyAre) {
  const absl::Status error = absl::NotFoundError("collection birds does not exist");
  EXPECT_FALSE(IsPlaceError(error));
  EXPECT_EQ(WithoutPlace(error), error);
  EXPECT_THAT(PlaceError(absl::OkStatus()), IsOk());
  EXPECT_FALSE(IsPlaceError(PlaceError(absl::OkStatus())));
}

}  // namespace
}  // namespace privatemail::testing
