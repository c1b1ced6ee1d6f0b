// The anchored scheme through both programs.
#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Anchored : public FilledService {
 protected:
  void SetUp() override {
    FilledService::SetUp();
    Grant(1000, .1);
  }

  Command AnchoredQuery(const Command& more) const {
    return Query(Join({"--scheme", "anchored", "--epsilon", "1", "-k", "8"}, more));
  }

  json ExplainedRows() const { return Answer({"explain"})["rows"]; }
};

TEST_F(Anchored, QueryFindsTheClassAndReportsItsGuarantee) {
  for (int row = 0; row < kClasses; ++row) {
    const json answer = Answer(AnchoredQuery(
        {"--row", std::to_string(row), "--label", std::to_string(row), "--delta", "1e-5"}));
    ASSERT_THAT(answer["matches"], SizeIs(8));
    for (const json& match : answer["matches"]) EXPECT_EQ(match["label"], row);
    EXPECT_EQ(answer["guarantee"]["neighbours"],
              "the target, feature and class, replaced by any other usable target");
    EXPECT_EQ(answer["guarantee"]["proven"], true);
    EXPECT_EQ(answer["guarantee"]["epsilon"], 1);
    EXPECT_EQ(answer["guarantee"]["delta"], 1e-5);
    EXPECT_EQ(answer["radius_meaning"], nullptr);
    EXPECT_LT(answer["alignment"]["relative_residual"], .1);
  }
  EXPECT_EQ(Budget()["spent"]["epsilon"], kClasses);
}

TEST_F(Anchored, ReleasesShareAnchorRowsAndDifferInSlots) {
  const Command query = {"--row", "0", "--label", "0", "--delta", "1e-5"};
  Answer(AnchoredQuery(query));
  const json explained = Answer({"explain"});
  EXPECT_EQ(explained["scheme"], "anchored");
  EXPECT_EQ(explained["post_processing_steps"], 0);
  const json one = explained["rows"];
  ASSERT_THAT(one, SizeIs(kClasses + kClasses * kAnchorsPerClass));
  Answer(AnchoredQuery({"--row", "3", "--label", "3", "--delta", "1e-5"}));
  const json two = ExplainedRows();
  for (int i = 0; i < std::ssize(one); ++i) {
    EXPECT_EQ(one[i]["row"], two[i]["row"]);
    if (i < kClasses) {
      EXPECT_NE(one[i]["values"], two[i]["values"]) << i;
    } else {
      EXPECT_EQ(one[i]["values"], two[i]["values"]) << i;
    }
  }
  EXPECT_THAT(Run({"explain"}).out, HasSubstr("release      45 x 2, anchored: "));
  Answer(Query({"--epsilon", "1", "--delta", "1e-5", "--row", "0", "--label", "0"}));
  EXPECT_EQ(Answer({"explain"})["scheme"], "joint");
}

TEST_F(Anchored, ResendCostsNothing) {
  const json answer = Answer(AnchoredQuery({"--row", "1", "--label", "1", "--delta", "1e-5"}));
  const json budget = Budget();
  const json again = Answer({"resend", "--label", "1"});
  EXPECT_EQ(again["matches"], answer["matches"]);
  EXPECT_EQ(again["scheme"], "anchored");
  EXPECT_EQ(Budget(), budget);
  ExpectRefused({"resend", "--vectors", Vectors("queries"), "--row", "1"}, "INVALID_ARGUMENT",
                {"the last release was of the anchored scheme; give --label"});
}

TEST_F(Anchored, RadiusIsExplainedByPairsOfAnchors) {
  const Command near = {"--row",    "2",  "--label",     "2",
                        "--radius", ".7", "--mechanism", "lap-output"};
  const json answer = Answer(AnchoredQuery(near));
  EXPECT_EQ(answer["guarantee"]["radius"], .7);
  EXPECT_EQ(answer["guarantee"]["delta"], 0);
  EXPECT_THAT(answer["guarantee"]["neighbours"].get<std::string>(),
              HasSubstr("at most 0.7 away (any others within 5 such steps: 5 times epsilon"));
  // 5 classes of 8 anchors: 28 pairs of each class, 64 of each of ten pairs of classes.
  EXPECT_EQ(answer["radius_meaning"], (json{{"radius", .7},
                                            {"pairs_of_one_class", 140},
                                            {"closer_of_one_class", 140},
                                            {"pairs_of_two_classes", 640},
                                            {"closer_of_two_classes", 0}}));
  EXPECT_THAT(Run(AnchoredQuery(near)).out, HasSubstr("of the anchors closer than 0.7: "));
  EXPECT_EQ(Answer(Query(Join({"--epsilon", "1"}, near)))["radius_meaning"],
            answer["radius_meaning"]);
}

TEST_F(Anchored, MechanismsAndFlagsOfOtherSchemesAreRefused) {
  const auto with = [&](const Command& more) {
    return AnchoredQuery(Join({"--row", "0", "--label", "0"}, more));
  };
  EXPECT_EQ(Answer(with({"--mechanism", "laplace"}))["guarantee"]["delta"], 0);
  EXPECT_EQ(Answer(with({"--mechanism", "bounded-gaussian"}))["guarantee"]["delta"], 0);
  for (const Command& wrong :
       std::vector<Command>{{"--mechanism", "gauss-input", "--delta", "1e-5", "--radius", "1"},
                            {"--mechanism", "published-gaussian", "--delta", "1e-5"},
                            {"--mechanism", "lap-output"},
                            {"--delta", "1e-5", "--radius", "1"}}) {
    ExpectRefused(with(wrong), "INVALID_ARGUMENT");
  }
  for (const Command& foreign : std::vector<Command>{{"--private-iterations", "2"},
                                                     {"--post-process", "server"},
                                                     {"--ask", "2"},
                                                     {"--items", "20"}}) {
    ExpectRefused(with(Join({"--delta", "1e-5"}, foreign)), "INVALID_ARGUMENT", {foreign[0]});
  }
  // A label that is not hidden must not be derived from the hidden feature.
  ExpectRefused(AnchoredQuery({"--row", "0", "--mechanism", "lap-output", "--radius", "1"}),
                "INVALID_ARGUMENT", {"--label"});
  EXPECT_EQ(Answer(AnchoredQuery({"--row", "0", "--delta", "1e-5"}))["label_guessed"], true);
}

TEST_F(Anchored, BatchTakesPayloadsDummiesAndAReport) {
  Write("dummies", SeparatedClasses(kClasses, 9));
  const std::string report = folder_ / "report.html";
  const Outcome outcome = Run(AnchoredQuery(
      {"--rows", "0,1", "--labels", Labels("queries"), "--delta", "1e-5", "--payloads", "--dummies",
       Vectors("dummies"), "--dummy-labels", Labels("dummies"), "--report", report, "--json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_THAT(outcome.lines(), SizeIs(2));
  EXPECT_EQ(Budget()["spent"]["epsilon"], 2);
}

}  // namespace
}  // namespace privatemail::e2e
