// Oracle: sorts in double of the image's rows; 64-bit integer products and xors in plain loops.
#include "privatemail/two_server_client.h"

#include <time.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/testing/fake_image.h"

namespace privatemail::client::two_server_client_test {
namespace {

using ScoreRequests = Halves<v1::ScoreRequest>;
using FetchRequests = Halves<v1::FetchListsRequest>;

const FakeImage& Fake() {
  static const FakeImage fake;
  return fake;
}

absl::StatusOr<TwoServerClient> Create(const FakeImage& fake, std::optional<v1::ImageTable> table,
                                       const ClientLimits& limits = {}) {
  absl::StatusOr<TwoServerImage> image =
      TwoServerImage::Create(fake.things.parameters, {fake.Served("north"), fake.Served("south")});
  if (!image.ok()) return image.status();
  return TwoServerClient::Create(fake.things.collection, fake.things.chunks, *std::move(image),
                                 std::move(table), limits);
}

TwoServerClient MakeClient() { return *Create(Fake(), Fake().table); }

Eigen::RowVectorXf Target(unsigned seed) { return NormalRows(1, PublishedThings::kDim, seed); }

RowVector UnitTarget(unsigned seed) { return Target(seed).cast<double>().normalized(); }

// As PublishedThings makes them.
Anchors ThingsAnchors() {
  Anchors anchors{NormalRows(PublishedThings::kAnchors, PublishedThings::kDim, 1), {}};
  for (int i = 0; i < PublishedThings::kAnchors; ++i) {
    anchors.labels.push_back(i % PublishedThings::kClasses);
    anchors.features(i, i % PublishedThings::kClasses) += 3;
  }
  return anchors;
}

// Rows by their distance to the target, nearest first, of those given.
std::vector<int> SortedRows(unsigned seed, std::vector<int> rows) {
  const auto distance = [&](int row) {
    return (Fake().rows.row(row).cast<double>() - UnitTarget(seed)).squaredNorm();
  };
  std::sort(rows.begin(), rows.end(), [&](int a, int b) { return distance(a) < distance(b); });
  return rows;
}

std::vector<int> AllRows() {
  std::vector<int> rows(FakeImage::kItems);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// The lists that both servers' selections name.
std::vector<int64_t> ListsOf(const FetchRequests& requests, int64_t lists) {
  std::vector<int64_t> named;
  for (int i = 0; i < requests.a.selections_size(); ++i) {
    for (int64_t c = 0; c < lists; ++c) {
      const auto bit = [&](const v1::FetchListsRequest& request) {
        return static_cast<uint8_t>(request.selections(i)[static_cast<size_t>(c / 8)]) >> (c % 8) &
               1;
      };
      if (bit(requests.a) != bit(requests.b)) named.push_back(c);
    }
  }
  return named;
}

struct Answered {
  std::optional<FetchRequests> payload_requests;
  absl::StatusOr<TwoServerResult> result;
};

using CorruptFn = std::function<void(Halves<std::string>*)>;

// A whole query; corrupt_payloads, corrupt: may be null.
Answered RunQuery(const TwoServerClient& client, unsigned seed, const TwoServerOptions& options,
                  const CorruptFn& corrupt = nullptr, const CorruptFn& corrupt_payloads = nullptr) {
  SeededBits bits(seed);
  PreparedTwoServerQuery query = *client.Prepare(Target(seed), options, nullptr, bits);
  Halves<std::string> answers =
      std::visit([](const auto& requests) { return Fake().Answers(requests); }, query.requests);
  if (corrupt) corrupt(&answers);
  Answered answered{*client.Rank(answers, &query.state, bits), absl::UnknownError("not finished")};
  Halves<std::string> payloads;
  if (answered.payload_requests) payloads = Fake().Answers(*answered.payload_requests);
  if (corrupt_payloads) corrupt_payloads(&payloads);
  answered.result = client.Finish(std::move(query.state), payloads);
  return answered;
}

void ExpectMatches(const TwoServerResult& result, unsigned seed, const std::vector<int>& expected,
                   bool with_payloads, double tolerance) {
  ASSERT_EQ(result.matches.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const int row = expected[i];
    const QueryMatch& match = result.matches[i];
    EXPECT_EQ(match.id, FakeImage::IdOf(row));
    EXPECT_EQ(match.label, row % PublishedThings::kClasses);
    EXPECT_EQ(match.payload, with_payloads ? FakeImage::PayloadOf(row) : "");
    EXPECT_NEAR(match.squared_distance,
                (Fake().rows.row(row).cast<double>() - UnitTarget(seed)).squaredNorm(), tolerance);
  }
}

TEST(TwoServerClient, ScoresRankAllItems) {
  const TwoServerClient client = MakeClient();
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    for (const bool with_payloads : {false, true}) {
      const TwoServerOptions options{
          .mode = TwoServerMode::kScores, .k = 8, .with_payloads = with_payloads};
      const Answered answered = RunQuery(client, seed, options);
      ASSERT_THAT(answered.result, IsOk());
      EXPECT_EQ(answered.result->candidates, FakeImage::kItems);
      EXPECT_EQ(answered.result->items_version, 17u);
      std::vector<int> nearest = SortedRows(seed, AllRows());
      nearest.resize(8);
      ExpectMatches(*answered.result, seed, nearest, with_payloads, 2e-3);
    }
  }
}

TEST(TwoServerClient, EqualScoresAreOrderedByRow) {
  FakeImage fake;
  for (const size_t row : {4U, 9U, 20U}) fake.scores[row] = fake.scores[2];
  const TwoServerClient client = *Create(fake, fake.table);
  SeededBits bits(1);
  PreparedTwoServerQuery query =
      *client.Prepare(RowOfItem(fake.things.parameters, 2),
                      {.mode = TwoServerMode::kScores, .k = 4}, nullptr, bits);
  ASSERT_THAT(
      client.Rank(fake.Answers(std::get<ScoreRequests>(query.requests)), &query.state, bits),
      IsOk());
  ASSERT_OK_AND_ASSIGN(const TwoServerResult result, client.Finish(std::move(query.state)));
  std::vector<std::string> ids;
  for (const QueryMatch& match : result.matches) ids.push_back(match.id);
  EXPECT_THAT(ids, ::testing::ElementsAre("item 02", "item 04", "item 09", "item 20"));
  EXPECT_GE(result.matches[0].squared_distance, 0);
}

TEST(TwoServerClient, ListsRankItemsOfNearestCellsOnce) {
  const TwoServerClient client = MakeClient();
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    for (const int64_t lists : {1, 4, 10}) {
      const TwoServerOptions options{.lists = lists, .k = 5, .with_payloads = true};
      SeededBits bits(seed);
      ASSERT_OK_AND_ASSIGN(const PreparedTwoServerQuery query,
                           client.Prepare(Target(seed), options, nullptr, bits));
      const auto& requests = std::get<FetchRequests>(query.requests);
      const std::vector<int64_t> fetched = ListsOf(requests, 10);
      EXPECT_EQ(query.state.lists(), fetched);
      EXPECT_TRUE(std::is_sorted(fetched.begin(), fetched.end()));
      ASSERT_EQ(std::ssize(fetched), lists);
      std::set<int> rows;
      for (const int64_t list : fetched) {
        for (int i = 0; i < FakeImage::kListRows; ++i) {
          rows.insert(static_cast<int>(3 * list + i) % FakeImage::kItems);
        }
      }
      const Answered answered = RunQuery(client, seed, options);
      ASSERT_THAT(answered.result, IsOk());
      EXPECT_EQ(answered.result->candidates, std::ssize(rows));
      std::vector<int> nearest = SortedRows(seed, {rows.begin(), rows.end()});
      nearest.resize(5);
      ExpectMatches(*answered.result, seed, nearest, true, 1e-6);
    }
  }
}

TEST(TwoServerClient, FetchedListsAreOfNearestCells) {
  const TwoServerClient client = MakeClient();
  const Anchors anchors = ThingsAnchors();
  Matrix centroids = Matrix::Zero(10, PublishedThings::kDim);
  for (int i = 0; i < PublishedThings::kAnchors; ++i) {
    centroids.row(i % 10) += anchors.features.row(i).cast<double>().normalized() / 4;
  }
  for (unsigned seed = 1; seed < 20; ++seed) {
    SeededBits bits(seed);
    ASSERT_OK_AND_ASSIGN(const PreparedTwoServerQuery query,
                         client.Prepare(Target(seed), {.lists = 3}, nullptr, bits));
    std::vector<int64_t> cells(10);
    std::iota(cells.begin(), cells.end(), 0);
    std::sort(cells.begin(), cells.end(), [&](int64_t a, int64_t b) {
      return (centroids.row(a) - UnitTarget(seed)).squaredNorm() <
             (centroids.row(b) - UnitTarget(seed)).squaredNorm();
    });
    cells.resize(3);
    std::sort(cells.begin(), cells.end());
    EXPECT_EQ(ListsOf(std::get<FetchRequests>(query.requests), 10), cells);
  }
}

TEST(TwoServerClient, RequestsHoldSharesAndPublicValuesOnly) {
  const TwoServerClient client = MakeClient();
  SeededBits bits(1);
  ASSERT_OK_AND_ASSIGN(PreparedTwoServerQuery query,
                       client.Prepare(Target(1), {.mode = TwoServerMode::kScores}, nullptr, bits));
  auto [a, b] = std::get<ScoreRequests>(query.requests);
  EXPECT_EQ(a.seed().size(), 16u);
  EXPECT_EQ(b.values().size(), 4u * PublishedThings::kDim);
  // The shares add up to the query.
  const std::vector<uint32_t> mask = ExpandScoreSeed(a.seed(), PublishedThings::kDim);
  for (size_t i = 0; i < mask.size(); ++i) {
    uint32_t value = 0;
    std::memcpy(&value, b.values().data() + 4 * i, 4);
    EXPECT_NEAR(static_cast<int32_t>(value + mask[i]),
                16384 * UnitTarget(1)[static_cast<Eigen::Index>(i)], .5001);
  }
  for (v1::ScoreRequest* request : {&a, &b}) {
    request->clear_share();
    v1::ScoreRequest expected;
    expected.set_collection("things");
    expected.set_digest(client.image().digest());
    EXPECT_EQ(request->SerializeAsString(), expected.SerializeAsString());
  }

  ASSERT_OK_AND_ASSIGN(query, client.Prepare(Target(1), {.lists = 3}, nullptr, bits));
  auto [fetch_a, fetch_b] = std::get<FetchRequests>(query.requests);
  for (v1::FetchListsRequest* request : {&fetch_a, &fetch_b}) {
    ASSERT_EQ(request->selections_size(), 3);
    for (const std::string& selection : request->selections()) {
      ASSERT_EQ(selection.size(), 2u);
      EXPECT_EQ(static_cast<uint8_t>(selection[1]) >> 2, 0) << "bits from K on are 0";
    }
    request->clear_selections();
    v1::FetchListsRequest expected;
    expected.set_collection("things");
    expected.set_digest(client.image().digest());
    EXPECT_EQ(request->SerializeAsString(), expected.SerializeAsString());
  }
}

TEST(TwoServerClient, PayloadsOfFewRowsAreStillKFetches) {
  const TwoServerClient client = MakeClient();
  // One list of 6 items in at most three lists of payloads, for k 20.
  const Answered answered = RunQuery(client, 3, {.lists = 1, .k = 20, .with_payloads = true});
  ASSERT_THAT(answered.result, IsOk());
  EXPECT_EQ(answered.result->matches.size(), 6u);
  ASSERT_TRUE(answered.payload_requests.has_value());
  EXPECT_EQ(answered.payload_requests->a.group(), 1u);
  const std::vector<int64_t> lists = ListsOf(*answered.payload_requests, 8);
  EXPECT_EQ(lists.size(), 20u);
  EXPECT_TRUE(std::is_sorted(lists.begin(), lists.end()));
  for (const QueryMatch& match : answered.result->matches) {
    EXPECT_EQ(match.payload, match.id == "item 05"
                                 ? ""
                                 : absl::StrCat("{\"i\":", std::stoi(match.id.substr(5)), "}"));
  }
}

TEST(TwoServerClient, WrongAnswersAreReportedAfterAllFetches) {
  const TwoServerClient client = MakeClient();
  const TwoServerOptions options{.lists = 3, .k = 4, .with_payloads = true};
  const CorruptFn faults[] = {
      [](auto* answers) { answers->a[0] ^= 1; },
      [](auto* answers) { answers->b.back() ^= 1; },
      [](auto* answers) { answers->b.pop_back(); },
      [](auto* answers) { answers->a += 'x'; },
      [](auto* answers) { answers->a.clear(); },
      // The lists of another partition or place.
      [](auto* answers) {
        const size_t bytes = answers->a.size() / 3;
        for (std::string* one : {&answers->a, &answers->b}) {
          std::rotate(one->begin(), one->begin() + static_cast<std::ptrdiff_t>(bytes), one->end());
        }
      },
  };
  std::set<std::vector<int64_t>> random;
  for (const CorruptFn& fault : faults) {
    for (const unsigned seed : {1U, 2U}) {
      const Answered answered = RunQuery(client, seed, options, fault);
      ASSERT_TRUE(answered.payload_requests.has_value());
      EXPECT_EQ(answered.payload_requests->a.selections_size(), 4);
      EXPECT_THAT(answered.result, FailsWith(kDataLoss, "an answer of server A or B is wrong"));
      EXPECT_THAT(answered.result, ::testing::Not(FailsWith(kDataLoss, "of group")))
          << "users paste error messages into reports";
      random.insert(ListsOf(*answered.payload_requests, 8));
    }
  }
  EXPECT_GE(random.size(), 2u);  // the same seed draws the same lists
  for (const CorruptFn& fault : {faults[0], faults[1], faults[2], faults[4]}) {
    EXPECT_THAT(RunQuery(client, 1, options, nullptr, fault).result,
                FailsWith(kDataLoss, "an answer of server A or B is wrong"));
  }
  EXPECT_THAT(RunQuery(client, 1, {.mode = TwoServerMode::kScores}, faults[2]).result,
              FailsWith(kDataLoss, "the answer of server B must have 90 bytes, but has 89"));
}

double ThreadSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Reading of all lists takes as long whichever is wrong: to end at the first took 5 times less.
TEST(TwoServerClient, TimeDoesNotTellWhichListWasWrong) {
  const TwoServerClient client = MakeClient();
  SeededBits bits(1);
  ASSERT_OK_AND_ASSIGN(PreparedTwoServerQuery query,
                       client.Prepare(Target(1), {.lists = 10, .k = 3}, nullptr, bits));
  const Halves<std::string> right = Fake().Answers(std::get<FetchRequests>(query.requests));
  Halves<std::string> first_wrong = right;
  first_wrong.a.front() ^= 1;
  Halves<std::string> last_wrong = right;
  last_wrong.a.back() ^= 1;
  const auto seconds = [&](const Halves<std::string>& answers) {
    const double start = ThreadSeconds();
    for (int i = 0; i < 100; ++i) EXPECT_THAT(client.Rank(answers, &query.state, bits), IsOk());
    EXPECT_FALSE(query.state.answers().ok());
    return ThreadSeconds() - start;
  };
  std::vector<double> ratios;
  for (int i = 0; i < 15; ++i) ratios.push_back(seconds(first_wrong) / seconds(last_wrong));
  std::nth_element(ratios.begin(), ratios.begin() + 7, ratios.end());
  EXPECT_GT(ratios[7], .6);
}

TEST(TwoServerClient, EveryShareIsFresh) {
  const TwoServerClient client = MakeClient();
  SeededBits bits(1);
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK_AND_ASSIGN(
        const PreparedTwoServerQuery query,
        client.Prepare(Target(1), {.mode = TwoServerMode::kScores}, nullptr, bits));
    EXPECT_TRUE(seen.insert(std::get<ScoreRequests>(query.requests).a.seed()).second);
  }
}

TEST(TwoServerClient, EpsilonChoosesAsTheCellsSchemeAndChargesOnce) {
  const TwoServerClient client = MakeClient();
  const FundedLedger funded;
  const FundedLedger other;
  ASSERT_OK_AND_ASSIGN(const CellScheme scheme,
                       CellScheme::Create(Fake().things.parameters, ThingsAnchors()));
  for (const unsigned seed : {1U, 2U, 3U}) {
    SeededBits bits(seed);
    SeededBits same_bits(seed);
    ASSERT_OK_AND_ASSIGN(const CellRelease release,
                         scheme.Release(Target(seed), {.ask = 3, .focus = 3, .epsilon = 2},
                                        *other.ledger, same_bits));
    ASSERT_OK_AND_ASSIGN(
        const PreparedTwoServerQuery query,
        client.Prepare(Target(seed), {.lists = 3, .epsilon = 2}, funded.ledger.get(), bits));
    EXPECT_EQ(ListsOf(std::get<FetchRequests>(query.requests), 10), release.cells);
    const TwoServerGuarantee& guarantee = query.state.guarantee();
    ASSERT_TRUE(guarantee.both_bounded.has_value());
    EXPECT_EQ(*guarantee.both_bounded, release.guarantee);
    EXPECT_EQ(funded.ledger->Show(kUuid)->releases, seed);
  }
  EXPECT_DOUBLE_EQ(funded.ledger->Show(kUuid)->spent().epsilon, 6);
}

TEST(TwoServerClient, FailureWhileSamplingStaysCharged) {
  const TwoServerClient client = MakeClient();
  const FundedLedger funded;
  ExpectFailureWhileSamplingStaysCharged(funded, [&](BitSource& bits) {
    return client.Prepare(Target(1), {.lists = 3, .epsilon = 2}, funded.ledger.get(), bits);
  });
  FailingBits none(0);
  for (const auto mode : {TwoServerMode::kScores, TwoServerMode::kLists}) {
    EXPECT_THAT(client.Prepare(Target(1), {.mode = mode}, nullptr, none),
                FailsWith(kUnavailable, "no bits"));
  }
}

TEST(TwoServerClient, InvalidOptionsAreNotCharged) {
  const TwoServerClient client = MakeClient();
  const FundedLedger funded;
  const std::pair<TwoServerOptions, const char*> faults[] = {
      {{.k = 0}, "k must be between 1 and 10000, but is 0"},
      {{.k = 65, .with_payloads = true}, "k must be between 1 and 64, but is 65"},
      {{.lists = 0}, "lists must be between 1 and 10, but is 0"},
      {{.lists = 11}, "lists must be between 1 and 10, but is 11"},
      {{.lists = 10, .epsilon = 1}, "must be between 1 and 9, but is 10"},
      {{.partition = 1}, "partition must be 0, but is 1"},
      {{.epsilon = 0}, "epsilon must be"},
      {{.epsilon = std::nan("")}, "epsilon must be"},
      {{.epsilon = 1, .with_payloads = true}, "payloads must not be fetched with epsilon"},
      {{.mode = TwoServerMode::kScores, .epsilon = 1}, "epsilon must not be given with mode"},
  };
  SeededBits bits(1);
  for (const auto& [options, part] : faults) {
    EXPECT_THAT(client.Prepare(Target(1), options, funded.ledger.get(), bits),
                FailsWith(kInvalid, part));
  }
  EXPECT_THAT(client.Prepare(NormalRows(1, 7, 1), {.epsilon = 1}, funded.ledger.get(), bits),
              FailsWith(kInvalid, "query has the wrong dimension"));
  EXPECT_THAT(client.Prepare(Target(1) * 0, {}, nullptr, bits), FailsWith(kInvalid, "query row 0"));
  EXPECT_THAT(client.Prepare(Target(1), {.epsilon = 1}, nullptr, bits),
              FailsWith(kInvalid, "epsilon needs a ledger"));
  EXPECT_EQ(funded.ledger->Show(kUuid)->releases, 0);
}

TEST(TwoServerClient, UnusableModeReturnsFailedPrecondition) {
  ASSERT_OK_AND_ASSIGN(const TwoServerClient no_table, Create(Fake(), std::nullopt));
  EXPECT_THAT(no_table.CheckOptions({.mode = TwoServerMode::kScores}),
              FailsWith(kFailedPrecondition, "table of ids and labels"));
  EXPECT_THAT(no_table.CheckOptions({}), IsOk());
  const FakeImage coordinates(17, CellCode::kNone);
  ASSERT_OK_AND_ASSIGN(const TwoServerClient none, Create(coordinates, coordinates.table));
  EXPECT_THAT(none.CheckOptions({}), FailsWith(kFailedPrecondition, "cell_code is none"));
  EXPECT_THAT(none.CheckOptions({.mode = TwoServerMode::kScores}), IsOk());
}

TEST(TwoServerClient, WrongTableReturnsDataLoss) {
  v1::ImageTable table = Fake().table;
  table.set_labels(3, 77);
  EXPECT_THAT(Create(Fake(), table), FailsWith(kDataLoss, "label must be one of"));
  table = Fake().table;
  table.mutable_ids()->RemoveLast();
  EXPECT_THAT(Create(Fake(), table), FailsWith(kDataLoss, "must have 30 ids and labels"));
}

TEST(TwoServerClient, LargeAnswersReturnResourceExhausted) {
  const auto limited = [](const FakeImage& fake) {
    return *Create(fake, fake.table, {.max_memory = 50'000});
  };
  EXPECT_THAT(limited(Fake()).CheckOptions({.lists = 1}), IsOk());
  EXPECT_THAT(limited(Fake()).CheckOptions({.lists = 10}), IsOk());
  FakeImage large;
  large.header.mutable_payloads()->set_list_bytes(40'000);
  EXPECT_THAT(limited(large).CheckOptions({.with_payloads = true}),
              FailsWith(kExhausted, "memory of the answers must be at most 50000"));
  EXPECT_THAT(limited(large).CheckOptions({}), IsOk());
  // Decoded items count, whose codes may be much shorter.
  FakeImage many;
  many.header.set_items(1'000);
  many.table.clear_ids();
  many.table.clear_labels();
  for (int i = 0; i < 1'000; ++i) {
    many.table.add_ids("");
    many.table.add_labels(0);
  }
  v1::ListGroup* lists = many.header.mutable_partitions(0);
  lists->set_rows(300);
  lists->set_list_bytes(kListChecksumBytes +
                        300 * ItemRecordBytes(many.header.id_bytes(), many.header.code_bytes()));
  many.header.mutable_payloads()->set_lists(250);
  many.header.mutable_sections(1)->set_bytes(1'000 * many.header.code_bytes());
  many.header.mutable_sections(2)->set_bytes(10 * 300 * 4);
  many.header.mutable_sections(3)->set_bytes(1'000 * PublishedThings::kDim * 2);
  ASSERT_LT(3 * lists->list_bytes(), 50'000u);
  EXPECT_THAT(limited(many).CheckOptions({.lists = 1}), FailsWith(kExhausted, "memory of the"));
}

TEST(TwoServerClient, GuaranteeNamesWhatEachPartyLearns) {
  const TwoServerClient client = MakeClient();
  SeededBits bits(1);
  const auto guarantee_of = [&](const TwoServerOptions& options) {
    return client.Prepare(Target(1), options, nullptr, bits)->state.guarantee();
  };
  const TwoServerGuarantee scores = guarantee_of({.mode = TwoServerMode::kScores});
  EXPECT_EQ(scores.one.a, Secrecy::kPerfect);
  EXPECT_EQ(scores.one.b, Secrecy::kComputational);
  EXPECT_THAT(scores.assumption, ::testing::HasSubstr("AES-128"));
  EXPECT_EQ(scores.both, "the query");
  const TwoServerGuarantee lists = guarantee_of({.lists = 3, .k = 4, .with_payloads = true});
  EXPECT_EQ(lists.one.a, Secrecy::kPerfect);
  EXPECT_EQ(lists.one.b, Secrecy::kPerfect);
  EXPECT_EQ(lists.assumption, "");
  EXPECT_EQ(lists.both,
            "the 3 fetched lists, which are those of the cells nearest to the query, and the 4 "
            "fetched lists of payloads");
  for (const TwoServerGuarantee& guarantee : {scores, lists}) {
    EXPECT_FALSE(guarantee.both_bounded.has_value());
    EXPECT_EQ(guarantee.source, "PRIVACY.md section 9");
  }
}

}  // namespace
}  // namespace privatemail::client::two_server_client_test
