// privatemaild: command line and --check-config.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tests/e2e/programs.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

e2e::Outcome RunToEnd(const TemporaryFolder& folder, const e2e::Command& flags) {
  return e2e::Program(e2e::Join({PRIVATEMAILD, "--data-dir", folder / "data"}, flags)).Wait();
}

TEST(Privatemaild, CheckConfigDoesNotServe) {
  const TemporaryFolder directory;
  const std::string good = directory.Write("good.toml", "max_k = 7\n");
  const e2e::Outcome checked = RunToEnd(directory, {"--config", good, "--check-config"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("\nmax_k = 7\n"));
  const std::string bad = directory.Write("bad.toml", "\nmax_kk = 7\n");
  const e2e::Outcome refused = RunToEnd(directory, {"--config", bad, "--check-config"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr(bad + " line 2: 'max_kk' is no setting"));
  EXPECT_FALSE(std::filesystem::exists(directory / "data"));
}

// settings_test.cc and file_check_test.cc test each problem of the file, of ranges, of pairs and of
// named files.
TEST(Privatemaild, CheckConfigReportsAllProblemsAndWarnings) {
  const TemporaryFolder directory;
  const std::string config = directory.Write(
      "d.toml", "max_k = 0\ntls_key = 'k'\nclient_ca = '" + (directory / "none") + "'\n");
  std::filesystem::permissions(config, std::filesystem::perms(0666));
  const e2e::Outcome checked = RunToEnd(directory, {"--config", config, "--check-config"});
  EXPECT_EQ(checked.exit_code, 2);
  EXPECT_EQ(checked.out, "");
  EXPECT_THAT(checked.err, AllOf(HasSubstr(" WARNING --config " + config + " can be written by"),
                                 HasSubstr(" ERROR " + config + " line 1: max_k must be"),
                                 HasSubstr(" ERROR --tls-cert and --tls-key must be given"),
                                 HasSubstr(" ERROR cannot read --client-ca ")));
}

TEST(Privatemaild, InvalidFlagsLogOneError) {
  const e2e::Outcome refused = RunToEnd(TemporaryFolder(), {"--listen", "0.0.0.0:0", "--insecure"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, MatchesRegex("[-0-9T:.Z]+ ERROR --insecure serves plaintext[^\n]*\n"));
}

}  // namespace
}  // namespace privatemail::testing
