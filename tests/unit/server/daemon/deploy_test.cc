// Consistency of the files in deploy/ with the daemon.
#include <sstream>

#include "absl/strings/str_cat.h"
#include "server/config/options.h"
#include "server/config/settings.h"
#include "tests/unit/server/daemon/certificates.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

using ::testing::HasSubstr;

std::string Deployed(const std::string& file) {
  return Contents(absl::StrCat(PRIVATEMAIL_DEPLOY, "/", file));
}

// The value of `key` in the systemd unit, or empty.
std::string UnitSetting(const std::string& key) {
  std::istringstream unit(Deployed("systemd/privatemaild.service"));
  for (std::string line; std::getline(unit, line);) {
    if (line.rfind(key + "=", 0) == 0) return line.substr(key.size() + 1);
  }
  return "";
}

TEST(Configurations, HaveOnlySettingsThatExist) {
  for (const char* file :
       {"kubernetes/privatemaild.toml", "kubernetes/shards/front.toml",
        "kubernetes/shards/shard.toml", "compose/privatemaild.toml", "compose/shard.toml"}) {
    DaemonOptions options;
    const absl::StatusOr<Problems> wrong = ParseConfig(Deployed(file), file, &options);
    ASSERT_THAT(wrong, IsOk());
    EXPECT_THAT(wrong->status(), IsOk());
  }
}

TEST(SystemdUnit, StopsAfterTheDrainWithoutCoreFiles) {
  EXPECT_GT(std::stod(UnitSetting("TimeoutStopSec")), DaemonOptions().drain_seconds);
  EXPECT_EQ(UnitSetting("LimitCORE"), "0");
  EXPECT_EQ(UnitSetting("LimitNOFILE"), "65536");
}

TEST(Logrotate, RotatesAuditLogAndReloads) {
  DaemonOptions options;
  options.data_directory = "/var/lib/privatemail";
  const std::string rules = Deployed("logrotate/privatemaild");
  EXPECT_THAT(rules, HasSubstr(absl::StrCat("\n", AuditLogPath(options), " {\n")));
  EXPECT_THAT(rules, HasSubstr("systemctl try-reload-or-restart privatemaild.service\n"));
  EXPECT_EQ(UnitSetting("ExecReload"), "/bin/kill -HUP $MAINPID");
  // A different name than that of the daemon's own rotation.
  EXPECT_THAT(rules, HasSubstr("\n    dateext\n"));
}

}  // namespace
}  // namespace privatemail::testing
