// Output of the command line: help, warnings, usage errors, and permissions of written files.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_split.h"
#include "tests/e2e/service.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// No server is needed to be misunderstood.
class CommandLine : public Service {
 protected:
  void ExpectUsageError(const Command& command, const std::string& part) const {
    const Outcome outcome = Run(Join(command, {"--json"}));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    const json error = outcome.json()["error"];
    ASSERT_TRUE(error.is_object()) << outcome.out;
    EXPECT_EQ(error["code"], "INVALID_ARGUMENT");
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(part));
    EXPECT_THAT(outcome.err, HasSubstr("error: "));
  }
};

TEST_F(CommandLine, MistypedWordIsSuggested) {
  ExpectUsageError({"info"}, "there is no command \"info\"; did you mean \"collection info\"?");
  ExpectUsageError({"query", "things", "--vector", "v.npy", "--epsilon", "1"},
                   "there is no option --vector; did you mean \"--vectors\"?");
  ExpectUsageError({"calibrate", "--frobnicate", "1"}, "there is no option --frobnicate");
  ExpectUsageError({"query", "things", "--topk", "3"}, "--topk; did you mean \"-k\"?");
  ExpectUsageError({"search"}, "there is no command \"search\"; did you mean \"query\"?");
  ExpectUsageError({"collection", "ls"},
                   "there is no command \"collection ls\"; did you mean \"collection list\"?");
  ExpectUsageError({"collection", "info", "a", "b"},
                   "`privatemail collection info` takes no argument \"b\" here");
  EXPECT_THAT(Run({"items", "list", "--cursr", "3"}).err,
              HasSubstr("`privatemail items list --help` says more."));
  EXPECT_THAT(Program({PRIVATEMAILD, "--listn", "x"}).Wait().err,
              HasSubstr("there is no option --listn; did you mean \"--listen\"?"));
}

TEST_F(CommandLine, OutputThatCannotBeWrittenIsAnError) {
  const Outcome outcome =
      Program({"/bin/sh", "-c",
               PRIVATEMAIL " calibrate --mechanism laplace --epsilon 1 --sensitivity 1 >/dev/full"})
          .Wait();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("error: standard output cannot be written"));
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

TEST_F(CommandLine, HelpFitsOnAScreenAndTheRestComesWithV) {
  constexpr size_t kLines = 15;
  const std::string script = Run({"completion", "bash"}).out;
  const size_t start = script.find("commands=\"") + 10;
  const std::string list = script.substr(start, script.find('\n', start + 1) - start);
  std::vector<std::string> commands = absl::StrSplit(list, '|', absl::SkipWhitespace());
  commands.pop_back();  // the quote
  ASSERT_GT(commands.size(), 20) << script;
  for (const std::string& command : commands) {
    if (command == " evaluate" || command == " tune") continue;  // Python's
    const Command words = absl::StrSplit(command, ' ', absl::SkipEmpty());
    const std::string help = Run(Join(words, {"--help"})).out;
    const std::vector<std::string> lines = absl::StrSplit(help, '\n');
    EXPECT_LE(lines.size() - 1, kLines) << help;
    EXPECT_GE(Run(Join(words, {"--help", "-v"})).out.size(), help.size());
  }
  const std::string daemon = Program({PRIVATEMAILD, "--help"}).Wait().out;
  EXPECT_LE(std::count(daemon.begin(), daemon.end(), '\n'), kLines) << daemon;
  EXPECT_THAT(daemon, AllOf(HasSubstr("--data-dir"), HasSubstr("privatemaild --help -v\n")));
  EXPECT_THAT(Program({PRIVATEMAILD, "-v", "--help"}).Wait().out, HasSubstr("--max-concurrent"));
  EXPECT_THAT(Run({"query", "--help"}).out, Not(HasSubstr("--private-iterations")));
  EXPECT_THAT(Run({"query", "--help", "-v"}).out, HasSubstr("--private-iterations"));
}

TEST(Evaluation, RunsItsOwnProgram) {
  const Outcome help = Program({PRIVATEMAIL, "evaluate", "--help"}).Wait();
  EXPECT_EQ(help.exit_code, 0) << help.err;
  EXPECT_LE(std::count(help.out.begin(), help.out.end(), '\n'), 15);
  EXPECT_THAT(Program({PRIVATEMAIL, "evaluate", "--help", "-v"}).Wait().out,
              HasSubstr("--anchors-per-class"));
  const TemporaryFolder folder;
  const std::string alone = folder.path() + "/privatemail";
  std::filesystem::copy_file(PRIVATEMAIL, alone);
  const Outcome missing = Program({alone, "evaluate", "--help"}).Wait();
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err,
              AllOf(HasSubstr(folder.path() + "/python"), HasSubstr("cmake --preset release")));
}

TEST_F(CommandLine, InvalidValueNamesExpectedForm) {
  ExpectUsageError({}, "`privatemail` needs a command: query, explain, ");
  ExpectUsageError(
      {"collection", "create", "n", "--label-graph", "round"},
      "--label-graph must be balanced, distance, kernel or one_hot_kernel, but is \"round\"");
  for (const std::string text : {"x", "1.5", "2 "}) {
    ExpectUsageError({"collection", "create", "n", "--dim", text},
                     "--dim: must be a whole number, but is \"" + text + '"');
  }
  ExpectUsageError({"collection", "info", ""}, "NAME: must not be empty");
  ExpectUsageError({"collection", "info", "caf\xe9"}, "NAME: must be UTF-8");
  ExpectUsageError({"sensitivity", "--seed", "-1"},
                   "--seed: must be a whole number from 0 to 4294967295, but is \"-1\"");
  ExpectUsageError({"query", "n", "--epsilon", "x"}, "--epsilon: must be a number, but is \"x\"");
  const Command calibrate = {
      "calibrate", "--mechanism", "bounded-gaussian", "--epsilon", "1", "--sensitivity", "1"};
  for (const char* lower : {"", "0,,1", "0 1"}) {
    ExpectUsageError(Join(calibrate, {"--lower", lower, "--upper", "10,10"}),
                     "--lower must be numbers separated by commas, but has \"");
  }
  EXPECT_EQ(Answer(Join(calibrate, {"--lower", "-1", "-2", "--upper", "1,2"}))["proven"], true);
}

TEST_F(CommandLine, EnvironmentGivesServerTrustAndState) {
  ::setenv("PRIVATEMAIL_SERVER", "127.0.0.1:1", 1);
  ::setenv("PRIVATEMAIL_TRUST", "12ab", 1);
  ::setenv("PRIVATEMAIL_CA", (folder_ / "other.pem").c_str(), 1);
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
  const Outcome given_ca = Run({"collection", "list"});
  ::unsetenv("PRIVATEMAIL_CA");
  const Outcome server = Run({"collection", "list"});
  const Outcome state = Run({"explain"});
  ::unsetenv("PRIVATEMAIL_SERVER");
  ::unsetenv("PRIVATEMAIL_STATE");
  EXPECT_THAT(trust.err, HasSubstr("64 hex digits, but is \"12ab\""));
  EXPECT_THAT(insecure.err, HasSubstr("cannot be reached")) << "neither trust nor key is used";
  EXPECT_THAT(ca.err, HasSubstr("error: --ca cannot be used: cannot read file " +
                                (folder_ / "none.pem") + ": No such"))
      << "a flag overrides";
  EXPECT_THAT(given_ca.err, HasSubstr(folder_ / "other.pem")) << "only without a fingerprint";
  EXPECT_THAT(server.err, HasSubstr("server 127.0.0.1:1 cannot be reached: connection refused: is "
                                    "privatemaild running?"));
  EXPECT_THAT(state.err, HasSubstr(folder_ / "elsewhere"));
}

class Advice : public FilledService {};

TEST_F(Advice, FilesAreForOwnerOnly) {
  Answer(Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "--report",
                folder_ / "report.html"}));
  EXPECT_EQ(ModeOf(user_.state), 0700u);
  for (const auto& file : std::filesystem::directory_iterator(user_.state)) {
    EXPECT_EQ(ModeOf(file.path()), 0600u) << file.path();
  }
  EXPECT_EQ(ModeOf(folder_ / "report.html"), 0600u);
}

TEST_F(Advice, QueryWarnsOfUnsearchableItems) {
  const std::vector<std::string> query =
      Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "-k", "2"});
  EXPECT_THAT(Answer(query)["warnings"], IsEmpty());
  Write("more", SeparatedClasses(kItems + 5, 2));
  EXPECT_THAT(
      Run({"ingest", "things", "--vectors", Vectors("more"), "--labels", Labels("more")}).out,
      HasSubstr("searches with joint find new items after `privatemail build things`\n"));
  const std::string warning =
      "200 items are searchable, 205 are stored, and 5 changes since the last build may be "
      "missing, except for deletions: a build includes them";
  EXPECT_EQ(Answer(query)["warnings"], json::array({warning}));
  EXPECT_THAT(Run(query).err, HasSubstr("warning: " + warning + "\n"));
}

TEST_F(Advice, DefaultsDependOnTheLabelGraph) {
  const Command anchors = {"--anchors", Vectors("anchors"), "--anchor-labels", Labels("anchors")};
  const json balanced = Answer(Join({"collection", "create", "others"}, anchors));
  EXPECT_EQ(balanced["label_graph"], "LABEL_GRAPH_BALANCED");
  EXPECT_EQ(balanced["start"], "classes");
  EXPECT_EQ(balanced["steps"], 10);
  EXPECT_EQ(balanced["alpha"], 5);
  const Command kernel = {"collection", "create", "kernels", "--label-graph", "kernel"};
  EXPECT_EQ(Answer(Join(kernel, anchors))["alpha"], .6);
  // The authors' code.
  const Command printed = {"collection", "create", "printed", "--label-graph", "distance"};
  EXPECT_EQ(Answer(Join(printed, anchors))["alpha"], 12);
}

}  // namespace
}  // namespace privatemail::e2e
