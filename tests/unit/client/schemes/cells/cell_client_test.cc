#include "privatemail/cell_client.h"

#include <functional>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/items/item_label.h"
#include "tests/testing/published_things.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail::client::cell_client_test {
namespace {

constexpr int kDim = PublishedThings::kDim;

const PublishedThings& Published() {
  static const PublishedThings things(1, CellCode::kFloat16);
  return things;
}
CellClient MakeClient() { return *CellClient::Create(Published().collection, Published().chunks); }
v1::RetrieveCellsResponse MessageOf(int first, int items, bool with_payloads = false) {
  return CellMessage(Published().parameters, first, items, with_payloads);
}

const CellQueryOptions kOptions{
    .cost = {.partition = 0, .ask = 2, .focus = 1, .epsilon = 1}, .items = 6, .k = 3};

PreparedCellQuery Prepare(const CellClient& client, const CellQueryOptions& options = kOptions) {
  const FundedLedger funded;
  SeededBits bits(1);
  return *client.Prepare(NormalRows(1, kDim, 7), options, *funded.ledger, bits);
}

TEST(CellClient, RequestIsCellsAndPublicValuesOnly) {
  const FundedLedger funded;
  const CellClient client = MakeClient();
  SeededBits bits(1);
  SeededBits same_bits(1);
  const Eigen::RowVectorXf query = NormalRows(1, kDim, 7);
  ASSERT_OK_AND_ASSIGN(const CellRelease release,
                       client.scheme().Release(query, kOptions.cost, *funded.ledger, same_bits));
  ASSERT_OK_AND_ASSIGN(PreparedCellQuery prepared,
                       client.Prepare(query, kOptions, *funded.ledger, bits));
  v1::RetrieveCellsRequest expected;
  expected.set_collection("things");
  expected.set_fingerprint(Fingerprint(client.parameters()));
  expected.mutable_cells()->Assign(release.cells.begin(), release.cells.end());
  expected.set_epsilon(1);
  expected.set_items(6);
  EXPECT_EQ(prepared.request.SerializeAsString(), expected.SerializeAsString());

  // k is not sent, and another target's request differs in its cells only.
  CellQueryOptions many = kOptions;
  many.k = 6;
  ASSERT_OK_AND_ASSIGN(PreparedCellQuery other,
                       client.Prepare(NormalRows(1, kDim, 8), many, *funded.ledger, bits));
  *other.request.mutable_cells() = expected.cells();
  EXPECT_EQ(other.request.SerializeAsString(), expected.SerializeAsString());
}

TEST(CellClient, CollectionWithoutClassesHasItemsWithAnyLabelOrNone) {
  const PublishedThings unlabelled(1, CellCode::kFloat16, 1, /*has_classes=*/false);
  ASSERT_OK_AND_ASSIGN(const CellClient client,
                       CellClient::Create(unlabelled.collection, unlabelled.chunks));
  const PreparedCellQuery prepared = Prepare(client);
  v1::RetrieveCellsResponse message = CellMessage(unlabelled.parameters, 0, 4);
  message.set_labels(0, 77);
  for (int i = 1; i < 4; ++i) message.set_labels(i, kNoLabel);
  ASSERT_OK_AND_ASSIGN(const CellQueryResult result, client.Finish(prepared, {message}));
  ASSERT_EQ(result.matches.size(), 3u);
  for (const QueryMatch& match : result.matches) {
    EXPECT_EQ(match.label, match.id == "item 0" ? 77 : kNoLabel);
  }
  message = CellMessage(Published().parameters, 0, 4);
  message.set_labels(2, kNoLabel);
  EXPECT_THAT(MakeClient().Finish(Prepare(MakeClient()), {message}),
              FailsWith(kDataLoss, "label must be one of the collection's 5 classes"));
  // Labels beside anchors that have none.
  EXPECT_THAT(CellClient::Create(unlabelled.collection, Published().chunks),
              FailsWith(kInvalid, "anchors must be 40 rows with 0 labels"));
  EXPECT_THAT(CellClient::Create(Published().collection, unlabelled.chunks),
              FailsWith(kInvalid, "anchors must be 40 rows with 40 labels"));
}

TEST(CellClient, InvalidOptionsAreNotCharged) {
  const FundedLedger funded;
  const CellClient client = MakeClient();
  SeededBits bits(1);
  const std::pair<std::function<void(CellQueryOptions*)>, const char*> faults[] = {
      {[](auto* o) { o->k = 0; }, "k must be between 1 and"},
      {[](auto* o) { o->items = 1; }, "items must be between 2 and"},
      {[](auto* o) { o->items = int64_t{1} << 32; }, "items must be between 2 and"},
      {[](auto* o) { o->cost.partition = 1; }, "partition must be 0, but is 1"},
  };
  for (const auto& [corrupt, part] : faults) {
    CellQueryOptions options = kOptions;
    corrupt(&options);
    EXPECT_THAT(client.Prepare(NormalRows(1, kDim, 7), options, *funded.ledger, bits),
                FailsWith(kInvalid, part));
  }
  EXPECT_EQ(funded.ledger->Show(kUuid)->spent().epsilon, 0);
}

// Oracle: a sort in double.
TEST(CellClient, FinishReturnsNearestItems) {
  const CellClient client = MakeClient();
  CellQueryOptions options = kOptions;
  options.with_payloads = true;
  const PreparedCellQuery query = Prepare(client, options);
  ASSERT_OK_AND_ASSIGN(const CellQueryResult result,
                       client.Finish(query, {MessageOf(0, 4, true), MessageOf(4, 2, true)}));
  EXPECT_EQ(result.candidates, 6);
  EXPECT_EQ(result.items_version, 17u);
  const RowVector target = NormalRows(1, kDim, 7).row(0).cast<double>().normalized();
  std::vector<std::pair<double, int>> expected;
  for (int i = 0; i < 6; ++i) {
    const Eigen::RowVectorXf row = RowOfItem(Published().parameters, i);
    expected.emplace_back((row.cast<double>() - target).squaredNorm(), i);
  }
  std::sort(expected.begin(), expected.end());
  ASSERT_EQ(result.matches.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result.matches[i].id, absl::StrCat("item ", expected[i].second));
    EXPECT_EQ(result.matches[i].label, expected[i].second % 5);
    EXPECT_EQ(result.matches[i].payload, absl::StrCat("{\"i\":", expected[i].second, "}"));
    EXPECT_NEAR(result.matches[i].squared_distance, expected[i].first, 1e-2);
  }
  ASSERT_OK_AND_ASSIGN(const CellQueryResult none, client.Finish(query, {MessageOf(0, 0)}));
  EXPECT_TRUE(none.matches.empty());
}

using Answer = std::vector<v1::RetrieveCellsResponse>;

struct Fault {
  std::function<void(Answer*)> corrupt;
  const char* part;
};

const Fault kFaults[] = {
    {[](Answer* a) { (*a)[1].add_labels(1); }, "message 1: it must have 2 labels and 0 payloads"},
    {[](Answer* a) { (*a)[0].add_payloads("{}"); }, "but has 4 and 1"},
    {[](Answer* a) { (*a)[0].set_labels(2, 77); }, "message 0: label must be one of"},
    {[](Answer* a) { (*a)[0].mutable_codes()->pop_back(); }, "message 0: codes must be whole rows"},
    {[](Answer* a) { (*a)[0].mutable_codes()->resize(3 * 2 * kDim); },
     "it must have a code for each of its 4 items, but has 3"},
    {[](Answer* a) { (*a)[1].mutable_codes()->replace(0, 2, std::string("\x00\x7e", 2)); },
     "message 1: codes must decode to finite values"},
    {[](Answer* a) { (*a)[1].set_ids(0, "item 2"); }, "answer: an item is repeated"},
    {[](Answer* a) { (*a)[1].set_ids(0, "\xff"); }, "an id is not UTF-8"},
    {[](Answer* a) { a->push_back(MessageOf(6, 1)); }, "1 items more than requested"},
    {[](Answer* a) { (*a)[1].set_ids(0, std::string(1 << 16, 'x')); },
     "bytes more than its items can take"},
    {[](Answer* a) { a->resize(4); }, "a second message without items"},
};

TEST(CellClient, CorruptAnswerReturnsDataLossForEveryTarget) {
  const CellClient client = MakeClient();
  PreparedCellQuery query = Prepare(client);
  for (const Fault& fault : kFaults) {
    Answer answer = {MessageOf(0, 4), MessageOf(4, 2)};
    fault.corrupt(&answer);
    for (const unsigned seed : {7U, 8U, 9U}) {
      query.state.target.point = NormalRows(1, kDim, seed).cast<double>();
      EXPECT_THAT(client.Finish(query, answer), FailsWith(kDataLoss, fault.part));
    }
  }
}

TEST(CellAnswer, MaxItemsIsEqualShareOfEveryCell) {
  v1::RetrieveCellsRequest request;
  for (const uint32_t cell : {1U, 4U, 6U}) request.add_cells(cell);
  for (const auto& [items, most] : {std::pair{3U, 3}, {4U, 6}, {6U, 6}, {7U, 9}}) {
    request.set_items(items);
    EXPECT_EQ(MaxItems(request), most);
  }
  request.set_items(0xFFFFFFFF);
  EXPECT_EQ(MaxItems(request), int64_t{0xFFFFFFFF});
}

}  // namespace
}  // namespace privatemail::client::cell_client_test
