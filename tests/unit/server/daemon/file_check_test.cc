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

class CheckFilesTest : public ::testing::Test {
 protected:
  CheckFilesTest() { options_.data_directory = folder_ / "data"; }

  std::vector<std::string> Problems() const {
    std::vector<std::string> messages;
    const server::Problems problems = CheckFiles(options_);
    for (const absl::Status& problem : problems.all()) messages.emplace_back(problem.message());
    return messages;
  }

  const TemporaryFolder folder_;
  DaemonOptions options_;
};

TEST_F(CheckFilesTest, FirstStartAndValidFilesHaveNoProblems) {
  EXPECT_THAT(Problems(), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "nothing was created";
  std::filesystem::create_directories(folder_ / "data");
  ASSERT_THAT(LoadOrCreateIdentity(folder_ / "data/tls"), IsOk());
  ASSERT_THAT(KeyRing::Open(KeyFile(folder_ / "data/keys"), folder_ / "data/admin.key"), IsOk());
  MakeAuthority(folder_.path(), "ca");
  options_.client_ca = folder_ / "ca.crt";
  options_.http = "[::1]:9464";
  options_.audit_log = folder_ / "audit";
  options_.postgres_file = folder_.Write("conninfo", "host=db user=me password=hunter2\n");
  EXPECT_THAT(Problems(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "audit"));
}

TEST_F(CheckFilesTest, NamesEveryInvalidFileAndAddress) {
  folder_.Write("data/keys", "privatemail keys 1\n");
  MakeWeak(folder_.path(), "weak");
  options_.tls_certificate = folder_ / "weak.crt";
  options_.tls_key = folder_ / "weak.key";
  options_.client_ca = folder_ / "none.crt";
  options_.postgres_file = folder_.Write("conninfo", "password=hunter2 hots=db");
  options_.http = "localhost:9464";
  options_.audit_log = folder_ / "none/audit";
  EXPECT_THAT(
      Problems(),
      ElementsAre(::testing::AllOf(HasSubstr("--tls-cert " + options_.tls_certificate),
                                   HasSubstr("key too small")),
                  HasSubstr("cannot read --client-ca " + options_.client_ca),
                  HasSubstr(absl::StrCat("key file ", folder_ / "data/keys", " is damaged")),
                  ::testing::AllOf(HasSubstr("--postgres-file " + options_.postgres_file),
                                   ::testing::Not(HasSubstr("hunter2"))),
                  HasSubstr("--http must name an IP address, but is 'localhost:9464'"),
                  HasSubstr(absl::StrCat("the directory of --audit-log ", folder_ / "none",
                                         " must be writable, but is not: No such file"))));
}

TEST_F(CheckFilesTest, NamesObstacleOfDataDirectory) {
  folder_.Write("data", "");
  options_.data_directory = folder_ / "data/below/it";
  EXPECT_THAT(Problems(), ElementsAre(absl::StrCat("--data-dir ", folder_ / "data/below/it",
                                                   " cannot be created: ", folder_ / "data",
                                                   " must be a directory, but is none")));
  options_.data_directory = folder_ / "other/below/it/";
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(CheckFilesTest, PipesAreRefusedWithoutBlocking) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  options_.tls_certificate = options_.tls_key = options_.client_ca = folder_ / "pipe";
  options_.postgres_file = folder_ / "pipe";
  const auto regular = HasSubstr("must be a regular file");
  EXPECT_THAT(Problems(), ElementsAre(regular, regular, regular));
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

TEST_F(CheckFilePermissionsTest, WarnsOfWritableFilesAndReadableSecrets) {
  EXPECT_THAT(With(0700, 0600, 0644), IsEmpty());
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
  options_ = {};
  options_.data_directory = folder_ / "none";
  options_.audit_log = "/dev/null";
  EXPECT_THAT(CheckFilePermissions(options_, "", ""), IsEmpty());
}

}  // namespace
}  // namespace privatemail::testing
