#include <grpcpp/grpcpp.h>
#include <unistd.h>

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

constexpr char kHealth[] = "/grpc.health.v1.Health/Check";
constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

TEST(Daemon, PortInUseReturnsFailedPrecondition) {
  const TemporaryFolder directory;
  const auto first = DaemonServer::Start(Options(directory / "a"));
  ASSERT_THAT(first, IsOk());
  DaemonOptions options = Options(directory / "b");
  options.listen = (*first)->address().ToString();
  EXPECT_THAT(DaemonServer::Start(options),
              FailsWith(kFailedPrecondition, absl::StrCat("cannot listen on ", options.listen,
                                                          ": Address already in use")));
}

TEST(Daemon, LockedDirectoryReturnsFailedPrecondition) {
  const TemporaryFolder directory;
  const auto first = DaemonServer::Start(Options(directory.path()));
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(DaemonServer::Start(Options(directory.path())),
              FailsWith(kFailedPrecondition, "is locked by another daemon (pid "));
}

// The lock does not depend on the store. Refused before the database server is called.
TEST(Daemon, DirectoryOfDaemonWithOtherStoreReturnsFailedPrecondition) {
  const TemporaryFolder directory;
  const auto first = DaemonServer::Start(Options(directory / "data"));
  ASSERT_THAT(first, IsOk());
  DaemonOptions options = Options(directory / "data");
  options.store = "postgres";
  options.postgres_file = directory.Write("conninfo", "host=/nowhere dbname=none\n");
  EXPECT_THAT(DaemonServer::Start(options),
              FailsWith(kFailedPrecondition,
                        absl::StrCat("data directory ", directory / "data",
                                     " is locked by another daemon (pid ", ::getpid(), ")")));
}

TEST(Daemon, ReflectionIsOffByDefault) {
  for (const bool reflection : {false, true}) {
    const TemporaryFolder directory;
    DaemonOptions options = Options(directory.path());
    options.insecure = true;
    options.reflection = reflection;
    const auto daemon = DaemonServer::Start(options);
    ASSERT_THAT(daemon, IsOk());
    const auto channel = Connect((*daemon)->address(), grpc::InsecureChannelCredentials());
    EXPECT_THAT(CallOnce(channel, kHealth, {""}).status, IsOk());
    const absl::Status reflected = CallOnce(channel, kReflection, {""}).status;
    EXPECT_EQ(absl::IsUnimplemented(reflected), !reflection) << reflected;
  }
}

}  // namespace
}  // namespace privatemail::testing
