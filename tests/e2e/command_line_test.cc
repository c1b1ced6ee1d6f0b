// What the command line says: help, warnings, mistakes, and who may read what it writes.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

mode_t ModeOf(const std::string& path) {
  struct stat properties = {};
  EXPECT_EQ(::stat(path.c_str(), &properties), 0) << path;
  return properties.st_mode & 07777;
}

// No server is needed to be misunderstood.
class CommandLine : public Service {
 protected:
  void ExpectUsageError(const std::vector<std::string>& command, const std::string& part) const {
    std::vector<std::string> with_json = command;
    with_json.push_back("--json");
    const Outcome outcome = Run(with_json);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    const json error = outcome.json()["error"];
    ASSERT_TRUE(error.is_object()) << outcome.out;
    EXPECT_EQ(error["code"], "INVALID_ARGUMENT");
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(part));
    EXPECT_THAT(outcome.err, HasSubstr("error: "));
  }
};

TEST_F(CommandLine, MistypedCommandIsSuggested) {
  ExpectUsageError({"quary"}, "there is no command \"quary\"; did you mean \"query\"?");
  ExpectUsageError({"collection", "creat"},
                   "there is no command \"creat\"; did you mean \"create\"?");
  ExpectUsageError({"info"}, "there is no command \"info\"; did you mean \"collection info\"?");
}

TEST_F(CommandLine, MistypedOptionIsSuggested) {
  ExpectUsageError({"query", "things", "--vector", "v.npy", "--epsilon", "1"},
                   "there is no option --vector; did you mean \"--vectors\"?");
  ExpectUsageError({"query", "things", "--sevrer=there"}, "did you mean \"--server\"?");
  ExpectUsageError({"calibrate", "--epsilom", "1"}, "did you mean \"--epsilon\"?");
  ExpectUsageError({"calibrate", "--frobnicate", "1"}, "there is no option --frobnicate");
}

TEST_F(CommandLine, BashCompletionKnowsCommandsAndOptions) {
  const Outcome script = Run({"completion", "bash"});
  EXPECT_EQ(script.exit_code, 0) << script.err;
  const std::string run =
      script.out +
      "COMP_WORDS=(privatemail --json collection d); COMP_CWORD=3; _privatemail; "
      "echo ${COMPREPLY[@]}; "
      "COMP_WORDS=(privatemail query things --vect); COMP_CWORD=3; _privatemail; "
      "echo ${COMPREPLY[@]}\n";
  EXPECT_EQ(Program({"/bin/bash", "-c", run}).Wait().out, "delete\n--vectors\n");
  EXPECT_THAT(Run({"--help"}).out, Not(HasSubstr("completion")));
}

TEST_F(CommandLine, SaysWhatIsWrongWithOptions) {
  ExpectUsageError({}, "subcommand is required");
  ExpectUsageError({"query", "things", "--delta", "1e-5"}, "--epsilon is required");
  ExpectUsageError({"collection", "create", "things", "--label-graph", "round"},
                   "--label-graph must be distance, kernel or one_hot_kernel, but is \"round\"");
}

// Another program says what it takes, and what is wrong.
TEST(Evaluation, IsHandedToItsOwnProgram) {
  const auto run = [](std::vector<std::string> words) {
    words.insert(words.begin(), PRIVATEMAIL);
    return Program(words).Wait();
  };
  const Outcome help = run({"evaluate", "--help"});
  EXPECT_EQ(help.exit_code, 0) << help.err;
  EXPECT_THAT(help.out, HasSubstr("--anchors-per-class"));
  const Outcome no_data = run({"evaluate", "--out", "/nowhere"});
  EXPECT_EQ(no_data.exit_code, 2);
  EXPECT_THAT(no_data.err, HasSubstr("--vectors with --labels"));
  const Outcome no_vectors =
      run({"tune", "--vectors", "/nowhere.npy", "--labels", "/nowhere.txt", "--out", "/nowhere"});
  EXPECT_EQ(no_vectors.exit_code, 2);
  EXPECT_THAT(no_vectors.err, HasSubstr("/nowhere.npy"));
}

// The number options of a command, by its own help.
std::vector<std::string> NumberOptions(const std::string& help) {
  std::vector<std::string> options;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(help, '\n'))) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() < 2 || !absl::StartsWith(words[0], "-")) continue;
    const bool number = absl::StartsWith(words[1], "FLOAT") || absl::StartsWith(words[1], "INT") ||
                        absl::StartsWith(words[1], "UINT") || absl::StartsWith(words[1], "NUMBER");
    if (number) options.push_back(words[0].substr(0, words[0].find(',')));
  }
  return options;
}

// An empty word was 0, or as if the option were not there.
TEST_F(CommandLine, NoNumberIsEmpty) {
  std::set<std::string> found;
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{},
                                             {"audit"},
                                             {"budget", "set"},
                                             {"calibrate"},
                                             {"collection", "create"},
                                             {"ingest"},
                                             {"items", "list"},
                                             {"key", "create"},
                                             {"plan"},
                                             {"query"},
                                             {"sample-images"},
                                             {"sensitivity"}}) {
    std::vector<std::string> help = command;
    help.push_back("--help");
    for (const std::string& option : NumberOptions(Run(help).out)) {
      std::vector<std::string> empty = command;
      empty.insert(empty.end(), {option, ""});
      if (command.empty()) empty = {option, "", "health"};
      ExpectUsageError(empty, option);
      found.insert(option);
    }
  }
  EXPECT_THAT(found,
              ::testing::IsSupersetOf({"--alpha", "--bandwidth", "--confidence", "--deadline",
                                       "--delta", "--dimension", "--epsilon", "--lower", "--mean",
                                       "--radius", "--rate", "--seed", "--sensitivity", "-k"}));
}

TEST_F(CommandLine, WhatIsNoNumberIsToldWhichIsExpected) {
  const std::vector<std::string> create = {"collection", "create", "n", "--dim"};
  for (const char* text : {"x", "1.5", "1e1", "2 "}) {
    std::vector<std::string> command = create;
    command.emplace_back(text);
    ExpectUsageError(command, std::string("--dim: must be a whole number, but is \"") + text + '"');
  }
  ExpectUsageError({"query", "n", "--epsilon", "x"}, "--epsilon: must be a number, but is \"x\"");
  for (const char* flag : {"--row", "--rows"}) {
    ExpectUsageError({"query", "n", "--epsilon", "1", flag, "x"},
                     "--row,--rows must be rows such as 7, 0-9, 3,7,9-12 or all, but has \"x\"");
  }
  EXPECT_THAT(Run({"query", "--help"}).out, HasSubstr("--row,--rows ROWS"));
}

TEST_F(CommandLine, AFlagWithoutAValueIsShownAsItIsGiven) {
  EXPECT_THAT(Run({"collection", "create", "--help"}).out,
              AllOf(HasSubstr("--no-normalise "), Not(HasSubstr("{false}"))));
}

TEST_F(CommandLine, NoNumberOfAListIsEmpty) {
  const std::vector<std::string> calibrate = {
      "calibrate", "--mechanism", "bounded-gaussian", "--epsilon", "1", "--sensitivity", "1"};
  for (const char* lower : {"", ",", "0,,1", "0,1,", ",0,1", "[0,,1]", "0 1"}) {
    std::vector<std::string> command = calibrate;
    command.insert(command.end(), {"--lower", lower, "--upper", "10,10"});
    ExpectUsageError(command, "--lower must be numbers separated by commas, but has \"");
  }
  std::vector<std::string> command = calibrate;
  command.insert(command.end(), {"--lower", "-1", "-2", "--upper", "1,2"});
  EXPECT_EQ(Answer(command)["proven"], true);
}

TEST_F(CommandLine, HelpShowsChoicesByTheirNamesAndWhereTheSharedOptionsAre) {
  const Outcome create = Run({"collection", "create", "--help"});
  EXPECT_EQ(create.exit_code, 0);
  EXPECT_THAT(create.out, AllOf(HasSubstr("distance, kernel or one_hot_kernel"),
                                Not(HasSubstr("->0")), HasSubstr("privatemail --help")));
  EXPECT_THAT(Run({"ingest", "--help"}).out,
              AllOf(HasSubstr("Exit code 3"), HasSubstr("replaces a stored one of the same id")));
  EXPECT_THAT(Run({"--help"}).out, AllOf(HasSubstr("PRIVATEMAIL_SERVER"), HasSubstr("--cert-key")));
}

TEST_F(CommandLine, AServerNeedsAPort) {
  user_.flags = {"--server", "127.0.0.1"};
  const Outcome outcome = Run({"collection", "list"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--server must be HOST:PORT"));
  EXPECT_THAT(Run({"--help"}).out, HasSubstr("2 invalid command line, value or file"));
}

TEST_F(CommandLine, TakesServerTrustAndStateFromTheEnvironment) {
  ::setenv("PRIVATEMAIL_SERVER", "127.0.0.1:1", 1);
  ::setenv("PRIVATEMAIL_TRUST", "12ab", 1);
  ::setenv("PRIVATEMAIL_STATE", (folder_ / "elsewhere").c_str(), 1);
  user_.state.clear();
  const Outcome trust = Run({"collection", "list"});
  ::setenv("PRIVATEMAIL_KEY_FILE", (folder_ / "none.key").c_str(), 1);
  user_.flags = {"--insecure"};
  const Outcome insecure = Run({"collection", "list"});
  ::unsetenv("PRIVATEMAIL_KEY_FILE");
  user_.flags = {"--ca", folder_ / "none.pem"};
  const Outcome ca = Run({"collection", "list"});
  user_.flags = {};
  ::unsetenv("PRIVATEMAIL_TRUST");
  const Outcome server = Run({"collection", "list"});
  const Outcome state = Run({"explain"});
  ::unsetenv("PRIVATEMAIL_SERVER");
  ::unsetenv("PRIVATEMAIL_STATE");
  EXPECT_THAT(trust.err, HasSubstr("64 hex digits, but is \"12ab\""));
  EXPECT_THAT(insecure.err, HasSubstr("cannot be reached")) << "neither trust nor key is used";
  EXPECT_THAT(ca.err, HasSubstr("error: cannot read --ca " + (folder_ / "none.pem") + ": No such"))
      << "a flag overrides";
  EXPECT_THAT(server.err, HasSubstr("server 127.0.0.1:1 cannot be reached: connection refused: is "
                                    "privatemaild running?"));
  EXPECT_THAT(state.err, HasSubstr(folder_ / "elsewhere"));
}

class StateFolder : public FilledService {};

TEST_F(StateFolder, IsMadePrivateAndSoIsAllThatIsInIt) {
  Answer(Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "--report",
                folder_ / "report.html"}));
  EXPECT_EQ(ModeOf(user_.state), 0700);
  for (const auto& file : std::filesystem::directory_iterator(user_.state)) {
    EXPECT_EQ(ModeOf(file.path()), 0600) << file.path();
  }
  EXPECT_EQ(ModeOf(folder_ / "report.html"), 0600);
}

TEST_F(StateFolder, OfSomebodyElsesMakingIsNotChangedButRefused) {
  user_.state = folder_ / "shared";
  std::filesystem::create_directory(user_.state);
  ASSERT_EQ(::chmod(user_.state.c_str(), 0755), 0);
  const Outcome outcome = Run({"budget", "show", "things"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("--state " + user_.state +
                                     " must be mode 0700, but is 0755: "
                                     "chmod 700 " +
                                     user_.state));
  EXPECT_EQ(ModeOf(user_.state), 0755);
}

class Advice : public FilledService {};

TEST_F(Advice, AQueryWarnsOfItemsThatAreNotSearchableYet) {
  const std::vector<std::string> query =
      Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "-k", "2"});
  EXPECT_THAT(Answer(query)["warnings"], IsEmpty());
  Write("more", SeparatedClasses(kItems + 5, 2));
  Ingest("more");
  const std::string warning =
      "200 items are searchable, 205 are stored, and 5 changes since the last build may be "
      "missing, except for deletions: `privatemail build things` (write access) includes them";
  EXPECT_EQ(Answer(query)["warnings"], json::array({warning}));
  EXPECT_THAT(Run(query).err, HasSubstr("warning: " + warning + "\n"));
}

TEST_F(Advice, AnUploadSaysHowToMakeItSearchable) {
  const Outcome outcome =
      Run({"ingest", "things", "--vectors", Vectors("gallery"), "--labels", Labels("gallery")});
  EXPECT_THAT(outcome.out, HasSubstr("run `privatemail build things` to make them searchable"));
}

// No server can read a message with other bytes.
TEST_F(Advice, IdsAndPayloadsThatAreNotUtf8AreNamedBeforeAnythingIsSent) {
  std::string ids;
  std::string payloads;
  for (int i = 0; i < kItems; ++i) {
    ids += i == 150 ? "h\xe9ron\n" : "new" + std::to_string(i) + "\n";
    payloads += i == 151 ? "\"h\xe9ron\"\n" : "\"h\xc3\xa9ron\"\n";
  }
  const std::vector<std::string> ingest = {"ingest",           "things",   "--vectors",
                                           Vectors("gallery"), "--labels", Labels("gallery")};
  std::vector<std::string> with_ids = ingest;
  with_ids.insert(with_ids.end(), {"--ids", folder_.Write("ids.txt", ids)});
  ExpectRefused(with_ids, "INVALID_ARGUMENT",
                {"row 150: id must be UTF-8, but its 5 bytes are not; nothing was sent"});
  std::vector<std::string> with_payloads = ingest;
  with_payloads.insert(with_payloads.end(), {"--payloads", folder_.Write("payloads", payloads)});
  ExpectRefused(with_payloads, "INVALID_ARGUMENT",
                {"row 151: payload must be UTF-8, but its 7 bytes are not"});
}

TEST_F(Advice, PayloadsAreShownToPeopleToo) {
  std::string payloads;
  for (int i = 0; i < kItems; ++i) payloads += "{\"shelf\": " + std::to_string(i) + "}\n";
  Answer({"ingest", "things", "--vectors", Vectors("gallery"), "--labels", Labels("gallery"),
          "--payloads", folder_.Write("payloads.jsonl", payloads)});
  Build();
  const Outcome outcome = Run(Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta",
                                     "1e-5", "-k", "2", "--payloads"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\n        {\"shelf\":"));
}

TEST_F(Advice, CountsAndSumsReadAsPeopleWriteThem) {
  Grant(1.1, .1);
  for (int i = 0; i < 3; ++i) {
    Answer(Query(
        {"--row", "0", "--label", "0", "--epsilon", i == 0 ? ".9" : ".1", "--delta", "1e-6"}));
    const Outcome shown = Run({"budget", "show", "things"});
    EXPECT_THAT(shown.out, HasSubstr(i == 0 ? "in 1 release\n" : "releases\n"));
    EXPECT_THAT(shown.out, HasSubstr(i == 2 ? "left    epsilon 0 delta" : "left    epsilon 0."));
  }
}

TEST_F(Advice, ACollectionShowsItsSettings) {
  const Outcome shown = Run({"collection", "info", "things"});
  for (const char* part :
       {"DISTANCE", "alpha 12", "bandwidth 6", "5 steps", "start stddev 1e-08"}) {
    EXPECT_THAT(shown.out, HasSubstr(part));
  }
  EXPECT_EQ(Info()["start_stddev"], 1e-8);
  EXPECT_EQ(Info()["normalise"], true);
}

TEST_F(Advice, ACollectionWithoutAlphaGetsOneForItsLabels) {
  const std::vector<std::string> create = {"collection",     "create",           "others",
                                           "--anchors",      Vectors("anchors"), "--anchor-labels",
                                           Labels("anchors")};
  const Outcome outcome = Run(create);
  EXPECT_THAT(outcome.out, HasSubstr("alpha 12 was chosen"));
  EXPECT_THAT(outcome.err, IsEmpty());
  std::vector<std::string> kernel = create;
  kernel[2] = "kernels";
  kernel.insert(kernel.end(), {"--label-graph", "kernel"});
  EXPECT_EQ(Answer(kernel)["alpha"], .6);
}

}  // namespace
}  // namespace privatemail::e2e
