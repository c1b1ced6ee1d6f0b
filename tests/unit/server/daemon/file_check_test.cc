#include "server/daemon/file_check.h"

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

TEST(CheckFiles, FirstStartHasNoProblemsAndCreatesNothing) {
  const TemporaryFolder folder;
  EXPECT_THAT(ProblemsOf(Over(folder)), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CheckFiles, ValidFilesHaveNoProblems) {
  const TemporaryFolder folder;
  DaemonOptions options = Over(folder);
  std::filesystem::create_directories(folder / "data");
  ASSERT_THAT(LoadOrCreateIdentity(folder / "data/tls"), IsOk());
  ASSERT_THAT(KeyRing::Open(KeyFile(folder / "data/keys"), folder / "data/admin.key"), IsOk());
  MakeAuthority(folder.path(), "ca");
  options.client_ca = folder / "ca.crt";
  options.http = "[::1]:9464";
  options.audit_log = folder / "audit";
  options.postgres_file = folder.Write("conninfo", "host=db user=me password=hunter2\n");
  EXPECT_THAT(ProblemsOf(options), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder / "audit"));
}

TEST(CheckFiles, NamesEveryInvalidFileAndAddress) {
  const TemporaryFolder folder;
  DaemonOptions options = Over(folder);
  folder.Write("data/keys", "privatemail keys 1\n");
  MakeWeak(folder.path(), "weak");
  options.tls_certificate = folder / "weak.crt";
  options.tls_key = folder / "weak.key";
  options.client_ca = folder / "none.crt";
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

TEST(CheckFiles, DataDirectoryMustBeDirectory) {
  const TemporaryFolder folder;
  DaemonOptions options = Over(folder);
  folder.Write("data", "");
  EXPECT_THAT(ProblemsOf(options), ElementsAre(HasSubstr("must be a directory, but is none")));
}

TEST(CheckFiles, NamesObstacleOfDataDirectory) {
  const TemporaryFolder folder;
  DaemonOptions options = Over(folder);
  folder.Write("data", "");
  options.data_directory = folder / "data/below/it";
  EXPECT_THAT(ProblemsOf(options), ElementsAre(absl::StrCat("--data-dir ", folder / "data/below/it",
                                                            " cannot be created: ", folder / "data",
                                                            " must be a directory, but is none")));
  options.data_directory = folder / "other/below/it/";
  EXPECT_THAT(ProblemsOf(options), IsEmpty());
}

TEST(CheckFiles, PipesAreRefusedWithoutBlocking) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  DaemonOptions options = Over(folder);
  options.tls_certificate = options.tls_key = options.client_ca = folder / "pipe";
  options.postgres_file = folder / "pipe";
  const auto regular = HasSubstr("must be a regular file");
  EXPECT_THAT(ProblemsOf(options), ElementsAre(regular, regular, regular));
}

class CheckFilePermissionsTest : public ::testing::Test {
 protected:
  CheckFilePermissionsTest() {
    options_.data_directory = folder_ / "data";
    std::filesystem::create_directories(folder_ / "data");
    options_.postgres_file = folder_.Write("conninfo", "");
    options_.client_ca = folder_.Write("ca.crt", "");
    config_ = folder_.Write("d.toml", "");
    key_ = folder_.Write("server.key", "");
    audit_ = folder_.Write("data/audit.jsonl", "");
  }

  std::vector<std::string> With(unsigned directory, unsigned secret, unsigned other) const {
    const auto set = [](const std::string& path, unsigned mode) {
      std::filesystem::permissions(path, static_cast<std::filesystem::perms>(mode));
    };
    set(options_.data_directory, directory);
    for (const std::string& path : {options_.postgres_file, key_}) set(path, secret);
    for (const std::string& path : {options_.client_ca, config_, audit_}) set(path, other);
    return CheckFilePermissions(options_, config_, key_);
  }

  const TemporaryFolder folder_;
  DaemonOptions options_;
  std::string config_;
  std::string key_;
  std::string audit_;
};

TEST_F(CheckFilePermissionsTest, ReadableNonSecretsAreFine) {
  EXPECT_THAT(With(0700, 0600, 0644), IsEmpty());
  EXPECT_THAT(With(0700, 0400, 0444), IsEmpty());
}

TEST_F(CheckFilePermissionsTest, WarnsOfWritableFilesAndReadableSecrets) {
  for (const unsigned open : {0020u, 0002u}) {
    EXPECT_THAT(
        With(0700 | open, 0600 | open, 0600 | open),
        ElementsAre(
            HasSubstr("data directory " + options_.data_directory +
                      " is open to others: chmod 700"),
            HasSubstr("--postgres-file " + options_.postgres_file + " is open to others"),
            HasSubstr("private key " + key_ + " is open to others"),
            HasSubstr("--config " + config_ + " can be written by others, who may disable"),
            HasSubstr("--client-ca " + options_.client_ca +
                      " can be written by others, who may admit"),
            HasSubstr("audit log " + audit_ + " can be written by others, who may change")));
  }
  EXPECT_EQ(With(0750, 0640, 0644).size(), 3u);
}

TEST_F(CheckFilePermissionsTest, IgnoresMissingFilesAndDevices) {
  options_ = {};
  options_.data_directory = folder_ / "none";
  options_.audit_log = "/dev/null";
  EXPECT_THAT(CheckFilePermissions(options_, "", ""), IsEmpty());
}

}  // namespace
}  // namespace privatemail::testing
