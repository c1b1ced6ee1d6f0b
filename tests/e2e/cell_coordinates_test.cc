// Cells of a collection that hands out no item vectors (cell code `none`).
#include <filesystem>

#include "tests/e2e/service.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;

// At this epsilon the best cell is left out with a probability below 10^-15.
constexpr char kLarge[] = "40";

class CellCoordinates : public Service {
 protected:
  void SetUp() override {
    StartDaemon();
    Write("anchors", SeparatedClasses(kClasses * kAnchorsPerClass, 1));
    Write("gallery", SeparatedClasses(kItems, 2));
    Write("queries", SeparatedClasses(kClasses, 3));
    created_ =
        Answer({"collection", "create", "things", "--anchors", Vectors("anchors"),
                "--anchor-labels", Labels("anchors"), "--cells", "5", "--cell-code", "none"});
    Ingest("gallery");
    BuildAndWait(1);
    Grant(1000, .1);
  }

  // Waits until the anchors have coordinates of embedding `version`.
  void BuildAndWait(uint64_t version) const {
    Build();
    const std::string digest = Connect().GetCollection("things")->fingerprint();
    EXPECT_TRUE(WaitUntil([&] {
      return Connect().GetAnchors("things", digest)->front().embedding_version() == version;
    })) << "no coordinates of embedding "
        << version << ": " << Info();
  }

  static Command OfRow(const Command& command, const std::string& vectors, int row) {
    return Join(command, {"--vectors", vectors, "--row", std::to_string(row)});
  }
  // Asks for `items` items; for all of them, the answer depends on the ranking alone.
  Command Query(int row, const Command& more = {}, int items = kItems,
                const std::string& vectors = "queries") const {
    return Join(OfRow({"query", "things", "--scheme", "cells", "--items", std::to_string(items),
                       "--epsilon", kLarge},
                      Vectors(vectors), row),
                more);
  }

  static int MatchesOf(const json& answer, int label) {
    int matches = 0;
    for (const json& match : answer["matches"]) matches += match["label"] == label ? 1 : 0;
    return matches;
  }

  json created_;
};

TEST_F(CellCoordinates, QueryFindsTheClassWithOrWithoutLabel) {
  EXPECT_EQ(created_["cell_code"], "none");
  EXPECT_EQ(Info()["cells_state"], "ready: 200 items");
  for (int row = 0; row < kClasses; ++row) {
    const json guessed = Answer(Query(row));
    EXPECT_EQ(guessed["candidates"], kItems);
    EXPECT_EQ(guessed["label"], row);
    EXPECT_EQ(guessed["label_guessed"], true);
    EXPECT_EQ(guessed["embedding_version"], 1);
    EXPECT_LT(guessed["alignment"]["relative_residual"].get<double>(), .3);
    EXPECT_EQ(MatchesOf(guessed, row), 8);
    // Per item: an id of at most 3 bytes, a label, two floats, and protobuf's tags.
    EXPECT_LT(guessed["bytes"]["down"].get<int>(), kItems * (3 + 3 + 8) + 40);
  }
  const json told = Answer(Query(0, {"--label", "3"}));
  EXPECT_EQ(told["label"], 3);
  EXPECT_EQ(told["label_guessed"], false);
  EXPECT_EQ(MatchesOf(told, 3), 8) << "the label places the target";
  EXPECT_EQ(MatchesOf(Answer(Query(2, {"--labels", Labels("queries")})), 2), 8);
  ExpectRefused(Query(0, {"--label", "17"}), "INVALID_ARGUMENT", {"label must be one of"});
}

TEST_F(CellCoordinates, ResendAndRankUseTheLatestEmbeddingAtNoCost) {
  const json answer = Answer(Query(1, {"--label", "4"}));
  const json explained = Answer({"explain"});
  EXPECT_EQ(explained.count("label"), 0u) << "the label is not sent";
  EXPECT_EQ(explained["embedding_version"], 1);
  const auto with = [&](const Command& command) { return OfRow(command, Vectors("queries"), 1); };
  EXPECT_EQ(Answer(with({"resend", "--label", "4"}))["matches"], answer["matches"]);
  EXPECT_EQ(MatchesOf(Answer(with({"resend"})), 1), 8) << "guessed label";
  EXPECT_EQ(Budget()["left"]["epsilon"], 960);

  BuildAndWait(2);
  EXPECT_EQ(MatchesOf(Answer(with({"resend", "--label", "4"})), 4), 8);
}

// The client's own model has more columns, in reverse order.
TEST_F(CellCoordinates, ClientWithItsOwnModelFindsTheClass) {
  const auto other = [](Labelled rows) {
    FloatMatrix wide = FloatMatrix::Zero(rows.vectors.rows(), kFeatures + 5);
    wide.rightCols(kFeatures) = rows.vectors.rowwise().reverse();
    rows.vectors = wide;
    return rows;
  };
  Write("own_anchors", other(SeparatedClasses(kClasses * kAnchorsPerClass, 1)));
  Write("own_queries", other(SeparatedClasses(kClasses, 3)));
  const Command own = {"--own-anchors", Vectors("own_anchors")};
  for (const int row : {1, 4}) {
    const json answer = Answer(Query(row, own, kItems, "own_queries"));
    EXPECT_EQ(MatchesOf(answer, row), 8);
    EXPECT_EQ(Answer(Join(OfRow({"resend"}, Vectors("own_queries"), row), own))["matches"],
              answer["matches"]);
  }
  ExpectRefused(Query(0, own), "INVALID_ARGUMENT");  // another dimension
  Labelled wrong =
      other(SeparatedClasses(kClasses * kAnchorsPerClass, 17));  // of each class, but others
  Write("other_anchors", wrong);
  const Command others = {"--own-anchors", Vectors("other_anchors")};
  ExpectRefused(Query(1, others, kItems, "own_queries"), "FAILED_PRECONDITION",
                {"own_anchors do not seem to be the collection's anchors in their order",
                 "--accept-misalignment"});
  Answer(Query(1, Join(others, {"--accept-misalignment"}), kItems, "own_queries"));
  ExpectRefused(Query(0, {"--own-anchors", Vectors("own_queries")}), "INVALID_ARGUMENT",
                {"--own-anchors must be 40 rows"});
  ExpectRefused(OfRow({"query", "things", "--label", "0", "--epsilon", "1", "--delta", "1e-5",
                       "--own-anchors", Vectors("anchors")},
                      Vectors("queries"), 0),
                "INVALID_ARGUMENT", {"--own-anchors is of no use with --scheme joint"});
}

}  // namespace
}  // namespace privatemail::e2e
