// privatemaild: command line and --check-config.
#include <sys/stat.h>

#include "tests/unit/server/daemon/daemon_program.h"

namespace privatemail::testing {
namespace {

TEST(Privatemaild, HelpShowsNumberRanges) {
  const TemporaryFolder directory;
  Program program(directory.path(), {"--help"});
  EXPECT_EQ(program.ExitCode(), 0);
  EXPECT_THAT(program.out(),
              ::testing::AllOf(::testing::HasSubstr("; a number between 0 and 3600\n"),
                               ::testing::HasSubstr("; an integer between 1 and 10000\n")));
}

TEST(Privatemaild, CheckConfigDoesNotServe) {
  const TemporaryFolder directory;
  const std::string good = directory.Write("good.toml", "max_k = 7\n");
  Program checked(directory.path(), {"--config", good, "--check-config"});
  EXPECT_EQ(checked.ExitCode(), 0) << checked.err();
  EXPECT_THAT(checked.out(), ::testing::HasSubstr("\nmax_k = 7\n"));
  const std::string bad = directory.Write("bad.toml", "\nmax_kk = 7\n");
  Program refused(directory.path(), {"--config", bad, "--check-config"});
  EXPECT_EQ(refused.ExitCode(), 2);
  EXPECT_THAT(refused.err(), ::testing::HasSubstr(bad + " line 2: 'max_kk' is no setting"));
  EXPECT_FALSE(std::filesystem::exists(directory / "data"));
}

TEST(Privatemaild, CheckConfigReportsAllFileProblems) {
  const TemporaryFolder directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  const std::string config =
      directory.Write("d.toml", absl::StrCat("tls_cert = '", directory / "pipe", "'\ntls_key = '",
                                             directory / "none", "'\nclient_ca = '",
                                             directory / "none", "'\nhttp = 'nowhere'\n"));
  std::filesystem::permissions(config, std::filesystem::perms(0666));
  Program checked(directory.path(), {"--config", config, "--check-config"});
  EXPECT_EQ(checked.ExitCode(), 1);
  EXPECT_EQ(checked.out(), "");
  const std::string prefix = "[-0-9T:.Z]+ ";
  EXPECT_THAT(checked.err(),
              ::testing::MatchesRegex(absl::StrCat(
                  prefix, "WARNING --config [^\n]*can be written by others[^\n]*\n",   //
                  prefix, "ERROR cannot read --tls-cert [^\n]*regular file[^\n]*\n",   //
                  prefix, "ERROR cannot read --client-ca [^\n]*No such file[^\n]*\n",  //
                  prefix, "ERROR --http must be HOST:PORT[^\n]*\n")));
}

TEST(Privatemaild, CheckConfigReportsRangesPairsAndFilesTogether) {
  const TemporaryFolder directory;
  std::filesystem::permissions(directory.Write("data", ""), std::filesystem::perms(0600));
  const std::string config = directory.Write(
      "d.toml", absl::StrCat("max_k = 0\ntls_key = 'k'\nclient_ca = '", directory / "none",
                             "'\nlisten = 'nowhere'\naudit_log = '", directory.path(), "'\n"));
  Program checked(directory.path(), {"--config", config, "--check-config"});
  EXPECT_EQ(checked.ExitCode(), 2);
  EXPECT_EQ(checked.out(), "");
  const std::string prefix = "[-0-9T:.Z]+ ERROR ";
  const std::string expected = absl::StrCat(
      prefix, "[^\n]*d.toml line 1: max_k must be an integer between 1[^\n]*but is 0\n", prefix,
      "--listen must be HOST:PORT[^\n]*but is 'nowhere'\n", prefix,
      "[^\n]*must be given together, but only --tls-key is\n", prefix,
      "--data-dir [^\n]*/data must be a directory, but is none\n", prefix,
      "cannot read --client-ca [^\n]*No such file[^\n]*\n", prefix,
      "--audit-log [^\n]* must be a file, but is a directory\n");
  EXPECT_THAT(checked.err(), ::testing::MatchesRegex(expected));
}

// A start that blocks on a pipe would look like a slow one.
TEST(Privatemaild, IrregularConfigFileFails) {
  const TemporaryFolder directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {directory / "pipe", directory.path(), std::string("/dev/zero")}) {
    Program program(directory.path(), {"--config", path});
    EXPECT_EQ(program.ExitCode(), 1);
    EXPECT_THAT(program.err(), ::testing::HasSubstr("cannot read --config " + path));
  }
}

TEST(Privatemaild, InvalidFlagsLogOneError) {
  const TemporaryFolder directory;
  Program program(directory.path(), {"--listen", "0.0.0.0:0", "--insecure"});
  EXPECT_EQ(program.ExitCode(), 2);
  EXPECT_EQ(program.out(), "");
  EXPECT_THAT(program.err(),
              ::testing::MatchesRegex("[-0-9T:.Z]+ ERROR --insecure serves plaintext[^\n]*\n"));
}

}  // namespace
}  // namespace privatemail::testing
