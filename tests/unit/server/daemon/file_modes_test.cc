#include "server/daemon/file_modes.h"

#include <filesystem>

#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FileModesTest : public ::testing::Test {
 protected:
  FileModesTest() {
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
    return WarningsAboutModes(options_, config_, key_);
  }

  const TemporaryFolder folder_;
  DaemonOptions options_;
  std::string config_;
  std::string key_;
  std::string audit_;
};

TEST_F(FileModesTest, MayLetOthersReadWhatIsNoSecret) {
  EXPECT_THAT(With(0700, 0600, 0644), IsEmpty());
  EXPECT_THAT(With(0700, 0400, 0444), IsEmpty());
}

TEST_F(FileModesTest, WarnOfEachFileThatOthersCanWriteAndOfSecretsThatTheyCanRead) {
  for (const unsigned open : {0020u, 0002u}) {
    EXPECT_THAT(
        With(0700 | open, 0600 | open, 0600 | open),
        ElementsAre(
            HasSubstr("data directory " + options_.data_directory +
                      " is open to others: chmod 700"),
            HasSubstr("--postgres-file " + options_.postgres_file + " is open to others"),
            HasSubstr("private key " + key_ + " is open to others"),
            HasSubstr("--config " + config_ + " can be written by others, who may turn this"),
            HasSubstr("--client-ca " + options_.client_ca +
                      " can be written by others, who may let"),
            HasSubstr("audit log " + audit_ + " can be written by others, who may change")));
  }
  EXPECT_EQ(With(0750, 0640, 0644).size(), 3u);
}

TEST_F(FileModesTest, OfWhatIsNotThereOrADeviceAreNothingToWarnOf) {
  options_ = {};
  options_.data_directory = folder_ / "none";
  options_.audit_log = "/dev/null";
  EXPECT_THAT(WarningsAboutModes(options_, "", ""), IsEmpty());
}

}  // namespace
}  // namespace privatemail::testing
