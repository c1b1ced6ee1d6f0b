// Queries and budgets that must be refused and cost nothing, and servers that do not answer.
#include <array>
#include <csignal>

#include "common/features/vector_file.h"
#include "tests/e2e/service.h"
#include "tests/testing/matchers.h"
#include "tests/testing/npy.h"
#include "tests/testing/pictures.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class BadQuery : public FilledService {
 protected:
  // A valid query except for `flag`; each flag is given once.
  Command With(const std::string& flag, const std::string& value) const {
    std::vector<std::pair<std::string, std::string>> flags = {
        {"--row", "2"}, {"--label", "2"}, {"--epsilon", "1"}, {"--delta", "1e-5"}, {"-k", "3"}};
    bool known = false;
    Command command;
    for (const auto& [name, usual] : flags) {
      known = known || name == flag;
      command.insert(command.end(), {name, name == flag ? value : usual});
    }
    if (!known) command.insert(command.end(), {flag, value});
    return Query(command);
  }

  Command Batch(const std::string& epsilon, const std::string& rows) const {
    return Query(
        {"--rows", rows, "--labels", Labels("queries"), "--epsilon", epsilon, "--delta", "1e-5"});
  }
};

TEST_F(BadQuery, InvalidOptionIsRefused) {
  for (const auto& [flag, value, message] : std::vector<std::array<std::string, 3>>{
           {"--label", "5",
            "--label must be the number or name of a label of the collection (0, 1, 2, 3, 4)"},
           {"--private-iterations", "0", "--private-iterations must be"},
           {"--epsilon", "nan", "--epsilon must be finite and positive, but is nan"},
           {"--classes", "0", "--classes must be auto or a number of labels, but is \"0\""},
           {"--mechanism", "laplacian",
            "mechanism must be one of gaussian, published-gaussian, laplace"},
           {"--post-process", "nowhere",
            "--post-process must be client or server, but is \"nowhere\""},
           {"--report", folder_ / "none/report.html",
            "none/report.html cannot be written: No such file"}}) {
    ExpectRefused(With(flag, value), "INVALID_ARGUMENT", {message});
  }
  ExpectRefused(Query({"--epsilon", "1", "--delta", "1e-5"}), "INVALID_ARGUMENT",
                {"give --row I, --rows I,J,... or --rows all"});
  // Nobody is asked about a charge that cannot be made.
  for (const auto& [more, message] : std::vector<std::pair<Command, std::string>>{
           {{}, "--delta must be given"},
           {{"--delta", "1e-5", "-k", "0"}, "k must be between"},
           {{"--delta", "1e-5", "--classes", "2"}, "--classes does not apply"}}) {
    const Command query = Query({"--row", "2", "--label", "2", "--epsilon", "5"});
    EXPECT_THAT(Run(Join(query, more)).err,
                AllOf(HasSubstr(message), Not(HasSubstr("each query spends"))));
  }
  Write("queries", SeparatedClasses(10, 3, 128));
  ExpectRefused(With("-k", "3"), "INVALID_ARGUMENT", {"but is 128 columns in"});
  EXPECT_THAT(Run(With("--epsilon", "5")).err,
              AllOf(HasSubstr("but is 128 columns in"), Not(HasSubstr("each query spends"))));
}

TEST_F(BadQuery, UnaffordableBatchSpendsNothing) {
  const Outcome large = Run(Join(With("--epsilon", "5"), {"--json"}));
  EXPECT_THAT(large.err, HasSubstr("warning: each query spends epsilon 5"));
  EXPECT_THAT(large.json()["warnings"][0].get<std::string>(),
              AllOf(HasSubstr("each query spends epsilon 5"),
                    HasSubstr("; the expected recall without noise is 1; a query takes")));
  Grant(5.9, .1);
  EXPECT_THAT(Run(With("--epsilon", "5")).err,
              AllOf(HasSubstr("left for 1 release of epsilon 5"), HasSubstr("left epsilon 0.9"),
                    Not(HasSubstr("each query spends"))));
  ExpectRefused(Batch(".4", "0-2"), "RESOURCE_EXHAUSTED",
                {"3 releases of epsilon 0.4 delta 1e-05, in all epsilon 1.2", "left epsilon 0.9",
                 "nothing was spent"});
  const json error = Run(Join(Batch(".4", "0-2"), {"--json"})).json()["error"];
  EXPECT_EQ(error["field"], "budget") << error;
  EXPECT_EQ(error["expected"].get<std::string>().substr(0, 19), "left for 3 releases");
  const Outcome two = Run(Join(Batch(".4", "0,1"), {"--json"}));
  EXPECT_THAT(two.lines(), SizeIs(2)) << two.err;
}

// A collection of the same name is another one: neither its budget nor a request that was prepared
// for the former carries over.
TEST_F(BadQuery, RecreatedCollectionHasNoBudget) {
  Answer(With("--epsilon", "1"));
  const json before = Info();
  Answer({"collection", "delete", "things", "--yes"});
  EmbeddingSettings others = ThingsSettings();
  others.alpha = 3;
  CreateCollection(others);
  Fill();
  Build();
  EXPECT_NE(Info()["digest"], before["digest"]);
  ExpectRefused(With("--epsilon", "1"), "FAILED_PRECONDITION",
                {"budget must be granted", "privatemail budget set"});
  EXPECT_EQ(Budget()["releases"], 0);
  // The former answer is still explained by its own parameters.
  EXPECT_EQ(Answer({"explain"})["digest"], before["digest"]);
}

TEST_F(BadQuery, UnusableTargetFileIsRefusedBeforeAnyCall) {
  FloatMatrix zero = FloatMatrix::Ones(2, kFeatures);
  zero.row(1).setZero();
  ASSERT_THAT(testing::WriteNpy(Vectors("zero"), zero), IsOk());
  const std::string cut = PngOfOneColour(16, 16, 200, 20, 30).substr(0, 50);
  daemon_->program().Signal(SIGSTOP);  // a call would wait
  for (const auto& [target, message] : std::vector<std::pair<Command, std::string>>{
           {{"--vectors", Vectors("zero"), "--row", "1"}, "row 1"},
           {{"--row", "1"}, "--row needs the file of --vectors"},
           {{"--vectors", Vectors("zero"), "--row", "2"},
            "--row must be between 0 and 1, but is 2"},
           {{"--image", folder_.Write("cut.png", cut)},
            "cut.png: expected an image that is whole"}}) {
    const Outcome outcome =
        Run(Join({"query", "things", "--epsilon", "1", "--delta", "1e-5"}, target));
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
  daemon_->program().Signal(SIGCONT);
}

TEST_F(BadQuery, MisalignedCollectionIsRefusedUnlessAccepted) {
  Answer({"collection", "delete", "things", "--yes"});
  CreateCollection({.alpha = 1e-9, .steps = 1});
  Fill();
  Build();
  Grant(100, .01);
  const json info = Info();
  EXPECT_LT(info["alignment"]["expected_recall"], .9);
  ASSERT_THAT(info["warnings"], SizeIs(1));
  EXPECT_THAT(std::string(info["warnings"][0]), HasSubstr("classes land at their class"));
  for (const char* label : {"0", "2"}) {  // every target alike
    ExpectRefused(With("--label", label), "FAILED_PRECONDITION",
                  {"expected_recall must be at least 90 %",
                   "nothing was charged; to query all the same: --accept-misalignment"});
  }
  const json accepted = Answer(Join(With("--label", "2"), {"--accept-misalignment"}));
  EXPECT_EQ(accepted["warnings"], info["warnings"]);
  EXPECT_EQ(Budget()["releases"], 1);
}

class BadServer : public FilledService {
 protected:
  // Expects this error of valid commands that call the server.
  void ExpectErrors(const std::string& code, const std::string& start,
                    const Command& more = {}) const {
    for (const Command& command : std::vector<Command>{
             {"collection", "delete", "things", "--yes"},
             {"budget", "set", "things", "--epsilon", "1", "--delta", ".1"},
             Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5"})}) {
      const Outcome outcome = Run(Join(Join(command, {"--json"}), more));
      EXPECT_EQ(outcome.exit_code, 1) << ::testing::PrintToString(command);
      const json error = outcome.json()["error"];
      EXPECT_EQ(error["code"], code) << ::testing::PrintToString(command);
      EXPECT_THAT(error["message"].get<std::string>(), StartsWith(start));
    }
  }
};

// A stopped process: the system accepts its connections.
TEST_F(BadServer, UnreachableOrSilentServerIsNamed) {
  const json before = Everything();
  const std::string server = "server " + daemon_->address();
  daemon_->program().Signal(SIGSTOP);
  ExpectErrors("DEADLINE_EXCEEDED", server + " did not answer within 250ms",
               {"--deadline", "0.25"});
  daemon_->program().Signal(SIGCONT);
  EXPECT_EQ(Everything(), before);
  daemon_.reset();
  ExpectErrors("UNAVAILABLE", server + " cannot be reached: ");
  StartDaemon();
  EXPECT_EQ(Everything(), before);
}

}  // namespace
}  // namespace privatemail::e2e
