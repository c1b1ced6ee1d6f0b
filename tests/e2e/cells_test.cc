// The cells scheme as a user meets it, through both programs.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// Below 10^-15 at this epsilon: that the best cell is not asked for.
constexpr char kLarge[] = "40";

class Cells : public Service {
 protected:
  void SetUp() override {
    StartDaemon();
    Write("anchors", SeparatedClasses(kClasses * kAnchorsPerClass, 1));
    Write("gallery", SeparatedClasses(kItems, 2));
    created_ =
        Answer({"collection", "create", "things", "--anchors", Vectors("anchors"),
                "--anchor-labels", Labels("anchors"), "--cells", "5,8", "--cell-code", "float16"});
    Ingest("gallery");
    Build();
    for (int i = 0; i < 600 && !Info()["cells_ready"]; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    Grant(1000, .1);
  }

  std::vector<std::string> Query(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {"query",    "things", "--vectors", Vectors("gallery"),
                                        "--scheme", "cells"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }

  static std::vector<std::string> Ids(const json& answer) {
    std::vector<std::string> ids;
    for (const json& match : answer["matches"]) ids.push_back(match["id"]);
    return ids;
  }

  json created_;
};

TEST_F(Cells, GoFromAnchorsToTheTargetsOwnCopyAndForgetWhatIsDeleted) {
  EXPECT_EQ(created_["cells"], (json{5, 8}));
  EXPECT_EQ(created_["cell_code"], "float16");
  EXPECT_EQ(created_["cells_ready"], false);
  EXPECT_EQ(Info()["cells_state"], "ready: 200 items");
  EXPECT_THAT(Run({"collection", "info", "things"}).out,
              HasSubstr("cells 5, 8, items as float16 for whoever may search; ready: 200 items"));

  const json answer =
      Answer(Query({"--row", "17", "--epsilon", kLarge, "--items", "80", "-k", "5"}));
  ASSERT_THAT(answer["matches"], SizeIs(5));
  EXPECT_EQ(answer["matches"][0]["id"], "17");
  EXPECT_LT(answer["matches"][0]["distance"].get<double>(), 1e-5);
  EXPECT_EQ(answer["scheme"], "cells");
  EXPECT_THAT(answer["cells"], SizeIs(1));
  EXPECT_EQ(answer["candidates"], 80);
  EXPECT_EQ(answer["guarantee"]["epsilon"], 40);
  EXPECT_EQ(answer["guarantee"]["delta"], 0);
  EXPECT_EQ(answer["guarantee"]["proven"], true);
  EXPECT_EQ(answer["ledger"]["spent"], (json{{"epsilon", 40}, {"delta", 0}}));
  EXPECT_EQ(answer["items_version"], kItems);
  EXPECT_LT(answer["bytes"]["up"].get<int>(), 100);
  EXPECT_GT(answer["bytes"]["down"].get<int>(), 80 * 2 * kFeatures);

  const json explained = Answer({"explain"});
  EXPECT_EQ(explained["cells"], answer["cells"]);
  EXPECT_EQ(explained["bytes"], answer["bytes"]["up"]);
  EXPECT_EQ(explained["of_cells"], 5);
  EXPECT_EQ(explained["items"], 80);
  const std::set<std::string> said = {"collection",    "digest", "scheme",  "partition",
                                      "of_cells",      "cells",  "epsilon", "items",
                                      "with_payloads", "bytes"};
  std::set<std::string> keys;
  for (const auto& [key, value] : explained.items()) keys.insert(key);
  EXPECT_EQ(keys, said);

  // The same bytes again, ranked by the target that is given again, cost nothing.
  const json again = Answer({"resend", "--vectors", Vectors("gallery"), "--row", "17", "-k", "5"});
  EXPECT_EQ(again["matches"], answer["matches"]);
  EXPECT_EQ(again["cells"], answer["cells"]);
  EXPECT_EQ(Budget()["left"]["epsilon"], 960);

  // What came back is kept, and ranked without a server.
  daemon_->program().Signal(SIGSTOP);
  const json ranked =
      Answer({"rank", "things", "--vectors", Vectors("gallery"), "--row", "17", "-k", "5"});
  daemon_->program().Signal(SIGCONT);
  EXPECT_EQ(ranked["matches"], answer["matches"]);
  EXPECT_EQ(ranked["candidates"], 80);
  EXPECT_EQ(Budget()["left"]["epsilon"], 960);

  Answer({"items", "delete", "things", "17"});
  EXPECT_EQ(Info()["cells_state"], "ready: 199 items");
  EXPECT_THAT(Ids(Answer({"resend", "--vectors", Vectors("gallery"), "--row", "17"})),
              Not(Contains("17")));
}

TEST_F(Cells, OfMoreItemsThanThereAreAWarningIsGiven) {
  const auto warnings = [&](const std::string& items) {
    return Answer(Query({"--row", "17", "--epsilon", kLarge, "--items", items}))["warnings"];
  };
  EXPECT_EQ(warnings("200"), json::array());
  EXPECT_EQ(warnings("201"),
            json({"201 items are asked for, but the gallery has 200: no more come back"}));
  EXPECT_THAT(Run(Query({"--row", "17", "--epsilon", kLarge, "--items", "500"})).err,
              HasSubstr("500 items are asked for, but the gallery has 200"));
}

TEST_F(Cells, OfABatchEachIsAnsweredAndPaidFor) {
  const Outcome outcome =
      Run(Query({"--rows", "0,1,2", "--partition", "1", "--ask", "3", "--focus", "2", "--epsilon",
                 kLarge, "--items", "150", "-k", "1", "--json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_THAT(outcome.lines(), SizeIs(3));
  for (int row = 0; row < 3; ++row) {
    const json answer = outcome.lines()[row];
    EXPECT_EQ(answer["matches"][0]["id"], std::to_string(row));
    EXPECT_THAT(answer["cells"], SizeIs(3));
    EXPECT_EQ(answer["partition"], 1);
  }
  EXPECT_EQ(Budget()["left"]["epsilon"], 880);
  // All or none.
  ExpectRefused(Query({"--rows", "0,1,2", "--epsilon", "300", "--items", "10"}),
                "RESOURCE_EXHAUSTED", {"3 queries of epsilon 300", "nothing was spent"});
}

// 64 parts of one feature each, with 16 centroids.
TEST_F(Cells, OfProductCodesAreReadByThePublishedCodebook) {
  Write("many", SeparatedClasses(650, 1));
  const json created =
      Answer({"collection", "create", "short", "--anchors", Vectors("many"), "--anchor-labels",
              Labels("many"), "--cells", "5", "--cell-code", "pq32"});
  EXPECT_EQ(created["cell_code"], "pq32");
  const double error = created["cell_code_error"];
  EXPECT_GT(error, 1e-5);
  EXPECT_LT(error, 1e-2);
  EXPECT_EQ(Info()["cell_code_error"], nullptr) << "float16 has no codebook";
  Answer({"ingest", "short", "--vectors", Vectors("gallery"), "--labels", Labels("gallery")});
  Answer({"build", "short"});
  const auto info = [&] { return Answer({"collection", "info", "short"}); };
  for (int i = 0; i < 600 && !info()["cells_ready"]; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(info()["cell_code_error"], error);
  EXPECT_THAT(Run({"collection", "info", "short"}).out,
              HasSubstr("items as pq32 (relative squared error 0.0"));
  Answer({"budget", "set", "short", "--epsilon", "1000"});

  const json answer = Answer({"query", "short", "--vectors", Vectors("gallery"), "--row", "17",
                              "--scheme", "cells", "--epsilon", kLarge, "--items", "80"});
  EXPECT_EQ(answer["matches"][0]["id"], "17");
  EXPECT_GT(answer["matches"][0]["distance"].get<double>(), 0) << "a code is not the item";
  EXPECT_LT(answer["matches"][0]["distance"].get<double>(), 10 * error);
  EXPECT_EQ(answer["candidates"], 80);
  EXPECT_LT(answer["bytes"]["down"].get<int>(), 80 * (32 + 10));
  EXPECT_EQ(Answer({"resend", "--vectors", Vectors("gallery"), "--row", "17"})["matches"],
            answer["matches"]);
  EXPECT_EQ(Answer({"rank", "short", "--vectors", Vectors("gallery"), "--row", "17"})["matches"],
            answer["matches"]);

  const json planned = Answer({"plan", "short", "--epsilon", kLarge, "--max-bytes", "20K"});
  EXPECT_EQ(planned["code"], "pq32");
  EXPECT_THAT(planned["warnings"],
              ElementsAre(HasSubstr("how often intervals hold is measured with 1.5 to 10 items")));
  EXPECT_GT(planned["fidelity"]["value"].get<double>(), 0);
}

TEST_F(Cells, RefuseByNameWhatIsOfNoUseOrOutOfRange) {
  const std::vector<std::string> good = {"--row", "0", "--epsilon", "1", "--items", "10"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = good;
    all.insert(all.end(), more.begin(), more.end());
    return Query(all);
  };
  for (const std::vector<std::string>& foreign :
       std::vector<std::vector<std::string>>{{"--delta", "1e-5"},
                                             {"--label", "1"},
                                             {"--labels", Labels("gallery")},
                                             {"--mechanism", "laplace"},
                                             {"--radius", "1"},
                                             {"--private-iterations", "2"},
                                             {"--post-process", "server"},
                                             {"--filter", "{}"},
                                             {"--dummies", Vectors("gallery")},
                                             {"--dummy-labels", Labels("gallery")},
                                             {"--compare-images", "x"},
                                             {"--report", folder_ / "report.html"}}) {
    ExpectRefused(with(foreign), "INVALID_ARGUMENT",
                  {foreign[0] + " is of no use with --scheme cells"});
  }
  for (const char* flag : {"--partition", "--ask", "--focus", "--items"}) {
    ExpectRefused({"query", "things", "--vectors", Vectors("gallery"), "--row", "0", "--label", "0",
                   "--epsilon", "1", "--delta", "1e-5", flag, "1"},
                  "INVALID_ARGUMENT", {std::string(flag) + " is of no use with --scheme joint"});
  }
  ExpectRefused(with({"--partition", "2"}), "INVALID_ARGUMENT",
                {"partition must be between 0 and 1, but is 2"});
  ExpectRefused(with({"--ask", "5"}), "INVALID_ARGUMENT", {"ask must be between 1 and 4"});
  ExpectRefused(with({"--focus", "0"}), "INVALID_ARGUMENT", {"focus must be between 1 and 4"});
  ExpectRefused(with({"-k", "0"}), "INVALID_ARGUMENT", {"k must be between 1 and"});
  ExpectRefused(Query({"--row", "0", "--epsilon", "1"}), "INVALID_ARGUMENT",
                {"--items must be given with --scheme cells"});
  ExpectRefused(Query({"--row", "0", "--epsilon", "nan", "--items", "9"}), "INVALID_ARGUMENT",
                {"epsilon"});
}

TEST_F(Cells, RankFindsTheNearestOfAllThatCameAndSaysWhereNothingDid) {
  ExpectRefused({"rank", "things", "--vectors", Vectors("gallery"), "--row", "0"}, "NOT_FOUND",
                {"nothing was received for cells of collection things yet"});
  for (const char* row : {"0", "1"}) {
    Answer(Query({"--row", row, "--epsilon", kLarge, "--items", "60"}));
  }
  const json ranked = Answer({"rank", "things", "--vectors", Vectors("gallery"), "--row", "1"});
  EXPECT_GT(ranked["candidates"], 60) << "rows 0 and 1 lie in different cells";
  EXPECT_EQ(ranked["matches"][0]["id"], "1");
  EXPECT_EQ(ranked["spent"]["epsilon"], 0);

  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(user_.state)) {
    const std::string path = file.path();
    if (path.find("received-") == std::string::npos) continue;
    ++files;
    EXPECT_EQ(file.status().permissions(), std::filesystem::perms(0600));
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  }
  EXPECT_EQ(files, 1);
  ExpectRefused({"rank", "things", "--vectors", Vectors("gallery"), "--row", "0"}, "DATA_LOSS",
                {"received-", "is damaged"});
  // What is damaged is put aside when something comes, and that is said.
  const Outcome told = Run(Query({"--row", "0", "--epsilon", "1", "--items", "20"}));
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.err, HasSubstr("what was received before is not kept"));
  EXPECT_THAT(told.err, HasSubstr(".pb.damaged"));
  const std::vector<std::string> rank = {"rank",  "things", "--vectors", Vectors("gallery"),
                                         "--row", "0"};
  EXPECT_EQ(Answer(rank)["candidates"], 20);
  // And what comes again is kept again.
  for (const auto& file : std::filesystem::directory_iterator(user_.state)) {
    if (file.path().string().find("received-") != std::string::npos) {
      std::filesystem::remove(file.path());
    }
  }
  Answer({"resend", "--vectors", Vectors("gallery"), "--row", "0"});
  EXPECT_EQ(Answer(rank)["candidates"], 20);
}

TEST_F(Cells, WhatCannotBeKeptToBeSentAgainIsNotPaidFor) {
  const std::string last = user_.state + "/last_release.pb";
  Answer(Query({"--row", "0", "--epsilon", "1", "--items", "20"}));
  std::filesystem::remove(last);
  std::filesystem::create_directory(last);
  const json before = Budget();
  ExpectRefused(Query({"--row", "0", "--epsilon", "1", "--items", "20"}), "INVALID_ARGUMENT",
                {"last release", "is a folder, not a file"});
  EXPECT_EQ(Budget(), before);
}

TEST_F(Cells, ResendSaysWhatItNeeds) {
  Answer(Query({"--row", "0", "--epsilon", "1", "--items", "10"}));
  ExpectRefused({"resend", "--label", "1"}, "INVALID_ARGUMENT",
                {"--label is of no use: the last release asked for cells"});
  ExpectRefused({"resend"}, "INVALID_ARGUMENT", {"give either --vectors with --row, or --image"});
  ExpectRefused({"resend", "--vectors", Vectors("gallery"), "--rows", "1,2"}, "INVALID_ARGUMENT",
                {"number of targets of --row or --image must be between 1 and 1, but is 2"});
  Answer({"query", "things", "--vectors", Vectors("gallery"), "--row", "0", "--label", "0",
          "--epsilon", "1", "--delta", "1e-5"});
  ExpectRefused({"resend", "--vectors", Vectors("gallery"), "--row", "1"}, "INVALID_ARGUMENT",
                {"the last release was of the joint scheme"});
  ExpectRefused({"resend"}, "INVALID_ARGUMENT", {"--label must be given, but is not"});
  Answer({"resend", "--label", "1"});
}

TEST_F(Cells, WhatCannotBeAskedForIsKnownBeforeAnythingIsSpent) {
  ExpectRefused({"collection", "create", "other", "--anchors", Vectors("anchors"),
                 "--anchor-labels", Labels("anchors"), "--cells", "5"},
                "INVALID_ARGUMENT", {"--cell-code is missing"});
  ExpectRefused({"collection", "create", "other", "--anchors", Vectors("anchors"),
                 "--anchor-labels", Labels("anchors"), "--cells", "1", "--cell-code", "scalar8"},
                "INVALID_ARGUMENT", {"--cells must be between 2 and 4096, but is 1"});
  ExpectRefused({"collection", "create", "other", "--anchors", Vectors("anchors"),
                 "--anchor-labels", Labels("anchors"), "--cells", "41", "--cell-code", "scalar8"},
                "INVALID_ARGUMENT", {"cells must be between 2 and 40, but is 41"});
  ExpectRefused(
      {"collection", "create", "other", "--anchors", Vectors("anchors"), "--anchor-labels",
       Labels("anchors"), "--cells", "4", "--cell-code", "pq8"},
      "INVALID_ARGUMENT",
      {"cell_code pq8 must have at least 624 anchors to be trained on, but there are 40"});
  ExpectRefused({"collection", "create", "other", "--anchors", Vectors("anchors"),
                 "--anchor-labels", Labels("anchors"), "--cells", "4", "--cell-code", "pq12"},
                "INVALID_ARGUMENT", {"--cell-code"});
  Answer({"collection", "create", "plain", "--anchors", Vectors("anchors"), "--anchor-labels",
          Labels("anchors")});
  Answer({"ingest", "plain", "--vectors", Vectors("gallery"), "--labels", Labels("gallery")});
  Answer({"build", "plain"});
  Answer({"budget", "set", "plain", "--epsilon", "9", "--delta", ".1"});
  ExpectRefused({"query", "plain", "--scheme", "cells", "--vectors", Vectors("gallery"), "--row",
                 "0", "--epsilon", "1", "--items", "10"},
                "FAILED_PRECONDITION", {"the collection has no cells"});
}

TEST_F(Cells, ArePlannedWithoutATargetAndAskedForAsPlanned) {
  const std::string plan = folder_ / "plan.json";
  const json before = Everything();
  const json planned =
      Answer({"plan", "things", "--epsilon", kLarge, "--max-bytes", "100K", "--fidelity", ".5",
              "--recall", ".9", "-k", "5", "--radius", ".5", "--out", plan});
  EXPECT_EQ(planned["scheme"], "cells");
  EXPECT_EQ(planned["ask"], 1);
  EXPECT_EQ(planned["focus"], 1);
  EXPECT_EQ(planned["code"], "float16");
  EXPECT_EQ(planned["of_items"], kItems);
  EXPECT_EQ(planned["foreseen_from_anchors"], kClasses * kAnchorsPerClass);
  EXPECT_EQ(planned["fulfils"], true);
  EXPECT_EQ(planned["warnings"], json::array());
  EXPECT_EQ(planned["guarantee"]["epsilon"], 40);
  EXPECT_EQ(planned["guarantee"]["proven"], true);
  EXPECT_EQ(planned["spent"]["epsilon"], 0);
  EXPECT_EQ(planned["radius_meaning"]["radius"], .5);
  for (const char* found : {"fidelity", "recall"}) {
    EXPECT_LE(planned[found]["low"], planned[found]["value"]);
    EXPECT_LE(planned[found]["value"], planned[found]["high"]);
  }
  EXPECT_GE(planned["fidelity"]["value"].get<double>(), .5);
  EXPECT_GT(planned["timings"]["choose_ms"].get<double>(), 0);
  EXPECT_GT(planned["timings"]["rank_ms"].get<double>(), 0);
  EXPECT_EQ(Everything(), before);

  const json answer =
      Answer({"query", "things", "--vectors", Vectors("gallery"), "--row", "17", "--plan", plan});
  EXPECT_EQ(answer["scheme"], "cells");
  EXPECT_EQ(answer["partition"], planned["partition"]);
  EXPECT_EQ(answer["candidates"], planned["items"]);
  EXPECT_EQ(answer["guarantee"], planned["guarantee"]);
  EXPECT_THAT(answer["matches"], SizeIs(5));
  EXPECT_EQ(answer["matches"][0]["label"], 17 % kClasses);
  EXPECT_LE(answer["bytes"]["down"], planned["bytes"]["down"]);
  EXPECT_EQ(Budget()["left"]["epsilon"], 960);
  EXPECT_THAT(Answer({"query", "things", "--vectors", Vectors("gallery"), "--row", "17", "--plan",
                      plan, "-k", "3"})["matches"],
              SizeIs(3))
      << "how many are told is seen by nobody else";

  for (const std::vector<std::string>& said :
       std::vector<std::vector<std::string>>{{"--epsilon", "1"},
                                             {"--scheme", "cells"},
                                             {"--items", "9"},
                                             {"--partition", "0"},
                                             {"--label", "1"}}) {
    std::vector<std::string> command = {"query", "things", "--vectors", Vectors("gallery"),
                                        "--row", "17",     "--plan",    plan};
    command.insert(command.end(), said.begin(), said.end());
    ExpectRefused(command, "INVALID_ARGUMENT", {said[0] + " is of no use with --plan"});
  }
  ExpectRefused({"query", "other", "--vectors", Vectors("gallery"), "--row", "17", "--plan", plan},
                "INVALID_ARGUMENT", {"must be for collection other, but is for things"});
}

TEST_F(Cells, APlanIsOfNoUseForOtherAnchors) {
  const std::string plan = folder_ / "plan.json";
  Answer({"plan", "things", "--epsilon", kLarge, "--max-bytes", "1M", "--out", plan});
  Answer({"collection", "delete", "things"});
  Write("others", SeparatedClasses(kClasses * kAnchorsPerClass, 5));
  Answer({"collection", "create", "things", "--anchors", Vectors("others"), "--anchor-labels",
          Labels("others"), "--cells", "5", "--cell-code", "float16"});
  ExpectRefused({"query", "things", "--vectors", Vectors("gallery"), "--row", "17", "--plan", plan},
                "FAILED_PRECONDITION",
                {"--plan was made for the public parameters", "nothing was spent"});
}

TEST_F(Cells, OfFewAnchorsAClassPlansWarn) {
  Write("few", SeparatedClasses(kClasses * 4, 1));
  Answer({"collection", "create", "few", "--anchors", Vectors("few"), "--anchor-labels",
          Labels("few"), "--cells", "4", "--cell-code", "scalar8"});
  Answer({"ingest", "few", "--vectors", Vectors("gallery"), "--labels", Labels("gallery")});
  Answer({"build", "few"});
  const Outcome told = Run({"plan", "few", "--epsilon", "1", "--max-bytes", "10K", "--json"});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  const std::string warning = "fewer than 5 anchors a class (20 of 5 classes)";
  EXPECT_THAT(told.err, HasSubstr(warning));
  EXPECT_THAT(told.json()["warnings"][0].get<std::string>(), HasSubstr(warning));
}

TEST_F(Cells, WhatNoPlanReachesIsToldWithItsCeiling) {
  const std::string plan = folder_ / "plan.json";
  const std::vector<std::string> command = {
      "plan", "things", "--epsilon", ".5", "--fidelity", ".9", "--max-bytes", "3K", "--out", plan};
  const Outcome told = Run(command);
  EXPECT_EQ(told.exit_code, 1) << told.err;
  EXPECT_THAT(told.out, HasSubstr("no plan is foreseen to reach fidelity 0.9 with epsilon 0.5 and "
                                  "3000 bytes; the most:\n"));
  EXPECT_THAT(told.out, HasSubstr("f e^epsilon / (1 + f (e^epsilon - 1)) = "));
  EXPECT_THAT(told.out, HasSubstr(plan + " was not written"));
  EXPECT_FALSE(std::filesystem::exists(plan));
  std::vector<std::string> with_json = command;
  with_json.push_back("--json");
  const json answer = Run(with_json).json();
  EXPECT_EQ(answer["fulfils"], false);
  EXPECT_EQ(answer["ceiling"]["share"].get<double>(), answer["items"].get<double>() / kItems);
  EXPECT_LT(answer["ceiling"]["fidelity"].get<double>(), .9);
  EXPECT_FALSE(answer.contains("open_recall")) << "none was wished";

  const json recall =
      Run({"plan", "things", "--epsilon", ".5", "--recall", ".9999", "--max-bytes", "1K", "--json"})
          .json();
  EXPECT_EQ(recall["fulfils"], false);
  EXPECT_FALSE(recall.contains("ceiling"));
  EXPECT_THAT(recall["open_recall"]["words"].get<std::string>(),
              HasSubstr("a search that hides nothing is foreseen to find the class among its 8 "
                        "matches with probability "));

  ExpectRefused({"plan", "things", "--epsilon", "1", "--max-bytes", "9"}, "INVALID_ARGUMENT",
                {"--max-bytes must be at least", "but is 9"});
  ExpectRefused({"plan", "things", "--epsilon", "1", "--max-bytes", "2Q"}, "INVALID_ARGUMENT",
                {"--max-bytes must be a number of bytes, as 2500, 800K or 2M, but is \"2Q\""});
  ExpectRefused({"plan", "things", "--epsilon", "nan", "--max-bytes", "1M"}, "INVALID_ARGUMENT",
                {"epsilon"});
  ExpectRefused({"plan", "things", "--epsilon", "1", "--max-bytes", "1M", "--radius", "3"},
                "INVALID_ARGUMENT", {"--radius must be between 0 and 2, but is 3"});
  ExpectRefused({"plan", "nothing", "--epsilon", "1", "--max-bytes", "1M"}, "NOT_FOUND",
                {"nothing"});
}

}  // namespace
}  // namespace privatemail::e2e
