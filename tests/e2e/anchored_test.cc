// The anchored scheme through both programs.
#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
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
              "the target, feature and class, replaced by any other target");
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
  EXPECT_NE(Answer({"resend", "--label", "2"})["matches"], answer["matches"]);
  EXPECT_EQ(Budget(), budget);
  ExpectRefused({"resend", "--vectors", Vectors("queries"), "--row", "1"}, "INVALID_ARGUMENT",
                {"the last release was of the anchored scheme; give --label"});
}

// Pairs are counted independently, from the anchors' file.
TEST_F(Anchored, RadiusIsExplainedByPairsOfAnchors) {
  const Labelled anchors = SeparatedClasses(kClasses * kAnchorsPerClass, 1);
  Matrix units = anchors.vectors.cast<double>();
  units.rowwise().normalize();
  int64_t pairs[2] = {0, 0};
  int64_t close[2] = {0, 0};
  for (int i = 0; i < units.rows(); ++i) {
    for (int j = 0; j < i; ++j) {
      const int two_classes = anchors.labels[i] == anchors.labels[j] ? 0 : 1;
      ++pairs[two_classes];
      close[two_classes] += (units.row(i) - units.row(j)).norm() <= .7 ? 1 : 0;
    }
  }
  const Command near = {"--row", "2", "--label", "2", "--radius", ".7"};
  for (const std::string mechanism : {"lap-output", "gauss-output"}) {
    Command query = Join(AnchoredQuery(near), {"--mechanism", mechanism});
    if (mechanism == "gauss-output") query = Join(query, {"--delta", "1e-5"});
    const json answer = Answer(query);
    EXPECT_EQ(answer["guarantee"]["radius"], .7);
    EXPECT_EQ(answer["guarantee"]["delta"], mechanism == "gauss-output" ? 1e-5 : 0);
    EXPECT_THAT(answer["guarantee"]["neighbours"].get<std::string>(),
                HasSubstr("at most 0.7 away; the class is not hidden"));
    EXPECT_EQ(answer["radius_meaning"], (json{{"radius", .7},
                                              {"pairs_of_one_class", pairs[0]},
                                              {"closer_of_one_class", close[0]},
                                              {"pairs_of_two_classes", pairs[1]},
                                              {"closer_of_two_classes", close[1]}}));
    EXPECT_THAT(answer["matches"], SizeIs(8));
    EXPECT_THAT(Run(query).out, HasSubstr("of the anchors closer than 0.7: "));
  }
  const json joint = Answer(Query({"--epsilon", "1", "--row", "2", "--label", "2", "--radius", ".7",
                                   "--mechanism", "lap-output"}));
  EXPECT_EQ(joint["radius_meaning"]["closer_of_one_class"], close[0]);
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
