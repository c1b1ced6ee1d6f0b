#include "client/schemes/cells/cells_search.h"

#include <functional>

#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "tests/testing/published_things.h"

namespace privatemail::client::cells_search_test {
namespace {

constexpr int kDim = PublishedThings::kDim;

const PublishedThings& Published() {
  static const PublishedThings things(1, CellCode::kFloat16);
  return things;
}
using Collection = std::shared_ptr<const CellsCollection>;

absl::StatusOr<Collection> CollectionOf(const PublishedThings& published) {
  v1::GetCollectionResponse ready = published.collection;
  ready.set_cells_status(v1::CELLS_STATUS_READY);
  return CellsCollection::Create(ready, Sends(published.chunks), {});
}

Collection MakeCollection() { return *CollectionOf(Published()); }

v1::RetrieveCellsResponse MessageOf(int first, int items, bool with_payloads = false) {
  return CellMessage(Published().parameters, first, items, with_payloads);
}

SearchRequest RequestOf(unsigned seed = 7) {
  return {.collection = "things",
          .targets = {{.features = NormalRows(1, kDim, seed)}},
          .k = 3,
          .with_payloads = false,
          .epsilon = 1,
          .ask = 2,
          .items = 6};
}

absl::StatusOr<v1::RetrieveCellsRequest> Prepare(const Collection& collection,
                                                 const SearchRequest& request, Ledger& ledger,
                                                 BitSource& bits, const ClientLimits& limits = {}) {
  PM_ASSIGN_OR_RETURN(const auto search, CellsSearch::Create(collection, request, limits));
  PM_ASSIGN_OR_RETURN(const PreparedSearch prepared,
                      search->Prepare(0, 1, ChargeTo(ledger, kUuid), bits));
  return static_cast<const v1::RetrieveCellsRequest&>(*prepared.message);
}

absl::StatusOr<SearchResult> Search(const Collection& collection, const SearchRequest& request,
                                    const std::vector<v1::RetrieveCellsResponse>& answer,
                                    const ClientLimits& limits = {}) {
  const FundedLedger funded;
  SeededBits bits(1);
  PM_ASSIGN_OR_RETURN(const auto search, CellsSearch::Create(collection, request, limits));
  PM_ASSIGN_OR_RETURN(PreparedSearch prepared,
                      search->Prepare(0, 1, ChargeTo(*funded.ledger, kUuid), bits));
  SearchResult result;
  PM_RETURN_IF_ERROR(
      search->Finish(std::move(prepared), {.value = answer}, absl::MakeSpan(&result, 1)));
  return result;
}

// Before the charge: a server chooses the dimension, and how far its codes expand.
TEST(CellsSearch, DecodedItemsAreLimited) {
  const FundedLedger funded;
  SeededBits bits(1);
  EXPECT_THAT(Prepare(MakeCollection(), RequestOf(), *funded.ledger, bits,
                      {.max_memory = 6 * kDim * 4 - 1}),
              FailsWith(kExhausted, "the features of 6 received items"));
  EXPECT_EQ(funded.ledger->Show(kUuid)->releases, 0);
}

// Whether or not the item matches: a server could see from what follows which one does.
TEST(CellsSearch, LongPayloadIsRefusedInEveryItem) {
  SearchRequest request = RequestOf();
  request.k = 1;
  request.with_payloads = true;
  for (int item = 0; item < 6; ++item) {
    std::vector<v1::RetrieveCellsResponse> answer = {MessageOf(0, 6, true)};
    answer[0].set_payloads(item, "\"" + std::string(1000, 'x') + "\"");
    EXPECT_THAT(Search(MakeCollection(), request, answer, {.max_memory = 64 * 1002}), IsOk());
    EXPECT_THAT(Search(MakeCollection(), request, answer, {.max_memory = 64 * 1001}),
                FailsWith(kExhausted, "the 1002 bytes that the payloads"));
    answer[0].set_payloads(item, "{");
    EXPECT_THAT(Search(MakeCollection(), request, answer), FailsWith(kDataLoss, "payload"));
  }
  request.targets.push_back(request.targets[0]);
  EXPECT_THAT(Search(MakeCollection(), request, {MessageOf(0, 6, true)}, {.max_memory = 64 * 13}),
              FailsWith(kExhausted, "the 14 bytes that the payloads"));
}

TEST(CellsSearch, MessageIsCellsAndPublicValuesOnly) {
  const FundedLedger funded;
  const Collection collection = MakeCollection();
  SeededBits bits(1);
  SeededBits same_bits(1);
  SearchRequest request = RequestOf();
  ASSERT_OK_AND_ASSIGN(
      const CellRelease release,
      collection->scheme.Release(request.targets[0].features, {.ask = 2, .epsilon = 1},
                                 ChargeTo(*funded.ledger, kUuid), same_bits));
  ASSERT_OK_AND_ASSIGN(const v1::RetrieveCellsRequest message,
                       Prepare(collection, request, *funded.ledger, bits));
  v1::RetrieveCellsRequest expected;
  expected.set_collection("things");
  expected.set_fingerprint(Fingerprint(Published().parameters));
  expected.mutable_cells()->Assign(release.cells.begin(), release.cells.end());
  expected.set_epsilon(1);
  expected.set_items(6);
  EXPECT_EQ(message.SerializeAsString(), expected.SerializeAsString());

  // k is not sent, and another target's message differs in its cells only.
  request = RequestOf(8);
  request.k = 6;
  ASSERT_OK_AND_ASSIGN(v1::RetrieveCellsRequest other,
                       Prepare(collection, request, *funded.ledger, bits));
  *other.mutable_cells() = expected.cells();
  EXPECT_EQ(other.SerializeAsString(), expected.SerializeAsString());
}

TEST(CellsSearch, CollectionWithoutClassesHasItemsWithAnyLabelOrNone) {
  const PublishedThings unlabelled(1, CellCode::kFloat16, 1, /*has_classes=*/false);
  ASSERT_OK_AND_ASSIGN(const Collection collection, CollectionOf(unlabelled));
  v1::RetrieveCellsResponse message = CellMessage(unlabelled.parameters, 0, 4);
  message.set_labels(0, 77);
  for (int i = 1; i < 4; ++i) message.set_labels(i, kNoLabel);
  ASSERT_OK_AND_ASSIGN(const SearchResult result, Search(collection, RequestOf(), {message}));
  ASSERT_EQ(result.matches.size(), 3u);
  for (const Match& match : result.matches) {
    EXPECT_EQ(match.label, match.id == "item 0" ? 77 : kNoLabel);
  }
  message = CellMessage(Published().parameters, 0, 4);
  message.set_labels(2, kNoLabel);
  EXPECT_THAT(Search(MakeCollection(), RequestOf(), {message}),
              FailsWith(kDataLoss, "label must be one of the collection's 5 labels"));
  // Labels beside anchors that have none.
  EXPECT_THAT(CellsCollection::Create(unlabelled.collection, Sends(Published().chunks), {}),
              FailsWith(kDataLoss, "anchors must be 40 rows with 0 labels"));
  EXPECT_THAT(CellsCollection::Create(Published().collection, Sends(unlabelled.chunks), {}),
              FailsWith(kDataLoss, "anchors must be 40 rows with 40 labels"));
}

// Parameters are checked against the fingerprint when they are fetched, so a collection that a
// client holds must not stand for one with another fingerprint.
TEST(CellsCollection, IsNotOneOfAnotherFingerprint) {
  v1::GetCollectionResponse now = Published().collection;
  EXPECT_TRUE(MakeCollection()->IsOf(now));
  now.set_fingerprint(std::string(32, 'x'));
  EXPECT_FALSE(MakeCollection()->IsOf(now));
}

TEST(CellsSearch, WrongFieldsAreNotCharged) {
  const FundedLedger funded;
  const Collection collection = MakeCollection();
  SeededBits bits(1);
  const std::pair<std::function<void(SearchRequest*)>, const char*> faults[] = {
      {[](auto* r) { r->k = 0; }, "k must be between 1 and"},
      {[](auto* r) { r->items = 1; }, "items must be between 2 and"},
      {[](auto* r) { r->items = int64_t{1} << 32; }, "items must be between 2 and"},
      {[](auto* r) { r->items = std::nullopt; }, "items must be given, the number of items"},
      {[](auto* r) { r->partition = 1; }, "partition must be 0, but is 1"},
  };
  for (const auto& [corrupt, part] : faults) {
    SearchRequest request = RequestOf();
    corrupt(&request);
    EXPECT_THAT(Prepare(collection, request, *funded.ledger, bits), FailsWith(kInvalid, part));
  }
  EXPECT_EQ(funded.ledger->Show(kUuid)->spent().epsilon, 0);
}

// Oracle: a sort in double.
TEST(CellsSearch, FinishReturnsNearestItems) {
  SearchRequest request = RequestOf();
  request.with_payloads = true;
  ASSERT_OK_AND_ASSIGN(
      const SearchResult result,
      Search(MakeCollection(), request, {MessageOf(0, 4, true), MessageOf(4, 2, true)}));
  EXPECT_EQ(result.cells->candidates, 6);
  EXPECT_EQ(result.cells->items_version, 17u);
  const RowVector target = NormalRows(1, kDim, 7).row(0).cast<double>().normalized();
  std::vector<std::pair<double, int>> expected;
  for (int i = 0; i < 6; ++i) {
    const Eigen::RowVectorXf row = RowOfItem(i);
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
  ASSERT_OK_AND_ASSIGN(const SearchResult none,
                       Search(MakeCollection(), request, {MessageOf(0, 0)}));
  EXPECT_TRUE(none.matches.empty());
}

using Answer = std::vector<v1::RetrieveCellsResponse>;

const std::pair<std::function<void(Answer*)>, const char*> kFaults[] = {
    {[](Answer* a) { (*a)[1].add_labels(1); }, "message 1: it must have 2 labels"},
    {[](Answer* a) { (*a)[0].add_payloads("{}"); }, "but has 4 and 1"},
    {[](Answer* a) { (*a)[0].set_labels(2, 77); }, "message 0: label must be one of"},
    {[](Answer* a) { (*a)[0].mutable_codes()->pop_back(); }, "message 0: codes must be whole rows"},
    {[](Answer* a) { (*a)[0].mutable_codes()->resize(3 * 2 * kDim); },
     "it must have a code for each"},
    {[](Answer* a) { (*a)[1].mutable_codes()->replace(0, 2, std::string("\x00\x7e", 2)); },
     "codes must decode to finite"},
    {[](Answer* a) { (*a)[1].set_ids(0, "item 2"); }, "answer: an item is repeated"},
    {[](Answer* a) { (*a)[1].set_ids(0, "\xff"); }, "an id is not UTF-8"},
    {[](Answer* a) { a->push_back(MessageOf(6, 1)); }, "1 items more than requested"},
    {[](Answer* a) { (*a)[1].set_ids(0, std::string(1 << 16, 'x')); }, "bytes more than its items"},
    {[](Answer* a) { a->resize(4); }, "a second message without items"},
};

TEST(CellsSearch, CorruptAnswerReturnsDataLossForEveryTarget) {
  const Collection collection = MakeCollection();
  for (const auto& [corrupt, part] : kFaults) {
    Answer answer = {MessageOf(0, 4), MessageOf(4, 2)};
    corrupt(&answer);
    for (const unsigned seed : {7U, 8U, 9U}) {
      EXPECT_THAT(Search(collection, RequestOf(seed), answer), FailsWith(kDataLoss, part));
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
}  // namespace privatemail::client::cells_search_test
