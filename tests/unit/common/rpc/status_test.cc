#include "common/rpc/status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

TEST(GrpcStatus, RoundTripPreservesCodeAndMessage) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), code == 0 ? "" : "why");
    const grpc::Status sent = ToGrpc(status);
    EXPECT_EQ(static_cast<int>(sent.error_code()), code);
    EXPECT_EQ(FromGrpc(sent), status);
    EXPECT_EQ(IsOwnStatus(sent), code != 0);
  }
  EXPECT_TRUE(IsOwnStatus(ToGrpc(FieldError("k", "positive", "0"))));
  EXPECT_FALSE(IsOwnStatus(grpc::Status(grpc::StatusCode::UNAVAILABLE, "connection refused")));
  EXPECT_THAT(FromGrpc(grpc::Status(static_cast<grpc::StatusCode>(17), "why")),
              FailsWith(absl::StatusCode::kUnknown, "status code 17: why"));
}

TEST(GrpcStatus, LongMessageIsCut) {
  EXPECT_EQ(ToGrpc(absl::InternalError(std::string(1000, 'x'))).error_message(),
            std::string(1000, 'x'));
  EXPECT_EQ(ToGrpc(absl::InternalError(std::string(60'000'000, 'x'))).error_message(),
            absl::StrCat(std::string(997, 'x'), "..."));
}

}  // namespace
}  // namespace privatemail
