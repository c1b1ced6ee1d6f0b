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

// The texts are tested where the server writes them; here their beginnings.
TEST(ExplainConnectionError, KeepsWhatTheServerItselfSays) {
  for (const char* text : {"the store is unavailable: database moths",
                           "what answers for the cells of collection moths",
                           "embedding_version 2 of collection moths is not here yet",
                           "database file data/privatemail.sqlite was moved",
                           "all 8 connections to the store were busy"}) {
    EXPECT_EQ(Explain(absl::UnavailableError(text)), absl::UnavailableError(text));
  }
}

}  // namespace
}  // namespace privatemail::client
