// Every command of a user, with valid input.
#include <tuple>

#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

int CountOf(const json& matches, int label) {
  int count = 0;
  for (const json& match : matches) count += match["label"] == label ? 1 : 0;
  return count;
}

class NewService : public Service {
 protected:
  void SetUp() override { StartDaemon(); }
};

TEST_F(NewService, CreateIngestBuildQueryAndDelete) {
  EXPECT_THAT(Answer({"collection", "list"}), IsEmpty());
  Write("anchors", SeparatedClasses(kClasses * kAnchorsPerClass, 1));
  const json created =
      Answer({"collection", "create", "things", "--anchors", Vectors("anchors"), "--anchor-labels",
              Labels("anchors"), "--alpha", "12", "--dim", "3", "--steps", "4", "--bandwidth", "5",
              "--label-graph", "distance", "--kernel", "two_sigma_squared"});
  EXPECT_EQ(created["anchors"], kClasses * kAnchorsPerClass);
  EXPECT_EQ(created["embedding_dim"], 3);
  EXPECT_EQ(created["steps"], 4);
  EXPECT_EQ(created["kernel_bandwidth"], 5);

  Write("gallery", SeparatedClasses(kItems, 2));
  EXPECT_EQ(Ingest("gallery"), (json{{"acknowledged", kItems},
                                     {"inserted", kItems},
                                     {"updated", 0},
                                     {"unchanged", 0},
                                     {"rejected", 0},
                                     {"reasons", json::array()}}));
  const json built = Answer({"build", "things"});
  EXPECT_EQ(built["embedded"], kItems);
  EXPECT_EQ(built["version"], 1);

  EXPECT_TRUE(Budget()["granted"].is_null());
  json budget = Answer({"budget", "set", "things", "--epsilon", "40", "--delta", ".1"});
  EXPECT_EQ(budget["granted"], (json{{"epsilon", 40}, {"delta", .1}}));
  EXPECT_EQ(budget["left"], budget["granted"]);
  budget.erase("warnings");  // of an epsilon above 20
  EXPECT_EQ(Budget(), budget);

  const json answer = Answer({"query", "things", "--vectors", Vectors("gallery"), "--row", "2",
                              "--label", "2", "-k", "5", "--epsilon", "40", "--delta", "1e-5"});
  EXPECT_EQ(CountOf(answer["matches"], 2), 5) << answer;
  EXPECT_EQ(Budget()["left"]["epsilon"], 0);

  json info = Info();
  EXPECT_EQ(info["embedded"], kItems);
  EXPECT_EQ(info["alignment"]["expected_recall"], 1);
  for (const char* beside : {"changes", "alignment", "labels"})
    info.erase(beside);  // not in a list
  EXPECT_EQ(Answer({"collection", "list"}), json::array({info}));
  const auto shown = [&](const Command& command) { return Run(command).out; };
  for (const std::string& brief :
       {shown({"collection", "info", "things"}), shown({"build", "things"})}) {
    EXPECT_THAT(brief, AllOf(HasSubstr("expected recall"), Not(HasSubstr("residual"))));
  }
  EXPECT_THAT(shown({"collection", "info", "things", "-v"}), HasSubstr("residual"));
  EXPECT_EQ(Answer({"collection", "delete", "things", "--yes"}), (json{{"deleted_items", kItems}}));
  EXPECT_THAT(Answer({"collection", "list"}), IsEmpty());
}

// The client's own model has more columns, in reverse order.
TEST_F(FilledService, QueryByAnotherModelFindsTheClass) {
  const auto query = [&](unsigned seed_of_anchors, const std::string& row, const Command& more) {
    for (const auto& [name, rows, seed] :
         {std::tuple{"own_queries", kClasses, 3U},
          {"own_anchors", kClasses * kAnchorsPerClass, seed_of_anchors}}) {
      Labelled other = SeparatedClasses(rows, seed);
      FloatMatrix wide = FloatMatrix::Zero(rows, kFeatures + 5);
      wide.rightCols(kFeatures) = other.vectors.rowwise().reverse();
      other.vectors = wide;
      Write(name, other);
    }
    return Join({"query", "things", "--vectors", Vectors("own_queries"), "--own-anchors",
                 Vectors("own_anchors"), "--row", row, "--epsilon", "20", "--delta", "1e-5"},
                more);
  };
  const json guessed = Answer(query(1, "1", {}));
  EXPECT_EQ(CountOf(guessed["matches"], 1), 8) << guessed;
  const json told = Answer(query(1, "4", {"--label", "4"}));
  EXPECT_EQ(CountOf(told["matches"], 4), 8) << told;
  EXPECT_EQ(CountOf(Answer({"resend", "--label", "4"})["matches"], 4), 8);
  const Command wrong = query(17, "1", {});
  ExpectRefused(
      wrong, "FAILED_PRECONDITION",
      {"--own-anchors must be the collection's anchors in their order", "--accept-misalignment"});
  Answer(Join(wrong, {"--accept-misalignment"}));
}

TEST_F(FilledService, LabelDashReadsStandardInput) {
  const Command query = Query(
      {"--rows", "2,4", "--label", "-", "--epsilon", "20", "--delta", "1e-5", "-k", "4", "--json"});
  const Outcome outcome =
      Program(Join({"/bin/sh", "-c", "printf '2\n4\n' | \"$@\"", "sh"}, user_.CommandLine(query)))
          .Wait();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_THAT(outcome.lines(), SizeIs(2));
  for (int i : {0, 1}) {
    EXPECT_EQ(outcome.lines()[i]["label"], 2 * (i + 1));
    EXPECT_EQ(outcome.lines()[i]["label_guessed"], false);
  }
  // Empty standard input does not mean that the label is guessed.
  ExpectRefused(query, "INVALID_ARGUMENT", {"--label must be the number or name of a label"});
}

}  // namespace
}  // namespace privatemail::e2e
