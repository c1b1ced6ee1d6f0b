#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/services/all_rpcs.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

DaemonOptions Options(const std::string& directory) {
  DaemonOptions options;
  options.data_directory = directory;
  options.listen = "127.0.0.1:0";
  return options;
}

// The lock does not depend on the store. Refused before the database server is called.
TEST(Daemon, DirectoryOfDaemonWithOtherStoreReturnsFailedPrecondition) {
  const TemporaryFolder directory;
  ASSERT_OK_AND_ASSIGN(const auto first, DaemonServer::Start(Options(directory / "data")));
  DaemonOptions options = Options(directory / "data");
  options.postgres_file = directory.Write("conninfo", "host=/nowhere dbname=none\n");
  EXPECT_THAT(DaemonServer::Start(options),
              FailsWith(kFailedPrecondition, absl::StrCat("data directory ", directory / "data",
                                                          " is locked by another daemon")));
}

TEST(Daemon, UnknownMethodIsUnimplemented) {
  const TemporaryFolder directory;
  DaemonOptions options = Options(directory.path());
  options.insecure = true;
  ASSERT_OK_AND_ASSIGN(const auto daemon, DaemonServer::Start(options));
  const auto channel = Connect(daemon->address(), grpc::InsecureChannelCredentials());
  EXPECT_THAT(CallOnce(channel, "/grpc.health.v1.Health/Check", {""}).status, IsOk());
  for (const char* path : {"/grpc.health.v1.Health/Watch", "/privatemail.v1.KeysService/Check",
                           "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    EXPECT_THAT(CallOnce(channel, path, {""}).status,
                FailsWith(absl::StatusCode::kUnimplemented, "does not serve"));
  }
  EXPECT_THAT(CallOnce(channel, "/privatemail.v1.KeysService/ListKeys", {}).status,
              FailsWith(absl::StatusCode::kInvalidArgument, "must have a message"));
}

}  // namespace
}  // namespace privatemail::testing
