// Single items and filters, through the programs.
#include <chrono>
#include <filesystem>
#include <fstream>

#include "tests/e2e/service.h"
#include "tests/testing/full_disk.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class Items : public FilledService {
 protected:
  static std::vector<std::string> Ids(const json& answer) {
    std::vector<std::string> ids;
    for (const json& item : answer["items"]) ids.push_back(item["id"]);
    return ids;
  }
};

TEST_F(Items, AreListedFetchedCountedAndDeleted) {
  EXPECT_EQ(Answer({"items", "count", "things"})["items"], kItems);
  const json first = Answer({"items", "list", "things", "--limit", "3"});
  EXPECT_THAT(Ids(first), ElementsAre("0", "1", "10"));
  const json next = Answer({"items", "list", "things", "--limit", "2", "--features", "--cursor",
                            first["next_cursor"].get<std::string>()});
  EXPECT_THAT(Ids(next), ElementsAre("100", "101"));
  EXPECT_THAT(next["items"][0]["features"], SizeIs(kFeatures));
  EXPECT_THAT(Ids(Answer({"items", "list", "things", "--limit", "100000"})), SizeIs(kItems));

  const std::string table = Run({"items", "list", "things"}).out;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 13) << table;
  EXPECT_THAT(table, HasSubstr("more items: --limit N, or --cursor "));

  const Outcome outcome = Run({"items", "get", "things", "7", "none", "3", "--json"});
  EXPECT_EQ(outcome.exit_code, 1) << "one is missing, the others are printed";
  const json fetched = outcome.json();
  EXPECT_THAT(Ids(fetched), ElementsAre("7", "3"));
  EXPECT_EQ(fetched["missing_ids"], json::array({"none"}));
  EXPECT_EQ(fetched["items"][0]["label"], 2);

  std::ofstream(folder_ / "ids") << "3\n11\n";
  const Outcome deleted =
      Run({"items", "delete", "things", "7", "none", "--ids-file", folder_ / "ids", "--json"});
  EXPECT_EQ(deleted.exit_code, 3) << "one is missing, the others are deleted";
  EXPECT_EQ(deleted.json(), (json{{"deleted", 3}, {"missing", 1}, {"missing_ids", {"none"}}}));
  EXPECT_EQ(Answer({"items", "count", "things"})["items"], kItems - 3);
  EXPECT_EQ(Info()["embedded"], kItems - 3);
}

TEST_F(Items, LostPayloadsAreCountedOnce) {
  const Command ingest = {"ingest",           "things",   "--vectors",
                          Vectors("gallery"), "--labels", Labels("gallery")};
  std::string payloads;
  for (int i = 0; i < kItems; ++i) payloads += "{}\n";
  const std::string file = folder_.Write("payloads.jsonl", payloads);
  EXPECT_THAT(Run(Join(ingest, {"--payloads", file})).err, Not(HasSubstr("warning")));
  const Outcome outcome = Run(Join(ingest, {"--replace"}));
  EXPECT_THAT(outcome.err, HasSubstr("warning: " + std::to_string(kItems) +
                                     " stored items lost a payload or a label"));
  EXPECT_THAT(Run(Join(ingest, {"--replace"})).err, Not(HasSubstr("warning"))) << "none has one";
}

TEST_F(Items, FilterAppliesToSearchAndWarnsOfLeak) {
  std::string payloads;
  for (int i = 0; i < kItems; ++i) payloads += "{\"n\":" + std::to_string(i) + "}\n";
  Answer({"ingest", "things", "--vectors", Vectors("gallery"), "--labels", Labels("gallery"),
          "--payloads", folder_.Write("payloads.jsonl", payloads)});
  Build();
  const std::string filter = R"({"and":[{"path":"n","gte":50},{"path":"n","lt":60}]})";
  EXPECT_EQ(Answer({"items", "count", "things", "--filter", filter})["items"], 10);
  EXPECT_THAT(Ids(Answer({"items", "list", "things", "--filter", filter})), SizeIs(10));
  const Outcome outcome =
      Run(Query({"--row", "2", "--label", "2", "-k", "20", "--epsilon", "5", "--delta", "1e-3",
                 "--filter", filter, "--payloads", "--json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json answer = outcome.json();
  EXPECT_THAT(answer["matches"], SizeIs(10));
  EXPECT_EQ(answer["truncated"], true);
  for (const json& match : answer["matches"]) {
    EXPECT_GE(match["payload"]["n"], 50);
    EXPECT_LT(match["payload"]["n"], 60);
  }
  EXPECT_THAT(outcome.err, HasSubstr("warning: the server reads the filter in clear"));
  EXPECT_THAT(answer["warnings"].dump(), HasSubstr("in clear"));
  EXPECT_EQ(Answer({"explain"})["filter"], json::parse(filter));
  EXPECT_THAT(Run({"query", "--help"}).out, HasSubstr("SENT IN CLEAR"));
  ExpectRefused({"items", "count", "things", "--filter", R"({"path":"n","gte":"x"})"},
                "INVALID_ARGUMENT", {"--filter.gte must be a number, but is of type string"});
  ExpectRefused(Query({"--row", "2", "--label", "2", "--epsilon", "5", "--delta", "1e-3",
                       "--filter", R"({"not":{"path":"n.m","equals":1}})"}),
                "FAILED_PRECONDITION", {"--filter names the path \"n.m\"", "(nothing was spent)"});
}

// The release is saved with its filter, which needs more space here than the ledger.
TEST_F(Items, NothingIsChargedIfTheReleaseCannotBeSaved) {
  std::string payloads, values;
  for (int i = 0; i < kItems; ++i) payloads += "{\"n\":1}\n";
  for (int i = 0; i < 40; ++i) values += "\"" + std::string(1000, 'x') + "\",";
  Answer({"ingest", "things", "--vectors", Vectors("gallery"), "--labels", Labels("gallery"),
          "--payloads", folder_.Write("payloads.jsonl", payloads)});
  Build();
  const json before = Budget();
  const FullDisk full(24'000);
  const Outcome outcome =
      Run(Query({"--row", "2", "--label", "2", "--epsilon", "1", "--delta", "1e-3", "--filter",
                 R"({"path":"n","in":[)" + values + "1]}"}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("last_release.pb cannot be written: File too large"));
  EXPECT_EQ(Budget(), before);
}

// Printing takes a time of its own for every match, and a reader may stop it: the server must not
// see either, as the time at which the connection ends.
TEST_F(Items, ConnectionEndsBeforeMatchesArePrinted) {
  std::string payloads;
  for (int i = 0; i < kItems; ++i) payloads += "\"" + std::string(2000, 'x') + "\"\n";
  Answer({"ingest", "things", "--vectors", Vectors("gallery"), "--labels", Labels("gallery"),
          "--payloads", folder_.Write("payloads.jsonl", payloads)});
  Build();
  const Command query = Query({"--row", "2", "--label", "2", "-k", std::to_string(kItems),
                               "--epsilon", "5", "--delta", "1e-3", "--payloads"});
  Program program(user_.CommandLine(query));
  const auto sockets = [&] {
    int count = 0;
    std::error_code error;
    for (std::filesystem::directory_iterator
             file("/proc/" + std::to_string(program.pid()) + "/fd", error),
         end;
         !error && file != end; file.increment(error)) {
      const auto target = std::filesystem::read_symlink(file->path(), error);
      count += target.string().rfind("socket:", 0) == 0 ? 1 : 0;
    }
    return count;
  };
  ASSERT_TRUE(WaitUntil([&] { return sockets() > 0; }));
  // Nothing reads the pipe, which holds less than the matches.
  EXPECT_TRUE(WaitUntil([&] { return sockets() == 0; }, std::chrono::seconds(60)));
  EXPECT_GT(program.Wait().out.size(), size_t{1} << 18);
}

}  // namespace
}  // namespace privatemail::e2e
