// The commands for those who look after a guarantee.
#include <csignal>

#include "absl/strings/str_cat.h"
#include "client/search/batch.h"
#include "tests/e2e/service.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

using PrivacyCommands = FilledService;

TEST_F(PrivacyCommands, ResendAnswersAgainAtNoCost) {
  const json answer =
      Answer(Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "-k", "3"}));
  const json budget = Budget();
  const json again = Answer({"resend", "--label", "0"});
  EXPECT_EQ(again["matches"], answer["matches"]);
  EXPECT_EQ(again["class"], answer["class"]);
  EXPECT_NE(Answer({"resend", "--label", "1"})["matches"], answer["matches"]);
  const json fewer = Answer({"resend", "--label", "0", "-k", "2"})["matches"];
  ASSERT_THAT(fewer, SizeIs(2));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(fewer[i]["id"], answer["matches"][i]["id"]);
  ExpectRefused({"resend", "--label", "0", "-k", "0"}, "INVALID_ARGUMENT", {"k must be between"});
  ExpectRefused({"resend", "--label", "77"}, "INVALID_ARGUMENT",
                {"--label must be the number or name of a label"});
  EXPECT_EQ(Budget(), budget);
}

TEST_F(PrivacyCommands, ResendWithoutALabelRanksTheClassesAgain) {
  const json answer = Answer(Query({"--row", "1", "--epsilon", "1", "--delta", "1e-5", "-k", "3"}));
  const json again = Answer({"resend", "--vectors", Vectors("queries"), "--row", "1"});
  EXPECT_EQ(again["matches"], answer["matches"]);
  EXPECT_EQ(again["classes"].size(), answer["classes"].size());
  ExpectRefused({"resend", "--label", "0", "--vectors", Vectors("queries"), "--row", "1"},
                "INVALID_ARGUMENT", {"--label does not apply with a target"});
  ExpectRefused({"resend"}, "INVALID_ARGUMENT", {"--label must be given with the scheme joint"});
  ExpectRefused({"resend", "others", "--label", "0"}, "FAILED_PRECONDITION",
                {"the last release was for the collection things, not for others"});
  EXPECT_THAT(Run({"resend", "things", "--vectors", Vectors("queries"), "--row", "1"}).out,
              ::testing::StartsWith("the last release again, to the collection things by joint, "
                                    "read for "));
}

TEST_F(PrivacyCommands, CalibratesForARadius) {
  const Command calibrate = {"calibrate", "--mechanism", "lap-output", "--epsilon",
                             "2",         "--radius",    ".5"};
  const json noise = Answer(Join(calibrate, {"--lipschitz", "3"}));
  EXPECT_NEAR(noise["variance"], 2 * std::pow(3 * .5 / 2, 2), 1e-9);
  EXPECT_EQ(noise["guarantee"]["radius"], .5);
  EXPECT_EQ(noise["guarantee"]["metric"], "l2");
  ExpectRefused(calibrate, "INVALID_ARGUMENT", {"--lipschitz must be given for lap-output"});
  ExpectRefused({"calibrate", "--mechanism", "gauss-input", "--epsilon", "1", "--delta", "1e-5",
                 "--radius", "1"},
                "INVALID_ARGUMENT", {"--dim must be given for gauss-input"});
  ExpectRefused({"calibrate", "--mechanism", "gaussian", "--epsilon", "1", "--sensitivity", "1"},
                "INVALID_ARGUMENT", {"--delta must be given for gaussian"});
  const Command query =
      Query({"--row", "0", "--label", "0", "--epsilon", "1", "--mechanism", "lap-output"});
  ExpectRefused(query, "INVALID_ARGUMENT", {"--radius must be given for lap-output"});
  EXPECT_THAT(
      Answer(Join(query, {"--radius", ".1"}))["guarantee"]["neighbours"].get<std::string>(),
      HasSubstr("replaced by any others at most 0.1 away (any others within 32 such steps"));
}

// A class that is not hidden and was computed from the features would tell what the noise hides.
TEST_F(PrivacyCommands, GuessedLabelIsRefusedIfClassIsNotHidden) {
  Grant(100, .1);
  for (const char* mechanism : {"lap-output", "gauss-output", "gauss-input"}) {
    std::vector<std::string> query = Query(
        {"--row", "0", "--epsilon", "1", "-k", "3", "--mechanism", mechanism, "--radius", ".1"});
    if (std::string(mechanism) != "lap-output") query.insert(query.end(), {"--delta", "1e-5"});
    ExpectRefused(query, "INVALID_ARGUMENT", {"--label must be given", mechanism});
  }
}

TEST_F(PrivacyCommands, OperatorBudgetHoldsOverCollections) {
  Grant(100, .1);
  const Command set = {"budget",    "set", "--operator", "acme",
                       "--epsilon", "1.5", "--delta",    "1e-4"};
  EXPECT_EQ(Answer(set)["operator"], "acme");
  const Command query =
      Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "-k", "3"});
  Answer(query);
  ExpectRefused(query, "RESOURCE_EXHAUSTED", {"over all collections of operator acme"});
  const json sums = Budget()["operators"];
  ASSERT_THAT(sums, SizeIs(1));
  EXPECT_EQ(sums[0]["operator"], "acme");
  EXPECT_EQ(sums[0]["left"]["epsilon"], .5);
  ExpectRefused(Query({"--rows", "0,1", "--label", "0", "--epsilon", ".3", "--delta", "1e-5"}),
                "RESOURCE_EXHAUSTED", {"2 releases", "operator acme", "nothing was spent"});
  ExpectRefused({"budget", "set", "--operator", "other", "--epsilon", "9"}, "FAILED_PRECONDITION",
                {"--operator must be acme, to whom"});
  ExpectRefused(Join(set, {"things"}), "INVALID_ARGUMENT", {"NAME", "--operator"});
  const json changes = Answer({"budget", "history", "things"})["changes"];
  ASSERT_THAT(changes, SizeIs(4));
  EXPECT_EQ(changes[2]["kind"], "operator-grant");
  EXPECT_EQ(changes[2]["operator"], "acme");
  EXPECT_EQ(changes[2]["server"], changes[3]["server"]);
}

TEST_F(PrivacyCommands, CollectionThatNoOperatorCountsWarns) {
  Grant(100, .1);
  const Command query =
      Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "-k", "3"});
  const std::string warning = "belongs to an operator of the ledger, so no sum counts";
  EXPECT_THAT(Run(query).err, Not(HasSubstr(warning)));
  ASSERT_THAT(OpenLedger(user_.state).value()->GrantOperator("acme", "another", {10, .1}), IsOk());
  const Outcome alone = Run(query);
  EXPECT_EQ(alone.exit_code, 0);
  EXPECT_THAT(alone.err, HasSubstr(warning));
  EXPECT_THAT(Run({"budget", "set", "things", "--epsilon", "9"}).err, HasSubstr(warning));
  Answer({"budget", "set", "--operator", "acme", "--epsilon", "10", "--delta", ".1"});
  EXPECT_THAT(Run(query).err, Not(HasSubstr(warning)));
}

TEST_F(PrivacyCommands, BudgetOfPublishedMechanismIsNotProven) {
  Grant(100, .1);
  Answer(Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "-k", "3",
                "--mechanism", "published-gaussian"}));
  Answer(
      {"budget", "set", "things", "--epsilon", "50", "--delta", ".1", "--accounting", "gaussian"});
  EXPECT_EQ(Budget()["all_proven"], false);
  EXPECT_EQ(Answer({"budget", "set", "things", "--epsilon", "60", "--delta", ".1"})["accounting"],
            "gaussian");
}

TEST_F(PrivacyCommands, GrantBelowSpentWarns) {
  Grant(2, .1);
  Answer(Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "-k", "3"}));
  const Outcome less = Run({"budget", "set", "things", "--epsilon", ".5", "--delta", ".1"});
  EXPECT_EQ(less.exit_code, 0);
  EXPECT_THAT(less.err, HasSubstr("nothing is left of this budget: epsilon 1 is spent already"));
  const Outcome more = Run({"budget", "set", "things", "--epsilon", "3", "--delta", ".1"});
  EXPECT_EQ(more.err, "");
  const Outcome large = Run({"budget", "set", "things", "--epsilon", "30", "--json"});
  EXPECT_EQ(large.err, "warning: " + large.json()["warnings"][0].get<std::string>() + "\n");
  EXPECT_EQ(Answer({"budget", "set", "things", "--epsilon", "4"})["granted"]["delta"], .1);
  EXPECT_THAT(Run({"budget", "set", "things", "--epsilon", "4", "--delta", "1e-6"}).err,
              HasSubstr("nothing is left of this budget: delta 1e-05 is spent already"));
}

TEST_F(PrivacyCommands, GaussianGrantSpendsLessThanSum) {
  Answer({"budget", "set", "things", "--epsilon", "1.5", "--delta", "1e-5", "--accounting",
          "gaussian"});
  for (int i = 0; i < 3; ++i) {
    Answer(Query({"--row", "0", "--label", "0", "--epsilon", ".3", "--delta", "1e-5", "-k", "3"}));
  }
  const json budget = Budget();
  EXPECT_EQ(budget["accounting"], "gaussian");
  EXPECT_EQ(budget["cheaper"], "gaussian");
  EXPECT_NEAR(budget["spent_basic"]["epsilon"], .9, 1e-9);
  EXPECT_LT(budget["spent"]["epsilon"], .9);
  EXPECT_EQ(budget["spent"], budget["spent_gaussian"]);
}

TEST_F(PrivacyCommands, LedgerIsShownWithoutServer) {
  Answer(Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "-k", "3"}));
  const json budget = Budget();
  Answer({"budget", "set", "--operator", "acme", "--epsilon", "9"});
  daemon_.reset();
  EXPECT_THAT(Run({"budget", "show", "things"}).err,
              AllOf(HasSubstr("cannot be reached"), HasSubstr("without NAME this command shows")));
  const json shown = Answer({"budget", "show"}), all = shown["collections"];
  ASSERT_THAT(all, SizeIs(1));
  ASSERT_THAT(shown["operators"], SizeIs(1));
  EXPECT_EQ(shown["operators"][0]["operator"], "acme");
  EXPECT_EQ(shown["operators"][0]["spent"], budget["spent"]);
  for (const char* key : {"uuid", "granted", "spent", "left", "releases"}) {
    EXPECT_EQ(all[0][key], budget[key]) << key;
  }
  user_.state = folder_ / "elsewhere";
  EXPECT_THAT(Run({"budget", "show"}).out, HasSubstr("elsewhere is empty"));
}

// Eleven mechanisms by themselves, then in the joint release, then over several iterations, then
// the cells and their request, then requests by joint and encrypted queries.
TEST_F(PrivacyCommands, AuditAllCoversMechanismsAndReleases) {
  const json all = Answer({"audit", "--all", "--releases", "50", "--delta", "1e-6"});
  ASSERT_THAT(all, SizeIs(28));
  EXPECT_EQ(all[0]["mechanism"], "gaussian");
  EXPECT_EQ(all[11]["mechanism"], "joint release, gaussian");
  EXPECT_EQ(all[22]["mechanism"], "joint release, gaussian, 2 iterations");
  EXPECT_EQ(all[23]["mechanism"], "joint release, laplace, 40 iterations");
  EXPECT_EQ(all[24]["mechanism"], "cells");
  EXPECT_EQ(all[25]["mechanism"], "cells request");
  EXPECT_EQ(all[26]["mechanism"], "joint request, settings of a new collection");
  EXPECT_EQ(all[27]["mechanism"], "encrypted");
  for (const json& row : all) {
    const std::string name = row["mechanism"];
    EXPECT_EQ(row["proven"], name.find("published") == std::string::npos) << name;
    EXPECT_EQ(row["claimed_epsilon"], name == "encrypted" ? 0 : 2) << name;
    const bool takes_delta =
        name.find("gauss") != std::string::npos && name.find("bounded") == std::string::npos;
    EXPECT_EQ(row["claimed_delta"], takes_delta || row == all[23] || row == all[26] ? 1e-6 : 0)
        << name;
    EXPECT_LE(row["epsilon_lower"], row["claimed_epsilon"]) << row;
    EXPECT_EQ(row["exceeded"], false) << name;
    EXPECT_EQ(row["confidence"], .999999) << name;
    EXPECT_EQ(row["releases"], 50) << name;
  }
}

TEST(Audit, AllEstimatesItsTimeFirst) {
  const std::string estimate = "28 mechanisms with 1000000 releases each takes about";
  Program audit({PRIVATEMAIL, "audit", "--all"});
  EXPECT_TRUE(WaitUntil([&] { return audit.err().find(estimate) != std::string::npos; }));
  audit.Signal(SIGKILL);
  EXPECT_EQ(audit.Wait().out, "");
}

// The slot of the target is hidden: rows have the same names whichever it is.
TEST_F(PrivacyCommands, ExplainListsRowsWithoutTheSlot) {
  const auto explained = [this](const std::string& label) {
    const json answer =
        Answer(Query({"--row", "0", "--label", label, "--epsilon", "1", "--delta", "1e-5"}));
    const json said = Answer({"explain"});
    EXPECT_EQ(said["bytes"], answer["bytes"]["up"]);
    return said;
  };
  const json explained_0 = explained("0");
  const json& rows = explained_0["rows"];
  ASSERT_THAT(rows, SizeIs(kClasses + kClasses * kAnchorsPerClass));
  EXPECT_EQ(rows[0]["row"], "slot 0 (0)");
  EXPECT_EQ(rows[kClasses]["row"], "anchor 0");
  const std::string said =
      absl::StrCat("A matrix of ", rows.size(), " rows. This was prepared for the server");
  EXPECT_THAT(Run({"explain"}).out,
              AllOf(StartsWith(said), HasSubstr("-v shows the rows, and digests.")));
  EXPECT_THAT(Run({"explain", "-v"}).out, AllOf(StartsWith(said), Not(HasSubstr("-v shows"))));
  const json explained_3 = explained("3");
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_THAT(rows[i]["values"], SizeIs(2));
    EXPECT_EQ(rows[i]["row"], explained_3["rows"][i]["row"]);
  }
}

}  // namespace
}  // namespace privatemail::e2e
