// The commands for those who look after a guarantee.
#include <csignal>

#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using PrivacyCommands = FilledService;

TEST_F(PrivacyCommands, ResendAnswersAgainAtNoCost) {
  const json answer =
      Answer(Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "-k", "3"}));
  const json budget = Budget();
  const json again = Answer({"resend", "--label", "0"});
  EXPECT_EQ(again["matches"], answer["matches"]);
  EXPECT_EQ(again["class"], answer["class"]);
  EXPECT_NE(Answer({"resend", "--label", "1"})["matches"], answer["matches"]);
  EXPECT_EQ(Budget(), budget);
  const Outcome other = Run({"resend", "--label", "77", "--json"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("--label must be one of the collection's 5 classes"));
}

// The example of the bounded Gaussian document's table 1, epsilon .5.
TEST_F(PrivacyCommands, CalibratesABoundedGaussian) {
  const json noise = Answer({"calibrate", "--mechanism", "bounded-gaussian", "--epsilon", ".5",
                             "--sensitivity", "4.4721", "--lower", "0,1", "--upper", "10,9"});
  EXPECT_EQ(noise["proven"], true);
  EXPECT_EQ(noise["guarantee"]["delta"], 0);
  const double stddev = noise["stddev"];
  EXPECT_DOUBLE_EQ(noise["variance"], stddev * stddev);
  const json printed =
      Answer({"calibrate", "--mechanism", "published-bounded-gaussian", "--epsilon", ".5",
              "--sensitivity", "4.4721", "--lower", "0,1", "--upper", "10,9"});
  EXPECT_EQ(printed["proven"], false);
  EXPECT_LT(stddev, printed["stddev"]);
}

// The number after these words.
double NumberAfter(const std::string& text, const std::string& words) {
  const size_t at = text.find(words);
  EXPECT_NE(at, std::string::npos) << text;
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + words.size(), nullptr);
}

TEST_F(PrivacyCommands, PeopleReadNoLessNoiseThanPrograms) {
  for (const char* sensitivity : {".01", "1.2345678", "3e-9", "7777777.7"}) {
    const std::vector<std::string> command = {
        "calibrate", "--mechanism", "gaussian",      "--epsilon", ".3",
        "--delta",   "1e-5",        "--sensitivity", sensitivity};
    const json noise = Answer(command);
    const std::string text = Run(command).out;
    EXPECT_EQ(NumberAfter(text, "standard deviation "), noise["stddev"]);
    EXPECT_EQ(NumberAfter(text, "variance "), noise["variance"]);
    EXPECT_EQ(NumberAfter(text, "epsilon "), .3);
    const long double stddev = noise["stddev"].get<double>();
    EXPECT_GE(noise["variance"].get<double>(), stddev * stddev);
    EXPECT_THAT(text, HasSubstr("differ by at most "));
  }
}

TEST_F(PrivacyCommands, AVarianceThatIsNoNormalNumberIsAnError) {
  for (const char* sensitivity : {"1e-170", "1e170"}) {
    ExpectRefused(
        {"calibrate", "--mechanism", "laplace", "--epsilon", "1", "--sensitivity", sensitivity},
        "INVALID_ARGUMENT", {"variance must be a normal number"});
  }
}

TEST_F(PrivacyCommands, CalibratesForARadius) {
  const json noise = Answer({"calibrate", "--mechanism", "lap-output", "--epsilon", "2", "--radius",
                             ".5", "--lipschitz", "3"});
  EXPECT_NEAR(noise["variance"], 2 * std::pow(3 * .5 / 2, 2), 1e-9);
  EXPECT_EQ(noise["guarantee"]["radius"], .5);
  EXPECT_EQ(noise["guarantee"]["metric"], "l2");
  const Outcome none =
      Run({"calibrate", "--mechanism", "lap-output", "--epsilon", "2", "--radius", ".5"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("Lipschitz constant must be given for lap-output"));
  const Outcome no_delta =
      Run({"calibrate", "--mechanism", "gaussian", "--epsilon", "1", "--sensitivity", "1"});
  EXPECT_THAT(no_delta.err, HasSubstr("--delta must be given for gaussian"));
}

TEST_F(PrivacyCommands, ARadiusIsAskedForByItsFlagAndToldInAsFewDigitsAsItHas) {
  const std::vector<std::string> query = {"--row",     "0", "--label",     "0",
                                          "--epsilon", "1", "--mechanism", "lap-output"};
  ExpectRefused(Query(query), "INVALID_ARGUMENT", {"--radius must be given for lap-output"});
  std::vector<std::string> near = query;
  near.insert(near.end(), {"--radius", ".1"});
  EXPECT_THAT(Answer(Query(near))["guarantee"]["neighbours"].get<std::string>(),
              HasSubstr("replaced by any others at most 0.1 away"));
}

TEST_F(PrivacyCommands, AQueryTakesAnyMechanism) {
  Grant(100, .1);
  const json pure = Answer(
      Query({"--row", "0", "--label", "0", "--epsilon", "1", "-k", "3", "--mechanism", "laplace"}));
  EXPECT_EQ(pure["guarantee"]["delta"], 0);
  EXPECT_EQ(pure["guarantee"]["proven"], true);
  const json near = Answer(Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5",
                                  "-k", "3", "--mechanism", "gauss-output", "--radius", ".2"}));
  EXPECT_EQ(near["guarantee"]["radius"], .2);
  EXPECT_THAT(near["guarantee"]["neighbours"].get<std::string>(), HasSubstr("class is not hidden"));
  const json twice = Answer(Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta",
                                   "1e-5", "-k", "3", "--private-iterations", "2"}));
  EXPECT_EQ(twice["guarantee"]["epsilon"], 1);
}

// A class that is not hidden and was computed from the features would tell what the noise hides.
TEST_F(PrivacyCommands, AGuessedLabelIsRefusedWhereTheClassIsNotHidden) {
  Grant(100, .1);
  for (const char* mechanism : {"lap-output", "gauss-output", "gauss-input"}) {
    std::vector<std::string> query = Query(
        {"--row", "0", "--epsilon", "1", "-k", "3", "--mechanism", mechanism, "--radius", ".1"});
    if (std::string(mechanism) != "lap-output") query.insert(query.end(), {"--delta", "1e-5"});
    ExpectRefused(query, "INVALID_ARGUMENT", {"--label must be given", mechanism});
  }
}

TEST_F(PrivacyCommands, ABudgetOfPrintedFormulasDoesNotCallItselfProven) {
  Grant(100, .1);
  Answer(Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "-k", "3",
                "--mechanism", "published-gaussian"}));
  Answer(
      {"budget", "set", "things", "--epsilon", "50", "--delta", ".1", "--accounting", "gaussian"});
  EXPECT_EQ(Budget()["all_proven"], false);
  const Outcome shown = Run({"budget", "show", "things"});
  EXPECT_THAT(shown.out, HasSubstr("NOT ALL PROVEN"));
  EXPECT_THAT(shown.out, ::testing::Not(HasSubstr("proven too")));
  EXPECT_EQ(Answer({"budget", "set", "things", "--epsilon", "60", "--delta", ".1"})["accounting"],
            "gaussian");
}

TEST_F(PrivacyCommands, AGrantBelowWhatIsSpentSaysThatNothingIsLeft) {
  Grant(2, .1);
  Answer(Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "-k", "3"}));
  const Outcome less = Run({"budget", "set", "things", "--epsilon", ".5", "--delta", ".1"});
  EXPECT_EQ(less.exit_code, 0);
  EXPECT_THAT(less.err, HasSubstr("nothing is left of this budget: epsilon 1 is spent already"));
  const Outcome more = Run({"budget", "set", "things", "--epsilon", "3", "--delta", ".1"});
  EXPECT_EQ(more.err, "");
}

// Ten releases of epsilon .3 each: 3 by sums, 1.05 by mu (scipy).
TEST_F(PrivacyCommands, AGaussianGrantGoesFurther) {
  Answer({"budget", "set", "things", "--epsilon", "1.5", "--delta", "1e-5", "--accounting",
          "gaussian"});
  std::vector<std::string> query =
      Query({"--row", "0", "--label", "0", "--epsilon", ".3", "--delta", "1e-5", "-k", "3"});
  for (int i = 0; i < 10; ++i) Answer(query);
  const json budget = Budget();
  EXPECT_EQ(budget["accounting"], "gaussian");
  EXPECT_EQ(budget["cheaper"], "gaussian");
  EXPECT_NEAR(budget["spent_basic"]["epsilon"], 3, 1e-9);
  EXPECT_NEAR(budget["spent"]["epsilon"], 1.0548, 1e-3);
  EXPECT_EQ(budget["spent"], budget["spent_gaussian"]);
}

TEST_F(PrivacyCommands, AuditsOneMechanismAndNamesWhatItDid) {
  const json result =
      Answer({"audit", "--mechanism", "laplace", "--epsilon", "1", "--releases", "20000"});
  EXPECT_EQ(result["claimed_epsilon"], 1);
  EXPECT_GT(result["epsilon_lower"], .7);
  EXPECT_LE(result["epsilon_lower"], 1);
  EXPECT_EQ(result["exceeded"], false);
  const Outcome useless = Run({"audit", "--mechanism", "laplace", "--delta", "1e-6"});
  EXPECT_EQ(useless.exit_code, 2);
  EXPECT_EQ(useless.out, "");
  EXPECT_THAT(useless.err, HasSubstr("--delta is of no use to laplace: expected none"));
}

TEST_F(PrivacyCommands, AuditsOneBaseline) {
  const json result = Answer({"audit", "--mechanism", "analyse-gauss", "--releases", "20000"});
  EXPECT_EQ(result["mechanism"], "analyse-gauss");
  EXPECT_EQ(result["claimed_delta"], 1e-5);
  EXPECT_GT(result["epsilon_lower"], 1.2) << "1.59 on an average, with a deviation of .08";
  EXPECT_EQ(result["exceeded"], false);
  const Outcome useless = Run({"audit", "--mechanism", "candidate-ppca", "--delta", "1e-6"});
  EXPECT_EQ(useless.exit_code, 2);
  EXPECT_THAT(useless.err, HasSubstr("--delta is of no use to candidate-ppca: expected none"));
}

// Eleven mechanisms by themselves, then in the joint release, then over several iterations, then
// seven in the anchored release, the cells and their request, and five baselines.
TEST_F(PrivacyCommands, AuditsEveryMechanismByItselfAndInTheReleases) {
  const json all = Answer({"audit", "--all", "--releases", "50", "--delta", "1e-6"});
  ASSERT_THAT(all, SizeIs(38));
  EXPECT_EQ(all[0]["mechanism"], "gaussian");
  EXPECT_EQ(all[11]["mechanism"], "joint release, gaussian");
  EXPECT_EQ(all[22]["mechanism"], "joint release, gaussian, 2 iterations");
  EXPECT_EQ(all[23]["mechanism"], "joint release, laplace, 40 iterations");
  EXPECT_EQ(all[24]["mechanism"], "anchored release, gaussian");
  EXPECT_EQ(all[30]["mechanism"], "anchored release, gauss-output");
  EXPECT_EQ(all[31]["mechanism"], "cells");
  EXPECT_EQ(all[32]["mechanism"], "cells request");
  EXPECT_EQ(all[33]["mechanism"], "analyse-gauss");
  for (const json& row : all) {
    const std::string name = row["mechanism"];
    EXPECT_EQ(row["proven"], name.find("published") == std::string::npos) << name;
    EXPECT_EQ(row["claimed_epsilon"], 2) << name;
    const bool takes_delta =
        (name.find("gauss") != std::string::npos && name.find("bounded") == std::string::npos) ||
        name == "random-projection" || name == "dp-dsne";
    EXPECT_EQ(row["claimed_delta"], takes_delta || row == all[23] ? 1e-6 : 0) << name;
    EXPECT_LE(row["epsilon_lower"], 2) << row;
    EXPECT_EQ(row["exceeded"], false) << name;
    EXPECT_EQ(row["confidence"], .999999) << name;
    EXPECT_EQ(row["releases"], 50) << name;
  }
}

TEST(Audit, AllEstimatesItsTimeFirst) {
  Program audit({PRIVATEMAIL, "audit", "--all"});
  EXPECT_THAT(audit.ReadLine().value_or(""), HasSubstr("mechanism"));
  audit.Signal(SIGKILL);
  EXPECT_THAT(audit.Wait().err, HasSubstr("38 mechanisms with 1000000 releases each takes about"));
}

// What a query says of its guarantee in words is what the guarantee holds as a value.
TEST_F(PrivacyCommands, AQuerysWordsAreThoseOfItsGuarantee) {
  Grant(100, .1);
  const std::vector<std::string> delta = {"--delta", "1e-5"};
  const std::vector<std::string> radius = {"--radius", ".2"};
  for (const auto& [mechanism, more] :
       std::vector<std::pair<std::string, std::vector<std::string>>>{{"gaussian", delta},
                                                                     {"laplace", {}},
                                                                     {"published-gaussian", delta},
                                                                     {"lap-output", radius}}) {
    SCOPED_TRACE(mechanism);
    std::vector<std::string> query = Query(
        {"--row", "0", "--label", "0", "--epsilon", ".5", "-k", "3", "--mechanism", mechanism});
    query.insert(query.end(), more.begin(), more.end());
    const json guarantee = Answer(query)["guarantee"];
    const std::string words = Run(query).out;
    EXPECT_THAT(words, HasSubstr(guarantee["proven"] == true
                                     ? "(proven); left"
                                     : "(as published, NOT a proven guarantee); left"));
    EXPECT_THAT(words, HasSubstr(guarantee["delta"] == 0 ? "spent epsilon 0.5, delta 0 ("
                                                         : "spent epsilon 0.5, delta 1e-05 ("));
    EXPECT_EQ(guarantee["epsilon"], .5);
    EXPECT_THAT(words, HasSubstr("hidden: " + guarantee["neighbours"].get<std::string>()));
    EXPECT_EQ(words.find("(radius 0.2)") != std::string::npos, guarantee.value("radius", 0.) == .2);
  }
}

// Every fact of the text, against what the query answered and what the collection is.
TEST_F(PrivacyCommands, ExplainStatesWhatWasPreparedAndNothingElse) {
  for (const bool rich : {false, true}) {
    std::vector<std::string> query =
        Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "-k", "3"});
    if (rich) {
      query.insert(query.end(), {"--payloads", "--post-process", "server", "--filter",
                                 R"({"path":"year","gte":2020})"});
    }
    const json answer = Answer(query);
    const std::string words = Run({"explain"}).out;
    const std::vector<std::string> facts = {
        "Prepared for the server, " + answer["bytes"]["up"].dump() +
            " bytes and nothing else (saved before sending; delivery is not recorded)",
        "collection   things\n",
        "digest       " + Info()["digest"].get<std::string>() + "\n",
        "matches      3 for every slot\n",
        rich ? "payloads     for every slot\n" : "payloads     for none\n",
        rich ? "{\"gte\":2020,\"path\":\"year\"}, in clear\n" : "filter       none\n",
        rich ? "release      45 x 2, the noisy iteration:\n"
             : "release      45 x 2, finished coordinates:\n"};
    for (const std::string& fact : facts) EXPECT_THAT(words, HasSubstr(fact));
    EXPECT_EQ(std::count(words.begin(), words.end(), '\n'), 7 + 45) << words;
  }
}

// A slot is what a release hides: the text is laid out alike whichever holds the target.
TEST_F(PrivacyCommands, ExplainDoesNotTellTheSlot) {
  const auto row_names = [this](const std::string& label) {
    Answer(Query({"--row", "0", "--label", label, "--epsilon", "1", "--delta", "1e-5"}));
    std::vector<std::string> names;
    for (const json& row : Answer({"explain"})["rows"]) names.push_back(row["row"]);
    return names;
  };
  EXPECT_EQ(row_names("0"), row_names("3"));
}

}  // namespace
}  // namespace privatemail::e2e
