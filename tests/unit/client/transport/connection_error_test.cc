#include "client/transport/connection_error.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

absl::Status Explain(const absl::Status& status) {
  ConnectionOptions options;
  options.server = "host:1";
  return ExplainConnectionError(options, status);
}

TEST(ExplainConnectionError, NamesTheServer) {
  EXPECT_THAT(Explain(absl::UnavailableError("refused")),
              FailsWith(kUnavailable, "server host:1 cannot be reached: refused"));
  EXPECT_THAT(Explain(absl::CancelledError()),
              FailsWith(kUnavailable, "server host:1 ended the call"));
}

}  // namespace
}  // namespace privatemail::client
