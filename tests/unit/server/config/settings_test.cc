#include "server/config/settings.h"

#include <algorithm>

#include "common/base/process_memory.h"
#include "server/daemon/command_line.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

DaemonOptions InstalledDefaults() {
  DaemonOptions options;
  options.data_directory = "/var/lib/privatemail";
  return options;
}

// All problems of the text as one status.
absl::Status Parse(const std::string& text, DaemonOptions* options) {
  const absl::StatusOr<Problems> wrong = ParseConfig(text, "x.toml", options);
  return wrong.ok() ? wrong->status() : wrong.status();
}

std::string Parsed(const std::string& text) {
  DaemonOptions options;
  const absl::Status status = Parse(text, &options);
  return status.ok() ? PrintConfig(options) : std::string(status.message());
}

TEST(Config, SampleFileEqualsPrintedDefaults) {
  EXPECT_EQ(Contents(PRIVATEMAIL_SAMPLE_CONFIG), PrintConfig(InstalledDefaults()));
}

TEST(Config, PrintedConfigRoundTrips) {
  DaemonOptions options;
  options.data_directory = "with \"quotes\", \\ and\na new line \x01 \xc3\xa9";
  options.insecure = true;
  options.limits.max_k = 17;
  options.drain_seconds = .1;
  const std::string printed = PrintConfig(options);
  EXPECT_EQ(Parsed(printed), printed);
}

TEST(Config, ErrorNamesLineKeyExpectedAndActual) {
  for (const auto& [text, message] :
       {std::pair{"\nmax_k = 0",
                  "x.toml line 2: max_k must be an integer between 1 and 10000, but is 0"},
        {"max_k = 10001", "but is 10001"},
        {"max_k = '5'", "but is '5'"},
        {"max_k = 1.5", "but is 1.5"},
        {"max_k = [1]", "but is [ 1 ]"},
        {"insecure = 1", "insecure must be true or false, but is 1"},
        {"log_level = 'loud'", "must be one of debug, info, warning, error, but is 'loud'"},
        {"drain_seconds = nan", "must be a number between 0 and 3600, but is nan"},
        {"listen = true", "listen must be a text, but is true"},
        {"[limits]\nmax_k = 1", "x.toml line 1: 'limits' is no setting"},
        {"max_k = 1\nmax_k = 2", "x.toml line 2: this is no TOML"},
        {"listen = 'a:1'\nmax_k = x", "x.toml line 2: this is no TOML"}}) {
    DaemonOptions options;
    EXPECT_THAT(Parse(text, &options), FailsWith(kInvalid, message)) << text;
    EXPECT_EQ(options.limits.max_k, Limits().max_k) << text;
    EXPECT_EQ(options.listen, DaemonOptions().listen) << text;
  }
  DaemonOptions options;  // correct lines apply
  EXPECT_THAT(Parse("drain_seconds = 2\nmax_k = 0\nlisten = 'a:1'\nport = 1", &options),
              FailsWith(kInvalid,
                        "x.toml line 2: max_k must be an integer between 1 and 10000, but is 0; "
                        "x.toml line 4: 'port' is no setting"));
  EXPECT_EQ(options.listen, "a:1");
  EXPECT_EQ(options.drain_seconds, 2);
}

// toml++ recurses once for each part of a key, also when it frees tables.
TEST(Config, LongLinesAreRefused) {
  std::string dotted = "a";
  for (int i = 0; i < 25'000; ++i) dotted += ".a";
  EXPECT_EQ(Parsed("max_k = 7\n" + dotted + " = 1"), "x.toml line 2: must have at most 4096 bytes");
  dotted.resize(4001);
  const std::string nested = "[" + dotted + "]\n" + dotted + " = 1";
  EXPECT_EQ(Parsed(nested).substr(0, 32), "x.toml line 1: 'a' is no setting");
}

absl::StatusOr<DaemonOptions> Typed(std::vector<std::string> words) {
  CLI::App app;
  CommandLine line;
  line.AddFlags(&app);
  std::reverse(words.begin(), words.end());  // CLI11 expects reverse order
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return absl::AbortedError(error.what());
  }
  return line.EffectiveOptions();
}

TEST(CommandLine, FlagsOverrideTheFile) {
  const TemporaryFolder folder;
  const std::string file =
      folder.Write("d.toml", "max_k = 5\nmax_items = 7\nlog_level = 'error'\n");
  ASSERT_OK_AND_ASSIGN(const auto options,
                       Typed({"--max-k", "6", "--config", file, "--insecure", "--data-dir", "d"}));
  EXPECT_EQ(options.limits.max_k, 6);
  EXPECT_EQ(options.limits.max_items, 7);
  EXPECT_EQ(options.log_level, "error");
  EXPECT_TRUE(options.insecure);
}

TEST(CommandLine, LimitsOfMemoryArePartsOfOneSetting) {
  for (const int64_t given : {int64_t{0}, int64_t{64'000'000'000}}) {
    ASSERT_OK_AND_ASSIGN(const auto options,
                         Typed({"--memory", std::to_string(given), "--data-dir", "d"}));
    const int64_t memory = given == 0 ? AvailableMemory() : given;
    const Limits& limits = options.limits;
    EXPECT_EQ(limits.max_resident_memory, memory / 2);
    EXPECT_EQ(limits.max_build_memory, memory / 4);
    EXPECT_EQ(limits.max_search_memory, memory / 8);
    EXPECT_EQ(limits.max_parsed_memory, memory / 16);
    EXPECT_EQ(limits.max_request_memory, memory / 16);
    EXPECT_EQ(limits.max_transport_memory,
              std::clamp(memory / 16, int64_t{256} << 20, int64_t{1} << 30));
  }
}

TEST(CommandLine, NamesInvalidFlagOrFile) {
  EXPECT_THAT(Typed({"--log-format", "xml"}),
              FailsWith(kInvalid, "--log-format must be one of text, json, but is 'xml'"));
  EXPECT_THAT(Typed({"--drain-seconds", "nan"}), FailsWith(kInvalid, "but is 'nan'"));
  EXPECT_THAT(Typed({}), FailsWith(kInvalid, "a data directory must be given: --data-dir, or "));
  EXPECT_THAT(
      Typed({"--max-k", "0", "--max-concurrent", "0", "--config", "/none.toml"}),
      FailsWith(kInvalid, "cannot read --config /none.toml: No such file or directory; --max-"));
}

TEST(Settings, HaveFlagsAndValidDefaults) {
  CLI::App app;
  CommandLine line;
  line.AddFlags(&app);
  for (const Setting& setting : Settings()) {
    EXPECT_NE(app.get_option_no_throw(setting.Flag()), nullptr) << setting.key;
    DaemonOptions options;
    EXPECT_THAT(Assign(setting, setting.key, setting.ValueIn({}), &options), IsOk());
  }
}

}  // namespace
}  // namespace privatemail::testing
