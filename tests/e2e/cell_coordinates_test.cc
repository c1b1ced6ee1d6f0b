// Cells of a collection that lets no vector out, as a user meets them.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "privatemail/cell_client.h"
#include "privatemail/bit_source.h"
#include "tests/e2e/service.h"
#include "tests/testing/matchers.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Below 10^-15 at this epsilon: that the best cell is not asked for.
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

  // Until the anchors have coordinates of this embedding.
  void BuildAndWait(uint64_t version) const {
    Build();
    const std::string digest = Connect().GetCollection("things")->fingerprint();
    for (int i = 0; i < 600; ++i) {
      if (Connect().GetAnchors("things", digest)->front().embedding_version() == version) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << "no coordinates of embedding " << version << ": " << Info();
  }

  // For all items, so that what is found depends on the ranking alone.
  std::vector<std::string> Query(int row, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {
        "query",    "things", "--vectors", Vectors("queries"),     "--row",     std::to_string(row),
        "--scheme", "cells",  "--items",   std::to_string(kItems), "--epsilon", kLarge};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }

  static int MatchesOf(const json& answer, int label) {
    int matches = 0;
    for (const json& match : answer["matches"]) matches += match["label"] == label ? 1 : 0;
    return matches;
  }

  json created_;
};

TEST_F(CellCoordinates, FindTheClassWithALabelOrWithoutAndSendNoCode) {
  EXPECT_EQ(created_["cell_code"], "none");
  EXPECT_EQ(Info()["cells_state"], "ready: 200 items");
  EXPECT_THAT(Run({"collection", "info", "things"}).out,
              HasSubstr("cells 5, items as coordinates of the embedding (code none) for whoever "
                        "may search; ready: 200 items"));
  for (int row = 0; row < kClasses; ++row) {
    const json guessed = Answer(Query(row));
    EXPECT_EQ(guessed["candidates"], kItems);
    EXPECT_EQ(guessed["label"], row);
    EXPECT_EQ(guessed["label_guessed"], true);
    EXPECT_EQ(guessed["embedding_version"], 1);
    EXPECT_LT(guessed["alignment"]["relative_residual"].get<double>(), .3);
    EXPECT_EQ(MatchesOf(guessed, row), 8);
    // An id of 3 bytes at most, a label, two floats and what protobuf puts around them.
    EXPECT_LT(guessed["bytes"]["down"].get<int>(), kItems * (3 + 3 + 8) + 40);
  }
  const json told = Answer(Query(0, {"--label", "3"}));
  EXPECT_EQ(told["label"], 3);
  EXPECT_EQ(told["label_guessed"], false);
  EXPECT_EQ(MatchesOf(told, 3), 8) << "the class says where a target lies";
  EXPECT_THAT(Run(Query(0, {"--label", "3"})).out,
              HasSubstr("ranked by coordinates of embedding 1, placed as of class 3; alignment"));
  const json file = Answer(Query(2, {"--labels", Labels("queries")}));
  EXPECT_EQ(MatchesOf(file, 2), 8);
  ExpectRefused(Query(0, {"--label", "17"}), "INVALID_ARGUMENT", {"label must be one of"});
}

TEST_F(CellCoordinates, AreSentAgainAndRankedAgainForNothing) {
  const json answer = Answer(Query(1, {"--label", "4"}));
  const json explained = Answer({"explain"});
  EXPECT_EQ(explained.count("label"), 0u) << "it stays here";
  EXPECT_EQ(explained["embedding_version"], 1);
  const std::vector<std::string> target = {"--vectors", Vectors("queries"), "--row", "1"};
  const auto with = [&](std::vector<std::string> command) {
    command.insert(command.end(), target.begin(), target.end());
    return command;
  };
  EXPECT_EQ(Answer(with({"resend", "--label", "4"}))["matches"], answer["matches"]);
  EXPECT_EQ(MatchesOf(Answer(with({"resend"})), 1), 8) << "guessed";
  daemon_->program().Signal(SIGSTOP);
  const json ranked = Answer(with({"rank", "things", "--label", "4"}));
  const json guessed = Answer(with({"rank", "things"}));
  daemon_->program().Signal(SIGCONT);
  EXPECT_EQ(ranked["matches"], answer["matches"]);
  EXPECT_EQ(ranked["candidates"], kItems);
  EXPECT_EQ(MatchesOf(guessed, 1), 8);
  EXPECT_EQ(Budget()["left"]["epsilon"], 960);

  // After another build what is kept is of it alone.
  BuildAndWait(2);
  EXPECT_EQ(Answer(with({"rank", "things", "--label", "4"}))["matches"], answer["matches"]);
  const json again = Answer(with({"resend", "--label", "4"}));
  EXPECT_EQ(MatchesOf(again, 4), 8);
  EXPECT_EQ(Answer(with({"rank", "things", "--label", "4"}))["matches"], again["matches"]);
  BuildAndWait(3);
  std::vector<std::string> few = Query(2);
  few[9] = "40";
  EXPECT_EQ(Answer(few)["embedding_version"], 3);
  EXPECT_EQ(Answer(with({"rank", "things"}))["candidates"], 40);
}

// Its embeddings are counted from 1 again, which says nothing of what was kept of the former ones.
TEST_F(CellCoordinates, OfARestoredCollectionAreItsOwn) {
  const std::string file = folder_ / "things.snapshot";
  Answer(Query(0));
  Answer({"snapshot", "things", "--out", file});
  Answer({"collection", "delete", "things"});
  Answer({"restore", "things", "--in", file, "--no-build"});
  Write("more", SeparatedClasses(2 * kItems, 9));
  Ingest("more");
  BuildAndWait(1);
  std::vector<std::string> all = Query(0);
  all[9] = std::to_string(2 * kItems);
  const json answer = Answer(all);
  EXPECT_EQ(answer["embedding_version"], 1);
  EXPECT_EQ(answer["candidates"], 2 * kItems);
  const json ranked = Answer({"rank", "things", "--vectors", Vectors("queries"), "--row", "0"});
  EXPECT_EQ(ranked["matches"], answer["matches"]);
  EXPECT_EQ(ranked["candidates"], 2 * kItems);
}

// The client's model: other columns, in another order.
TEST_F(CellCoordinates, ServeAClientWithAModelOfItsOwn) {
  const auto other = [](Labelled rows) {
    FloatMatrix wide = FloatMatrix::Zero(rows.vectors.rows(), kFeatures + 5);
    wide.rightCols(kFeatures) = rows.vectors.rowwise().reverse();
    rows.vectors = wide;
    return rows;
  };
  Write("own_anchors", other(SeparatedClasses(kClasses * kAnchorsPerClass, 1)));
  Write("own_queries", other(SeparatedClasses(kClasses, 3)));
  const std::vector<std::string> own = {"--own-anchors", Vectors("own_anchors")};
  for (int row = 0; row < kClasses; ++row) {
    std::vector<std::string> command = Query(row, own);
    command[3] = Vectors("own_queries");
    const json answer = Answer(command);
    EXPECT_EQ(MatchesOf(answer, row), 8);
    const std::vector<std::string> target = {"--vectors",     Vectors("own_queries"),
                                             "--row",         std::to_string(row),
                                             "--own-anchors", Vectors("own_anchors")};
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"resend"}, {"rank", "things"}}) {
      std::vector<std::string> again = words;
      again.insert(again.end(), target.begin(), target.end());
      EXPECT_EQ(Answer(again)["matches"], answer["matches"]) << words[0];
    }
  }
  ExpectRefused(Query(0, own), "INVALID_ARGUMENT",
                {"query has the wrong dimension: expected 69, got 64"});
  ExpectRefused(Query(0, {"--own-anchors", Vectors("own_queries")}), "INVALID_ARGUMENT",
                {"--own-anchors must be 40 rows, one an anchor, but are 5"});
  ExpectRefused({"query", "things", "--vectors", Vectors("queries"), "--row", "0", "--label", "0",
                 "--epsilon", "1", "--delta", "1e-5", "--own-anchors", Vectors("anchors")},
                "INVALID_ARGUMENT", {"--own-anchors is of no use with --scheme joint"});
}

TEST_F(CellCoordinates, OfABuildInBetweenAreNoticedAndTheSameCellsAnswerAtNoCost) {
  const Transport transport = Connect();
  const auto things = *transport.GetCollection("things");
  const auto fetch = [&] { return *transport.GetAnchors("things", things.fingerprint()); };
  const auto ask = [&](const v1::RetrieveCellsRequest& request) {
    return *transport.RetrieveCells(request, [&] {
      return [limit = CellAnswerLimit(*FromProto(things.parameters()), request)](
                 const v1::RetrieveCellsResponse& message) mutable { return limit.Add(message); };
    });
  };
  ASSERT_OK_AND_ASSIGN(const CellClient client, CellClient::Create(things, fetch()));
  const Eigen::RowVectorXf query = SeparatedClasses(kClasses, 3).vectors.row(2);
  const auto ledger = *Ledger::Open(folder_ / "ledger");
  ASSERT_THAT(ledger->Grant(things.parameters().collection_uuid(), {100, .1}), IsOk());
  SecureBits bits;
  const CellQueryOptions options{.cost = {.epsilon = 40}, .items = 60};
  ASSERT_OK_AND_ASSIGN(const PreparedCellQuery prepared,
                       client.Prepare(query, options, *ledger, bits));
  ASSERT_OK_AND_ASSIGN(const CellQueryResult before,
                       client.Finish(prepared, ask(prepared.request)));
  EXPECT_THAT(before.matches, SizeIs(8));

  BuildAndWait(2);
  const auto answer = ask(prepared.request);
  EXPECT_THAT(client.Finish(prepared, answer),
              FailsWith(absl::StatusCode::kAborted,
                        "embedding_version of the answer is 2, but that of the anchors 1"));
  ASSERT_OK_AND_ASSIGN(const CellClient later, CellClient::Create(things, fetch()));
  ASSERT_OK_AND_ASSIGN(const CellTarget target, later.targets().Make(query, 8));
  ASSERT_OK_AND_ASSIGN(const CellQueryResult after,
                       ReadCellAnswer(later.parameters(), prepared.request, target, answer));
  EXPECT_THAT(after.matches, SizeIs(8));
  EXPECT_EQ(ledger->Show(things.parameters().collection_uuid())->spent().epsilon, 40);
}

TEST_F(CellCoordinates, AreNotPlannedFor) {
  const std::string plan = folder_ / "plan.json";
  const Outcome refused =
      Run({"plan", "things", "--epsilon", kLarge, "--max-bytes", "100K", "--out", plan});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("is not foreseen where cell_code is none"));
  EXPECT_FALSE(std::filesystem::exists(plan));
}

}  // namespace
}  // namespace privatemail::e2e
