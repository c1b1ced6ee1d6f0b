#include "server/daemon/file_check.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "server/access/key_ring.h"
#include "server/daemon/server.h"
#include "tests/unit/server/daemon/certificates.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> ProblemsOf(const DaemonOptions& options) {
  std::vector<std::string> messages;
  const Problems problems = CheckFiles(options);
  for (const absl::Status& problem : problems.all()) messages.emplace_back(problem.message());
  return messages;
}

DaemonOptions Over(const TemporaryFolder& folder) {
  DaemonOptions options;
  options.data_directory = folder / "data";
  return options;
}

TEST(FileCheck, FindsNothingWrongBeforeTheFirstStartAndMakesNothing) {
  const TemporaryFolder folder;
  EXPECT_THAT(ProblemsOf(Over(folder)), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FileCheck, FindsNothingWrongWithWhatIsRight) {
  const TemporaryFolder folder;
  DaemonOptions options = Over(folder);
  std::filesystem::create_directories(folder / "data");
  ASSERT_THAT(SelfSignedIdentity(folder / "data/tls"), IsOk());
  ASSERT_THAT(KeyRing::Open(KeyFile(folder / "data/keys"), folder / "data/admin.key"), IsOk());
  MakeAuthority(folder.path(), "ca");
  options.client_ca = folder / "ca.crt";
  options.http = "[::1]:9464";
  options.audit_log = folder / "audit";
  options.store = "postgres";
  options.postgres_file = folder.Write("conninfo", "host=db user=me password=hunter2\n");
  EXPECT_THAT(ProblemsOf(options), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder / "audit"));
}

TEST(FileCheck, NamesEveryFileAndAddressThatIsWrong) {
  const TemporaryFolder folder;
  DaemonOptions options = Over(folder);
  folder.Write("data/keys", "privatemail keys 1\n");
  MakeWeak(folder.path(), "weak");
  options.tls_certificate = folder / "weak.crt";
  options.tls_key = folder / "weak.key";
  options.client_ca = folder / "none.crt";
  options.store = "postgres";
  options.postgres_file = folder.Write("conninfo", "password=hunter2 hots=db");
  options.http = "localhost:9464";
  options.audit_log = folder / "none/audit";
  EXPECT_THAT(ProblemsOf(options),
              ElementsAre(::testing::AllOf(HasSubstr("--tls-cert " + options.tls_certificate),
                                           HasSubstr("key too small")),
                          HasSubstr("cannot read --client-ca " + options.client_ca),
                          HasSubstr(absl::StrCat("key file ", folder / "data/keys", " is damaged")),
                          ::testing::AllOf(HasSubstr("--postgres-file " + options.postgres_file),
                                           ::testing::Not(HasSubstr("hunter2"))),
                          HasSubstr("--http must name an IP address, but is 'localhost:9464'"),
                          HasSubstr(absl::StrCat("the directory of --audit-log ", folder / "none",
                                                 " must be writable, but is not: No such file"))));
}

TEST(FileCheck, NamesADataDirectoryThatIsNone) {
  const TemporaryFolder folder;
  DaemonOptions options = Over(folder);
  folder.Write("data", "");
  EXPECT_THAT(ProblemsOf(options), ElementsAre(HasSubstr("must be a directory, but is none")));
}

TEST(FileCheck, NamesWhatKeepsTheDataDirectoryFromBeingMade) {
  const TemporaryFolder folder;
  DaemonOptions options = Over(folder);
  folder.Write("data", "");
  options.data_directory = folder / "data/below/it";
  EXPECT_THAT(ProblemsOf(options), ElementsAre(absl::StrCat("--data-dir ", folder / "data/below/it",
                                                            " cannot be made: ", folder / "data",
                                                            " must be a directory, but is none")));
  options.data_directory = folder / "other/below/it/";
  EXPECT_THAT(ProblemsOf(options), IsEmpty());
}

TEST(FileCheck, NamesConnectionsThatTakeMoreOpenFilesThanThereMayBe) {
  const TemporaryFolder folder;
  DaemonOptions options = Over(folder);
  rlimit files = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const auto most = static_cast<int64_t>(files.rlim_max);
  options.limits.max_connections = most - 256;
  EXPECT_THAT(ProblemsOf(options), IsEmpty());
  options.limits.max_connections = most - 255;
  EXPECT_THAT(ProblemsOf(options),
              ElementsAre(HasSubstr(
                  absl::StrCat("max_connections is ", most - 255, ", which takes ", most + 1,
                               " open files, but this process may have ", most))));
  EXPECT_THAT(DaemonServer::Start(options),
              FailsWith(absl::StatusCode::kFailedPrecondition, "open files"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "a start looks at it first";
}

// Whatever a path names, the check comes to an end.
TEST(FileCheck, WaitsForNoPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  DaemonOptions options = Over(folder);
  options.tls_certificate = options.tls_key = options.client_ca = folder / "pipe";
  options.store = "postgres";
  options.postgres_file = folder / "pipe";
  const auto regular = HasSubstr("must be a regular file");
  EXPECT_THAT(ProblemsOf(options), ElementsAre(regular, regular, regular));
}

}  // namespace
}  // namespace privatemail::testing
