// The cells scheme through both programs.
#include <filesystem>
#include <set>

#include "tests/e2e/service.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// At this epsilon the best cell is left out with a probability below 10^-15.
constexpr char kLargeEpsilon[] = "40";

class Cells : public Service {
 protected:
  void SetUp() override {
    StartDaemon();
    Write("anchors", SeparatedClasses(kClasses * kAnchorsPerClass, 1));
    Write("gallery", SeparatedClasses(kItems, 2));
    created_ = Answer(Create("things", "anchors", {"--cells", "5,8", "--cell-code", "float16"}));
    Ingest("gallery");
    Build();
    WaitUntilReady("things");
    Grant(1000, .1);
  }

  Command Create(const std::string& name, const std::string& anchors, const Command& more) const {
    return Join({"collection", "create", name, "--anchors", Vectors(anchors), "--anchor-labels",
                 Labels(anchors)},
                more);
  }

  void FillAndBuild(const std::string& name) const {
    Answer({"ingest", name, "--vectors", Vectors("gallery"), "--labels", Labels("gallery")});
    Answer({"build", name});
  }

  void WaitUntilReady(const std::string& name) const {
    ASSERT_TRUE(WaitUntil([&]() -> bool {
      return Answer({"collection", "info", name})["cells_ready"];
    }));
  }

  // `command` with the target that a row of the gallery is.
  Command OfRow(const Command& command, const std::string& row) const {
    return Join(command, {"--vectors", Vectors("gallery"), "--row", row});
  }
  Command Query(const std::string& row, const Command& more) const {
    return Join(OfRow({"query", "things", "--scheme", "cells"}, row), more);
  }

  json created_;
};

TEST_F(Cells, QueryAndResendFindTheTarget) {
  EXPECT_EQ(created_["cells"], (json{5, 8}));
  EXPECT_EQ(created_["cell_code"], "float16");
  EXPECT_EQ(Info()["cells_state"], "ready: 200 items");

  const json answer = Answer(
      Query("17", {"--partition", "1", "--epsilon", kLargeEpsilon, "--items", "80", "-k", "5"}));
  ASSERT_THAT(answer["matches"], SizeIs(5));
  EXPECT_EQ(answer["matches"][0]["id"], "17");
  EXPECT_LT(answer["matches"][0]["squared_distance"].get<double>(), 1e-5);
  EXPECT_EQ(answer["partition"], 1);
  EXPECT_THAT(answer["cells"], SizeIs(1));
  EXPECT_EQ(answer["candidates"], 80);
  EXPECT_EQ(answer["guarantee"]["epsilon"], 40);
  EXPECT_EQ(answer["guarantee"]["delta"], 0);
  EXPECT_EQ(answer["guarantee"]["proven"], true);
  EXPECT_EQ(answer["ledger"]["spent"], (json{{"epsilon", 40}, {"delta", 0}}));
  EXPECT_LT(answer["bytes"]["up"].get<int>(), 100);
  EXPECT_GT(answer["bytes"]["down"].get<int>(), 80 * 2 * kFeatures);

  const json explained = Answer({"explain"});
  EXPECT_EQ(explained["cells"], answer["cells"]);
  EXPECT_EQ(explained["bytes"], answer["bytes"]["up"]);
  EXPECT_EQ(explained["items"], 80);
  const std::set<std::string> expected = {"collection",    "digest", "scheme",  "partition",
                                          "of_cells",      "cells",  "epsilon", "items",
                                          "with_payloads", "bytes"};
  std::set<std::string> keys;
  for (const auto& [key, value] : explained.items()) keys.insert(key);
  EXPECT_EQ(keys, expected);

  const json again = Answer(OfRow({"resend", "-k", "5"}, "17"));
  EXPECT_EQ(again["matches"], answer["matches"]);
  EXPECT_EQ(again["cells"], answer["cells"]);
  EXPECT_EQ(Budget()["left"]["epsilon"], 960);
  EXPECT_THAT(answer["warnings"], ::testing::ElementsAre(HasSubstr("spends epsilon 40")));
  EXPECT_THAT(Answer(Query("17", {"--epsilon", "1", "--items", "201"}))["warnings"], SizeIs(1));
}

TEST_F(Cells, UnsavedReleaseIsNotCharged) {
  std::filesystem::create_directory(user_.state + "/last_release.pb");
  ExpectRefused(Query("0", {"--epsilon", "1", "--items", "20"}), "INVALID_ARGUMENT");
}

TEST_F(Cells, ResendRequiresTargetOfLastScheme) {
  Answer(Query("0", {"--epsilon", "1", "--items", "10"}));
  ExpectRefused({"resend", "--label", "1"}, "INVALID_ARGUMENT", {"--vectors must be given again"});
  ExpectRefused({"resend", "--vectors", Vectors("gallery"), "--rows", "1,2"}, "INVALID_ARGUMENT",
                {"but is 2"});
  Answer(OfRow({"query", "things", "--label", "0", "--epsilon", "1", "--delta", "1e-5"}, "0"));
  ExpectRefused({"resend"}, "INVALID_ARGUMENT", {"--label must be given with the scheme joint"});
  Answer({"resend", "--label", "1"});
}

TEST_F(Cells, PlanWithoutPublishedQualitySaysWhy) {
  ExpectRefused({"plan", "things"}, "FAILED_PRECONDITION",
                {"collection things publishes no quality of cells", "publish_quality"});
  ExpectRefused(Query("1", {"--epsilon", "1"}), "INVALID_ARGUMENT",
                {"--items must be given", "publish_quality"});
  Answer(Create("few", "anchors", {"--cells", "4", "--publish-quality"}));
  ExpectRefused(
      {"plan", "few"}, "FAILED_PRECONDITION",
      {"embedding of collection few is not built yet; `privatemail build few` builds it"});
  FillAndBuild("few");
  WaitUntilReady("few");
  ExpectRefused({"plan", "few"}, "FAILED_PRECONDITION", {"from 1000 items on", "few has 200"});
}

class PlannedCells : public Cells {
 protected:
  static constexpr int kMany = 1100;

  void SetUp() override {
    constexpr int kColumns = 16;
    StartDaemon();
    Write("anchors", SeparatedClasses(kClasses * kAnchorsPerClass, 1, kColumns));
    Write("gallery", SeparatedClasses(kMany, 2, kColumns));
    created_ = Answer(Create("things", "anchors", {"--cells", "5,8", "--publish-quality"}));
    FillAndBuild("things");
    ASSERT_TRUE(WaitUntil([&] { return Run({"plan", "things"}).exit_code == 0; })) << "measured";
    Grant(1000, .1);
  }
};

TEST_F(PlannedCells, QueryFollowsItsPlan) {
  const std::string plan = folder_ / "plan.json";
  const json before = Everything();
  const json planned = Answer({"plan", "things", "--epsilon", kLargeEpsilon, "--max-bytes", "100K",
                               "--fidelity", ".5", "--recall", ".9", "--out", plan});
  EXPECT_EQ(planned["of_items"], kMany);
  EXPECT_EQ(planned["measured_queries"], kMany);
  EXPECT_EQ(planned["fulfils"], true);
  EXPECT_EQ(planned["guarantee"]["epsilon"], 40);
  EXPECT_EQ(planned["guarantee"]["proven"], true);
  EXPECT_GE(planned["fidelity"]["value"].get<double>(), .5);
  EXPECT_EQ(Everything(), before);
  EXPECT_THAT(Run({"plan", "things", "--epsilon", "1", "--max-bytes", "100K"}).out,
              AllOf(HasSubstr("\nbytes       down "), Not(HasSubstr("assumed"))));

  const Command query = OfRow({"query", "things", "--plan", plan}, "17");
  const json answer = Answer(query);
  EXPECT_EQ(answer["partition"], planned["partition"]);
  EXPECT_EQ(answer["candidates"], planned["items"]);
  EXPECT_EQ(answer["guarantee"], planned["guarantee"]);
  EXPECT_EQ(answer["matches"][0]["label"], 17 % kClasses);
  EXPECT_LE(answer["bytes"]["down"], planned["bytes"]["down"]);
  EXPECT_EQ(Budget()["left"]["epsilon"], 960);
  EXPECT_THAT(Answer(Join(query, {"-k", "3"}))["matches"], SizeIs(3)) << "k is not released";

  ExpectRefused(Join(query, {"--epsilon", "1"}), "INVALID_ARGUMENT", {"--epsilon"});

  // Without a plan items have a default, as many for each cell.
  const json few = Answer(Query("17", {"--epsilon", kLargeEpsilon}));
  EXPECT_LE(few["candidates"], kMany / 2);
  const json twice =
      Answer(Query("18", {"--epsilon", kLargeEpsilon, "--ask", "2", "--focus", "2"}));
  EXPECT_GT(twice["candidates"], few["candidates"]);
  ASSERT_THAT(Answer({"plan", "things"})["table"], SizeIs(12)) << "30 KB hold half of the gallery";
}

TEST_F(PlannedCells, UnreachablePlanReportsCeilingAndIsNotWritten) {
  const std::string plan = folder_ / "plan.json";
  const Command command = {"plan", "things",      "--epsilon", ".5",    "--fidelity",
                           ".8",   "--max-bytes", "20K",       "--out", plan};
  const Outcome told = Run(Join(command, {"--json"}));
  EXPECT_EQ(told.exit_code, 1) << told.err;
  EXPECT_FALSE(std::filesystem::exists(plan));
  const json answer = told.json();
  EXPECT_THAT(answer["ceiling"]["words"].get<std::string>(),
              HasSubstr("f e^epsilon / (1 + f (e^epsilon - 1)) = "));
  EXPECT_EQ(answer["fulfils"], false);
  ExpectRefused({"plan", "things", "--epsilon", "1", "--max-bytes", "2Q"}, "INVALID_ARGUMENT",
                {"--max-bytes must be a number of bytes"});
  ExpectRefused({"plan", "things", "--epsilon", "1", "--out", "/dev/null"}, "INVALID_ARGUMENT",
                {"--out /dev/null is no regular file"});
  ExpectRefused({"plan", "things", "--max-bytes", "1M"}, "INVALID_ARGUMENT",
                {"--epsilon must be given"});
}

}  // namespace
}  // namespace privatemail::e2e
