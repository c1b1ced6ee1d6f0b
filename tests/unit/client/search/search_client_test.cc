// The view that a server has of searches, and their results: the rules of PRIVACY.md section 9.
#include <filesystem>
#include <future>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "client/files/folder_lock.h"
#include "client/schemes/encrypted/encrypted_search.h"
#include "client/search/departures.h"
#include "client/search/last_search.h"
#include "common/base/field_error.h"
#include "common/base/files.h"
#include "privatemail/search.h"
#include "tests/testing/fork.h"
#include "tests/testing/published_things.h"
#include "tests/unit/client/search/encrypted_server.h"

namespace privatemail::client::search_client_test {
namespace {

namespace fs = std::filesystem;

constexpr int kDim = 8;

Eigen::RowVectorXf TargetOf(unsigned seed) { return NormalRows(1, kDim, 1000 + seed); }

// The collection claims so many rows that each query has a message of its own.
constexpr auto kMessageForEachQuery = [](v1::GetCollectionResponse* collection) {
  collection->mutable_encrypted()->set_rows(16'000'000);
};

struct Ranking {
  int64_t k = 3;
  bool with_payloads = false;
  std::optional<int32_t> label = {};
  std::string filter = {};
};

class SearchClientTest : public ::testing::Test {
 protected:
  SearchClientTest() {
    fs::permissions(folder_.path(), fs::perms::owner_all);
    client_ = NewClient();
  }

  std::unique_ptr<SearchClient> NewClient(int64_t max_memory = kMaxMemory) {
    return *SearchClient::Connect({.connection = server_.options,
                                   .state_folder = folder_.path(),
                                   .limits = {.max_memory = max_memory}});
  }

  std::unique_ptr<SearchClient> ClientOf(const ConnectionOptions& options) const {
    return *SearchClient::Connect({.connection = options, .state_folder = folder_.path()});
  }

  absl::StatusOr<SearchResponse> Search(SearchClient& client, unsigned seed = 1,
                                        const Ranking& ranking = {}) {
    return Search(client, {{.features = TargetOf(seed), .label = ranking.label}}, ranking);
  }
  absl::StatusOr<SearchResponse> Search(SearchClient& client, std::vector<SearchTarget> targets,
                                        const Ranking& ranking = {}) {
    return client.Search({.collection = "things",
                          .targets = std::move(targets),
                          .k = ranking.k,
                          .with_payloads = ranking.with_payloads,
                          .filter = ranking.filter},
                         Warn());
  }

  WarnFunction Warn() {
    return [this](const std::string& text) { warnings_.push_back(text); };
  }

  // The id of the item with the largest cosine, in the clear.
  std::string NearestInTheClear(unsigned seed) const {
    const Eigen::RowVectorXd target = TargetOf(seed).cast<double>();
    Eigen::Index nearest = 0;
    (features_.cast<double>().rowwise().normalized() * target.transpose()).maxCoeff(&nearest);
    return EncryptedThings::IdOf(nearest);
  }

  std::vector<fs::path> CachedFiles(const std::string& part) const {
    std::vector<fs::path> files;
    for (const auto& file : fs::recursive_directory_iterator(folder_.path())) {
      if (file.is_regular_file() && file.path().string().find(part) != std::string::npos) {
        files.push_back(file.path());
      }
    }
    return files;
  }

  const FloatMatrix features_ = NormalRows(2100, kDim, 1);  // two blocks
  EncryptedThings things_{features_};
  EncryptedServer server_{&things_};
  TemporaryFolder folder_;
  std::unique_ptr<SearchClient> client_;
  std::vector<std::string> warnings_;
};

TEST_F(SearchClientTest, FindsTheNearestItemsAndNamesTheGuarantee) {
  ASSERT_OK_AND_ASSIGN(const SearchResponse answer, Search(*client_));
  ASSERT_EQ(answer.results.size(), 1U);
  const SearchResult& found = answer.results[0];
  ASSERT_EQ(found.matches.size(), 3U);
  EXPECT_EQ(found.matches[0].id, NearestInTheClear(1));
  EXPECT_EQ(found.matches[0].payload, "");
  EXPECT_EQ(found.encrypted->items, 2100U);
  EXPECT_EQ(found.encrypted->items_version, 7U);
  EXPECT_EQ(found.encrypted->delta, 32);
  EXPECT_EQ(found.encrypted->tables, std::vector{Sha256::Of(Sha256::Of(things_.TableBlock(0)) +
                                                            Sha256::Of(things_.TableBlock(1)))});
  EXPECT_EQ(found.encryption->bits, 128);
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(found.bytes.keys, lattice::KeysBytes(32));
  EXPECT_GT(found.bytes.table, things_.TableBlock(0).size());
  EXPECT_EQ(found.bytes.payloads, 0U);
  EXPECT_GT(found.bytes.down, 2 * lattice::kAnswerBytes);
  EXPECT_LT(found.bytes.down, 2 * lattice::kAnswerBytes + 500);
  EXPECT_GT(found.bytes.up, lattice::kPolynomialBytes);
  EXPECT_LT(found.bytes.up, lattice::kPolynomialBytes + 500);
}

TEST_F(SearchClientTest, KeysAndTableTravelOnceASession) {
  ASSERT_THAT(Search(*client_, 1), IsOk());
  ASSERT_OK_AND_ASSIGN(const SearchResponse second, Search(*client_, 2));
  EXPECT_EQ(second.results[0].bytes.keys, 0U);
  EXPECT_EQ(second.results[0].bytes.table, 0U);
  EXPECT_EQ(second.results[0].matches[0].id, NearestInTheClear(2));
  const auto requests = server_.TakeRequests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].keys().size(), lattice::KeysBytes(32));
  EXPECT_TRUE(requests[1].keys().empty());
  EXPECT_EQ(requests[0].keys_digest(), requests[1].keys_digest());
  EXPECT_EQ(requests[0].known_blocks_size(), 0);
  EXPECT_EQ(requests[1].known_blocks_size(), 2);
  // Rule 8: a new session has a new secret.
  ASSERT_THAT(Search(*NewClient(), 1), IsOk());
  EXPECT_NE(server_.TakeRequests()[0].keys_digest(), requests[0].keys_digest());
}

TEST_F(SearchClientTest, TargetsOfABatchShareOneMessage) {
  std::vector<SearchTarget> targets;
  for (unsigned seed = 1; seed <= 20; ++seed) targets.push_back({.features = TargetOf(seed)});
  targets[3].label = 2;
  ASSERT_OK_AND_ASSIGN(const SearchResponse answer, Search(*client_, targets, {.k = 2}));
  const auto requests = server_.TakeRequests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].queries_size(), 20);
  std::set<std::string> seeds;
  for (const v1::EncryptedQuery& query : requests[0].queries()) seeds.insert(query.seed());
  EXPECT_EQ(seeds.size(), 20U);
  ASSERT_EQ(answer.results.size(), 20U);
  for (unsigned i = 0; i < 20; ++i) {
    ASSERT_EQ(answer.results[i].matches.size(), 2U);
    EXPECT_EQ(answer.results[i].target, absl::StrCat("target ", i));
    if (i == 3) continue;
    EXPECT_EQ(answer.results[i].matches[0].id, NearestInTheClear(i + 1));
  }
  EXPECT_EQ(answer.results[3].matches[0].label, 2);
}

// Rule 4: a searcher can see that the server showed it tables of its own.
TEST_F(SearchClientTest, TablesOfAllMessagesAreNamedWithTheirPayloads) {
  server_.describe = kMessageForEachQuery;
  server_.answer = [&](const v1::SearchEncryptedRequest& request) {
    const auto answer = things_.Answer(request);
    things_.id_suffix += "x";
    return answer;
  };
  const auto root = [&](bool with_payloads) {
    std::string digests;
    for (const int64_t block : {0, 1}) digests += Sha256::Of(things_.TableBlock(block));
    for (const int64_t block : {0, 1}) digests += Sha256::Of(things_.PayloadBlock(block));
    return Sha256::Of(digests.substr(0, with_payloads ? 128 : 64));
  };
  std::vector<std::string> expected = {root(false)};
  things_.id_suffix = "x";
  expected.push_back(root(false));
  things_.id_suffix = "";
  const std::vector<SearchTarget> two = {{.features = TargetOf(1)}, {.features = TargetOf(2)}};
  ASSERT_OK_AND_ASSIGN(const SearchResponse answer, Search(*client_, two));
  EXPECT_EQ(server_.TakeRequests().size(), 2U);
  EXPECT_EQ(answer.results[0].encrypted->tables, expected);
  expected = {root(true)};
  ASSERT_OK_AND_ASSIGN(const SearchResponse with, Search(*client_, 1, {.with_payloads = true}));
  EXPECT_EQ(with.results[0].encrypted->tables, expected);
}

// Rule 3: all messages of a search leave before the first answer is ranked, so that those between
// them depend on the number of targets alone.
TEST_F(SearchClientTest, TargetsOfTwoMessagesSendTheSameWhicheverItemsAreNearest) {
  server_.describe = kMessageForEachQuery;
  for (int first = 0; first < PublishedThings::kClasses; ++first) {  // an item of each class
    const std::vector<SearchTarget> two = {{.features = features_.row(first)},
                                           {.features = features_.row(first + 1)}};
    ASSERT_OK_AND_ASSIGN(const SearchResponse answer, Search(*client_, two, {.k = 1}));
    for (const size_t i : {0, 1}) {
      EXPECT_EQ(answer.results.at(i).matches.at(0).id,
                EncryptedThings::IdOf(first + static_cast<int>(i)));
    }
    std::vector<std::string> calls;
    for (const auto& seen : server_.TakeSeen()) calls.push_back(seen.call);
    EXPECT_EQ(calls,
              (std::vector<std::string>{"GetCollection", "SearchEncrypted", "SearchEncrypted"}))
        << first;
  }
}

// Rule 1: a retry sends the same bytes.
TEST_F(SearchClientTest, RetriesSendTheSameBytes) {
  server_.endings = {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::UNAVAILABLE};
  const auto client = NewClient();
  ASSERT_THAT(Search(*client), IsOk());
  auto requests = server_.TakeRequests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].SerializeAsString(), requests[1].SerializeAsString());
  EXPECT_EQ(requests[0].SerializeAsString(), requests[2].SerializeAsString());
  // A search that fails in the end is not begun anew with other bytes, nor by Retry.
  EXPECT_THAT(client->Retry(), FailsWith(absl::StatusCode::kNotFound));
  server_.endings.assign(20, grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(Search(*client, 2), FailsWith(kUnavailable));
  EXPECT_THAT(client->Retry(), FailsWith(kUnavailable));
  server_.endings.clear();
  ASSERT_OK_AND_ASSIGN(const SearchResponse found, client->Retry());
  EXPECT_EQ(found.results[0].matches[0].id, NearestInTheClear(2));
  EXPECT_EQ(found.results[0].encrypted->tables.size(), 1U);
  EXPECT_THAT(client->Retry(), FailsWith(absl::StatusCode::kNotFound));
  requests = server_.TakeRequests();
  ASSERT_GE(requests.size(), 3U);
  EXPECT_EQ(found.results[0].sent, requests[0].SerializeAsString());
  for (const auto& request : requests) {
    EXPECT_EQ(request.SerializeAsString(), requests[0].SerializeAsString());
  }
}

// ... or everything is drawn afresh.
TEST_F(SearchClientTest, RepeatedSearchOfOneTargetSharesNoBytes) {
  ASSERT_THAT(Search(*client_, 1), IsOk());
  ASSERT_THAT(Search(*client_, 1), IsOk());
  const auto requests = server_.TakeRequests();
  const v1::EncryptedQuery &one = requests[0].queries(0), &other = requests[1].queries(0);
  EXPECT_NE(one.seed(), other.seed());
  size_t equal = 0;
  for (size_t i = 0; i < one.chunks().size(); ++i) equal += one.chunks()[i] == other.chunks()[i];
  // One in 256 by chance: 41 of 10,496, with a deviation of 6.4; 100 has probability below 10^-9.
  EXPECT_LT(equal, 100U);
}

// Rule 5, for every result of an earlier answer.
TEST_F(SearchClientTest, MissingKeysAreSentWithTheSameQueriesAtMostThreeTimes) {
  ASSERT_THAT(Search(*client_), IsOk());
  server_.TakeRequests();
  things_.forgets_keys = true;
  ASSERT_OK_AND_ASSIGN(const SearchResponse answer, Search(*client_, 2));
  EXPECT_EQ(answer.results[0].matches[0].id, NearestInTheClear(2));
  auto requests = server_.TakeRequests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_TRUE(requests[0].keys().empty());
  EXPECT_EQ(requests[1].keys().size(), lattice::KeysBytes(32));
  requests[1].clear_keys();
  EXPECT_EQ(requests[0].SerializeAsString(), requests[1].SerializeAsString());

  server_.answer = [](const v1::SearchEncryptedRequest&) {
    EncryptedServer::Answer missing(1);
    missing[0].mutable_header()->set_keys_missing(true);
    return missing;
  };
  for (const unsigned seed : {3U, 4U}) {
    EXPECT_THAT(Search(*client_, seed), FailsWith(kUnavailable, "asked for them 3 times"));
    requests = server_.TakeRequests();
    ASSERT_EQ(requests.size(), 3U);
    const std::string queries = requests[0].queries(0).SerializeAsString();
    for (const auto& request : requests) {
      EXPECT_EQ(request.queries(0).SerializeAsString(), queries);
      EXPECT_EQ(request.keys().empty(), &request == requests.data());
    }
    EXPECT_EQ(requests[1].keys(), requests[2].keys());
  }
}

// Rule 2: before anything is encrypted.
TEST_F(SearchClientTest, OtherDeltaIsRefusedBeforeAnyQuery) {
  server_.describe = [](v1::GetCollectionResponse* collection) {
    collection->mutable_encrypted()->set_delta(16);
  };
  EXPECT_THAT(Search(*client_), FailsWith(kFailedPrecondition, "must be 32, 64, 128 or 256"));
  EXPECT_TRUE(server_.TakeRequests().empty());
}

// Rule 4: by version, all changed blocks.
TEST_F(SearchClientTest, OnlyChangedBlocksTravel) {
  ASSERT_OK_AND_ASSIGN(const SearchResponse first, Search(*client_));
  things_.empty_rows = {2099};
  ASSERT_OK_AND_ASSIGN(const SearchResponse second, Search(*client_));
  EXPECT_GT(second.results[0].bytes.table, 0U);
  EXPECT_LT(second.results[0].bytes.table, 1500U) << "the second block has 52 rows";
  EXPECT_NE(second.results[0].encrypted->tables, first.results[0].encrypted->tables);
  // Another process finds the blocks on disk, those of the last two tables.
  for (const int searches : {1, 2}) {
    const auto other = NewClient();
    ASSERT_OK_AND_ASSIGN(const SearchResponse third, Search(*other));
    EXPECT_EQ(third.results[0].bytes.table, 0U) << searches;
    EXPECT_EQ(server_.TakeRequests().back().known_blocks_size(), 3);
  }
  things_.empty_rows = {2098};
  ASSERT_THAT(Search(*client_), IsOk());
  EXPECT_EQ(CachedFiles("/table-").size(), 3U) << "blocks of a third table must be removed";
}

TEST_F(SearchClientTest, FilesOfTheCacheAreNotForOthers) {
  ASSERT_THAT(Search(*NewClient()), IsOk());
  const auto files = CachedFiles("/rows/");
  EXPECT_EQ(files.size(), 3U);  // two blocks and the index
  for (const fs::path& file : files) {
    EXPECT_EQ(ModeOf(file), 0600U) << file;
    EXPECT_EQ(ModeOf(file.parent_path()), 0700U);
  }
}

TEST_F(SearchClientTest, DamagedBlocksAreFetchedAgain) {
  ASSERT_THAT(Search(*NewClient()), IsOk());
  server_.TakeRequests();
  const fs::path damaged = CachedFiles("/table-").front();
  const auto size = fs::file_size(damaged);
  fs::resize_file(damaged, size - 1);
  ASSERT_OK_AND_ASSIGN(const SearchResponse answer, Search(*NewClient()));
  EXPECT_EQ(server_.TakeRequests()[0].known_blocks_size(), 1);
  EXPECT_GT(answer.results[0].bytes.table, 0U);
  EXPECT_EQ(fs::file_size(damaged), size);
  // A damaged index costs nothing but the blocks of the former table.
  fs::resize_file(CachedFiles("/index-table").front(), 10);
  ASSERT_THAT(Search(*NewClient()), IsOk());
  EXPECT_EQ(server_.TakeRequests()[0].known_blocks_size(), 2);
}

// A server must not learn from another one's table when this user has searched there.
TEST_F(SearchClientTest, CacheOfOneServerIsNotShownToAnother) {
  ASSERT_THAT(Search(*NewClient()), IsOk());
  EncryptedServer other(&things_);  // of another address
  ASSERT_THAT(Search(*ClientOf(other.options)), IsOk());
  EXPECT_EQ(other.TakeRequests()[0].known_blocks_size(), 0);
}

// Nobody tells the client that a collection was deleted.
TEST_F(SearchClientTest, TablesUnusedForThirtyDaysAreRemoved) {
  ASSERT_THAT(Search(*NewClient()), IsOk());
  const fs::path folder = CachedFiles("/index-table").front().parent_path();
  const fs::path own = folder.parent_path() / "rows of the user";
  fs::create_directory(own);
  fs::last_write_time(own, fs::file_time_type::clock::now() - std::chrono::hours(24 * 100));
  const auto age_by_days = [&folder](int days) {
    fs::last_write_time(folder, fs::file_time_type::clock::now() - std::chrono::hours(24 * days));
  };
  const auto save_table_of = [this](EncryptedServer& other) {
    ASSERT_THAT(Search(*ClientOf(other.options)), IsOk());
  };
  EncryptedServer first(&things_), second(&things_), third(&things_);  // of other addresses
  age_by_days(29);
  save_table_of(first);
  EXPECT_TRUE(fs::exists(folder));
  age_by_days(31);
  ASSERT_THAT(Search(*NewClient()), IsOk());  // of the same table, which is loaded but not saved
  save_table_of(second);
  EXPECT_TRUE(fs::exists(folder));
  age_by_days(31);
  save_table_of(third);
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_EQ(CachedFiles("/index-table").size(), 3U) << "the tables of the other servers";
  EXPECT_TRUE(fs::exists(own));
}

TEST_F(SearchClientTest, TablesThatDoNotFitTheMemoryTogetherAreForgotten) {
  constexpr int64_t kMemory = 2'000'000;
  const auto client = NewClient(kMemory);
  for (const char letter : {'a', 'b'}) {
    things_.id_suffix = std::string(480, letter);  // a table of 1 MB
    ASSERT_THAT(Search(*client), IsOk());
  }
  server_.TakeRequests();
  const auto other = NewClient(kMemory);  // knows what is on disk
  for (SearchClient* const one : {client.get(), other.get()}) {
    ASSERT_OK_AND_ASSIGN(const SearchResponse answer, Search(*one));
    // The last block of the former table is small.
    EXPECT_LE(server_.TakeRequests().back().known_blocks_size(), 3);
    EXPECT_EQ(answer.results[0].bytes.table, 0U);
  }
}

TEST_F(SearchClientTest, BlocksBeyondTheMemoryNameTheLimit) {
  server_.answer = [this](const v1::SearchEncryptedRequest& request) {
    EncryptedServer::Answer answer = things_.Answer(request);
    std::string* const content = answer[1].mutable_table_block()->mutable_content();
    // A field that no version has, of 2,500,000 bytes.
    content->append("\x7a\xa0\xcb\x98\x01").append(2'500'000, 'x');
    answer[0].mutable_header()->mutable_table_digests()->replace(0, 32, Sha256::Of(*content));
    return answer;
  };
  const absl::Status status = Search(*NewClient(2'000'000)).status();
  EXPECT_THAT(status, FailsWith(kExhausted, "row table: max_memory must be at least"));
  EXPECT_TRUE(FieldProblemOf(status).has_value()) << "front ends name their flag";
}

// Another process may be stopped while it writes.
TEST_F(SearchClientTest, LockedCacheIsAWarningSoon) {
  ASSERT_THAT(Search(*client_), IsOk());
  FolderLock lock("cache", CachedFiles("/index-table").front().parent_path());
  ASSERT_THAT(lock.Take(), IsOk());
  things_.empty_rows = {2099};
  const auto start = EncryptedServer::Clock::now();
  ASSERT_THAT(Search(*client_), IsOk());
  EXPECT_LT(EncryptedServer::Clock::now() - start, std::chrono::seconds(20));
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("cannot be locked"), std::string::npos);
}

TEST_F(SearchClientTest, CacheThatCannotBeWrittenIsAWarning) {
  folder_.Write("rows", "a file instead of the folder");
  const auto client = NewClient();
  ASSERT_OK_AND_ASSIGN(const SearchResponse answer, Search(*client));
  EXPECT_EQ(answer.results[0].matches[0].id, NearestInTheClear(1));
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("fetched again next time"), std::string::npos);
}

// Rule 4: of all items or of none, before the query; labels and filters stay here.
TEST_F(SearchClientTest, LabelAndFilterShowNothingButThatPayloadsAreFetched) {
  ASSERT_THAT(Search(*client_), IsOk());
  ASSERT_THAT(Search(*client_), IsOk());
  ASSERT_OK_AND_ASSIGN(const SearchResponse labelled, Search(*client_, 1, {.k = 3, .label = 4}));
  for (const Match& match : labelled.results[0].matches) EXPECT_EQ(match.label, 4);
  Ranking filtered{.k = 5, .filter = R"({"path": "i", "lt": 3})"};
  ASSERT_OK_AND_ASSIGN(const SearchResponse few, Search(*client_, 1, filtered));
  EXPECT_EQ(few.results[0].matches.size(), 3U);
  EXPECT_EQ(few.results[0].matches[0].payload, "");
  EXPECT_GT(few.results[0].bytes.payloads, things_.PayloadBlock(0).size());
  filtered.filter = R"({"path": "other", "lt": 3})";
  ASSERT_OK_AND_ASSIGN(const SearchResponse none, Search(*client_, 2, filtered));
  EXPECT_TRUE(none.results[0].matches.empty());
  EXPECT_TRUE(none.has_unknown_name && !few.has_unknown_name);
  EXPECT_EQ(none.results[0].bytes.payloads, 0U);
  EXPECT_EQ(none.warnings, std::vector<std::string>{"the filter names the path \"other\", which no "
                                                    "item that can be found has"});
  ASSERT_OK_AND_ASSIGN(const SearchResponse with, Search(*client_, 2, {.with_payloads = true}));
  EXPECT_EQ(with.results[0].matches[0].payload,
            "{\"i\":" + with.results[0].matches[0].id.substr(5) + "}");
  const auto requests = server_.TakeRequests();
  EXPECT_EQ(requests[1].ByteSizeLong(), requests[2].ByteSizeLong());
  EXPECT_FALSE(requests[2].with_payloads());
  EXPECT_TRUE(requests[3].with_payloads());
  EXPECT_EQ(requests[4].ByteSizeLong(), requests[5].ByteSizeLong());
}

TEST_F(SearchClientTest, BlocksThatAreNeitherSentNorKnownReturnDataLossAndAreForgotten) {
  ASSERT_THAT(Search(*client_), IsOk());
  server_.answer = [this](const v1::SearchEncryptedRequest& request) {
    EncryptedServer::Answer answer = things_.Answer(request);
    answer[0].mutable_header()->mutable_table_digests()->back() ^= 1;
    return answer;
  };
  EXPECT_THAT(Search(*client_), FailsWith(kDataLoss, "row table: block 1 must be sent or known"));
  server_.answer = nullptr;
  server_.TakeRequests();
  ASSERT_THAT(Search(*client_), IsOk());
  EXPECT_EQ(server_.TakeRequests()[0].known_blocks_size(), 0);
}

TEST_F(SearchClientTest, OtherNumberOfItemsThanInTheTableReturnsDataLoss) {
  server_.answer = [this](const v1::SearchEncryptedRequest& request) {
    EncryptedServer::Answer answer = things_.Answer(request);
    answer[0].mutable_header()->set_items(2099);
    return answer;
  };
  EXPECT_THAT(Search(*client_), FailsWith(kDataLoss, "items must be 2100, as in the row table"));
}

TEST_F(SearchClientTest, PaidReleaseCanBeSentAgainAfterAFreeSearch) {
  ASSERT_THAT(SaveLastSearch(folder_.path(), {.scheme = Scheme::kCells, .collection = {}}), IsOk());
  ASSERT_THAT(Search(*client_), IsOk());
  ASSERT_OK_AND_ASSIGN(const LastSearch paid, LoadLastRelease(folder_.path()));
  EXPECT_EQ(paid.scheme, Scheme::kCells);
  ASSERT_OK_AND_ASSIGN(const LastSearch last, LoadLastSearch(folder_.path()));
  EXPECT_EQ(last.scheme, Scheme::kEncrypted);
}

// Rule 6. Of what was decrypted nothing is stored, not even which item was nearest.
TEST_F(SearchClientTest, StateFolderHoldsNothingThatWasDecrypted) {
  ASSERT_OK_AND_ASSIGN(const SearchResponse answer, Search(*client_));
  ASSERT_OK_AND_ASSIGN(const LastSearch last, LoadLastSearch(folder_.path()));
  EXPECT_EQ(last.scheme, Scheme::kEncrypted);
  EXPECT_THAT(LoadLastRelease(folder_.path()), FailsWith(kFailedPrecondition, "search again"));
  const nlohmann::json view = nlohmann::json::parse(last.message);
  EXPECT_EQ(view["tables"],
            nlohmann::json::array({ToHex(answer.results[0].encrypted->tables.at(0))}));
  EXPECT_EQ(view["queries"], 1);
  EXPECT_EQ(view["delta"], 32);
  std::set<std::string> fields;
  for (const auto& [field, value] : view.items()) fields.insert(field);
  EXPECT_EQ(fields, (std::set<std::string>{"bytes", "delta", "keys_bytes", "keys_digest",
                                           "known_blocks", "known_payload_blocks", "messages",
                                           "queries", "tables", "with_payloads"}));
  // Other targets leave the same files, byte by byte.
  const auto contents = [&] {
    std::map<std::string, std::string> files;
    for (const fs::path& file : CachedFiles("")) {
      files[file] = *ReadFile("file of the state folder", file.string(), SIZE_MAX);
    }
    return files;
  };
  ASSERT_THAT(Search(*client_, 2), IsOk());
  const auto before = contents();
  for (const unsigned seed : {3, 4, 5}) {
    ASSERT_THAT(Search(*client_, seed), IsOk());
    EXPECT_TRUE(contents() == before) << seed;
  }
}

// Rule 6: no log may hold scores.
TEST_F(SearchClientTest, NothingIsPrinted) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const auto answer = Search(*client_);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(answer, IsOk());
}

// Rule 8, without a call, which would wait forever for gRPC's threads.
TEST_F(SearchClientTest, ForkedProcessIsRefused) {
  ASSERT_THAT(Search(*client_), IsOk());
  EXPECT_TRUE(HoldsInFork([&] { return absl::IsFailedPrecondition(Search(*client_).status()); }));
  EXPECT_THAT(Search(*client_, 2), IsOk());
}

TEST_F(SearchClientTest, WrongTargetsAndOptionsSendNothing) {
  server_.describe = kMessageForEachQuery;  // else they are refused together, whenever that is
  EXPECT_THAT(Search(*client_, std::vector<SearchTarget>()), FailsWith(kInvalid, "targets"));
  EXPECT_THAT(Search(*client_, 1, {.k = 0}), FailsWith(kInvalid, "k must"));
  EXPECT_THAT(
      Search(*client_, {{.features = TargetOf(1)}, {.features = Eigen::RowVectorXf::Zero(8)}}),
      FailsWith(kInvalid, "zero"));
  EXPECT_THAT(
      Search(*client_, {{.features = TargetOf(1), .label = 2},
                        {.features = TargetOf(2), .label = std::numeric_limits<int32_t>::min()}}),
      FailsWith(kInvalid, "label must be between -2147483647"));
  EXPECT_THAT(client_->Search({.collection = "things",
                               .targets = {{.features = TargetOf(1)}},
                               .fingerprint = "another"}),
              FailsWith(kFailedPrecondition, "fingerprint must be that of collection things"));
  EXPECT_TRUE(server_.TakeRequests().empty());
}

TEST_F(SearchClientTest, MoreMemoryThanAllowedIsRefusedBeforeTheQuery) {
  const auto client = NewClient(30'000);
  EXPECT_THAT(Search(*client, {{.features = TargetOf(1)}, {.features = TargetOf(2)}}),
              FailsWith(kExhausted, "max_memory must be at least"));
  EXPECT_TRUE(server_.TakeRequests().empty());
}

// A server could otherwise fill the memory with blocks of answers that are refused.
TEST_F(SearchClientTest, RefusedBlocksAreNotKept) {
  // The small block comes first in the order of digests, in which they are read.
  while (Sha256::Of(things_.TableBlock(0)) < Sha256::Of(things_.TableBlock(1))) {
    things_.id_suffix += "x";
  }
  const auto client = NewClient(30'000);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Search(*client), FailsWith(kExhausted, "row table: max_memory must be at least"));
    EXPECT_EQ(server_.TakeRequests().at(0).known_blocks_size(), 0);
  }
  EXPECT_TRUE(CachedFiles("table-").empty());
}

// Refusing only when the row of the long payload matches would tell a server that the rerun sees.
TEST_F(SearchClientTest, PayloadsTooLongForMemoryAreRefusedWhicheverRowsMatch) {
  things_.long_payload_row = 7;
  const auto client = NewClient(6'000'000);
  for (const unsigned seed : {1, 2, 3}) {
    EXPECT_THAT(Search(*client, seed, {.k = 1, .with_payloads = true}),
                FailsWith(kExhausted, "that the payloads of the matches can have"));
  }
  EXPECT_THAT(Search(*client, 1, {.k = 1}), IsOk());
}

// Rule 3. The server sees when a connection ends, and ranking comes before it.
TEST_F(SearchClientTest, ClientEndsAtADeparture) {
  auto client = NewClient();
  ASSERT_THAT(Search(*client), IsOk());
  client = nullptr;
  const auto ended = std::chrono::steady_clock::now();
  EXPECT_GE(ended - server_.TakeSeen().back().answered,
            SearchInterval({.blocks = things_.blocks()}));
}

// Rule 3. A terminal that takes no text would delay the message, for some labels only.
TEST_F(SearchClientTest, UnknownLabelIsToldAfterTheLastMessage) {
  server_.describe = kMessageForEachQuery;
  std::optional<size_t> sent;
  const SearchTarget target = {.features = TargetOf(1), .label_text = "no such"};
  ASSERT_THAT(client_->Search({.collection = "things", .targets = {target, target}, .k = 1},
                              [&](const std::string& text) {
                                if (!text.starts_with("nothing is found: label must be")) return;
                                EXPECT_FALSE(sent.has_value());
                                sent = server_.TakeRequests().size();
                              }),
              IsOk());
  EXPECT_EQ(sent, 2u);
}

// Fifteen targets make the interval long beside that of one.
TEST_F(SearchClientTest, EveryCallAfterABatchLeavesAtItsDeparture) {
  const auto interval = SearchInterval({.queries = 15, .blocks = things_.blocks()});
  ASSERT_GT(interval, 4 * SearchInterval({.blocks = things_.blocks()}));
  const std::function<void()> calls[] = {
      [&] { EXPECT_THAT(Search(*client_), IsOk()); },
      [&] { EXPECT_THAT(client_->Describe("things"), IsOk()); },
      [&] { EXPECT_THAT(client_->Admin(), IsOk()); },
      [&] { EXPECT_FALSE(client_->Resend({}, std::nullopt, "things").ok()); },
  };
  for (const auto& call : calls) {
    ASSERT_THAT(Search(*client_, std::vector<SearchTarget>(15, {.features = TargetOf(1)})), IsOk());
    const auto answered = server_.TakeSeen().back().answered;
    call();
    const auto seen = server_.TakeSeen();
    const auto left = seen.empty() ? EncryptedServer::Clock::now() : seen.front().arrived;
    EXPECT_GE(left - answered, interval) << &call - calls;
  }
}

// Also after an answer that is an error.
TEST_F(SearchClientTest, CallAfterAResendLeavesAtItsDeparture) {
  const PublishedThings cells(1, CellCode::kScalar8);
  ASSERT_THAT(SaveLastSearch(folder_.path(), {Scheme::kCells, cells.collection, ""}), IsOk());
  const auto sent = EncryptedServer::Clock::now();
  EXPECT_THAT(client_->Resend({.features = RowOfItem(1)}, std::nullopt, "things"),
              FailsWith(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(client_->Describe("things"), IsOk());
  EXPECT_GE(server_.TakeSeen().back().arrived - sent, SearchInterval({}));
}

TEST_F(SearchClientTest, SavedCellsOfACollectionWithoutThemAreDamaged) {
  ASSERT_THAT(SaveLastSearch(folder_.path(), {Scheme::kCells, things_.Collection(), ""}), IsOk());
  EXPECT_THAT(client_->Resend({.features = TargetOf(1)}, std::nullopt, "things"),
              FailsWith(absl::StatusCode::kDataLoss));
}

// The longest interval holds while both searches live, the last one's afterwards.
TEST(Departures, LongestIntervalOfOverlappingSearchesHolds) {
  using std::chrono::seconds, std::chrono::milliseconds;
  Departures departures;
  const auto start = std::chrono::steady_clock::now();
  const auto past = [&] { return std::chrono::steady_clock::now() - start; };
  departures.NoteArrival();
  const auto is_late = [&] { return past() > seconds(9); };
  {
    Departures::Search one(departures), other(departures);
    one.SetWork({.payload_bytes = 100'000'000});
    other.SetWork({});
    EXPECT_THAT(departures.Wait([] { return true; }), FailsWith(kCancelled));
    EXPECT_THAT(departures.Wait(is_late), IsOk());
    EXPECT_GE(past(), milliseconds(110));
    other.SetWork({.payload_bytes = 60'000'000'000});
  }
  Departures::Search last(departures);
  last.SetWork({});
  EXPECT_THAT(departures.Wait(is_late), IsOk());
}

TEST_F(SearchClientTest, CancelledCallEnds) {
  ConnectionOptions options = server_.options;
  std::atomic<bool> cancelled = false;
  options.cancelled = [&] { return cancelled.load(); };
  std::promise<void> ended;
  server_.answer = [&](const v1::SearchEncryptedRequest& request) {
    cancelled = true;
    ended.get_future().wait();
    return things_.Answer(request);
  };
  EXPECT_THAT(Search(*ClientOf(options)), FailsWith(kCancelled));
  ended.set_value();
}

TEST(NextDeparture, IsAMultipleOfTheInterval) {
  using std::chrono::milliseconds;
  const std::chrono::steady_clock::time_point arrived(std::chrono::seconds(1000));
  for (const auto& [past, expected] : {std::pair{0, 50},
                                       {1, 50},
                                       {49'999, 50},
                                       {50'000, 50},
                                       {50'001, 100},
                                       {100'000, 100},
                                       {149'000, 150}}) {
    EXPECT_EQ(NextDeparture(arrived, arrived + std::chrono::microseconds(past), milliseconds(50)),
              arrived + milliseconds(expected))
        << past;
  }
}

TEST(SearchInterval, GrowsWithWhatIsDecrypted) {
  using std::chrono::milliseconds;
  EXPECT_EQ(SearchInterval({}), milliseconds(12));
  EXPECT_EQ(SearchInterval({.blocks = 489}), milliseconds(411));
  EXPECT_EQ(SearchInterval({.blocks = 49}), milliseconds(59));
  EXPECT_EQ(SearchInterval({.queries = 10, .blocks = 4}), milliseconds(123));
  EXPECT_EQ(SearchInterval({.payload_bytes = 60'000'000}), milliseconds(3012));
  EXPECT_EQ(SearchInterval({.filtered_bytes = 1'000'000}), milliseconds(62));
}

TEST(QueriesPerMessage, IsBoundedByBothDirections) {
  EXPECT_EQ(QueriesPerMessage(128, 64, 8000), 798);
  EXPECT_EQ(QueriesPerMessage(128, 32, 1'000'000), 14);
  EXPECT_EQ(QueriesPerMessage(16384, 32, 100'000'000), 1);
}

}  // namespace
}  // namespace privatemail::client::search_client_test
