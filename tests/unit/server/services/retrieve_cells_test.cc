// RetrieveCells over the network.
#include <cmath>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/items/item_code.h"
#include "common/rpc/status.h"
#include "tests/unit/server/services/daemon_state.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

using ::testing::SizeIs;

constexpr int kItems = 60;

class RetrieveCellsTest : public ServiceTest {
 protected:
  static v1::CreateCollectionRequest FruitWithCells() {
    v1::CreateCollectionRequest request = Fruit();
    request.add_cells(3);
    request.add_cells(5);
    request.set_cell_code(v1::CELL_CODE_SCALAR8);
    return request;
  }

  // Payloads hold `more` and the item's id.
  void Fill(const std::string& more) {
    std::vector<Item> items = MakeItems(kItems, 1);
    for (Item& item : items) item.payload = "{\"file\":\"" + more + item.id + ".png\"}";
    ASSERT_THAT(Upsert({Message("fruit", items)}), IsOk());
    ASSERT_THAT(Build("fruit"), IsOk());
  }

  // Built, with cells ready.
  v1::GetCollectionResponse MakeReady(const std::string& more = "") {
    EXPECT_THAT(Create(FruitWithCells()), IsOk());
    Fill(more);
    return WaitUntilReady();
  }

  v1::GetCollectionResponse WaitUntilReady() const {
    EXPECT_TRUE(WaitUntil([&] { return Get("fruit").cells_status() == v1::CELLS_STATUS_READY; }))
        << Get("fruit").cells();
    return Get("fruit");
  }

  static v1::RetrieveCellsRequest RequestFor(const v1::GetCollectionResponse& collection) {
    v1::RetrieveCellsRequest request;
    request.set_collection("fruit");
    request.set_fingerprint(collection.fingerprint());
    request.set_partition(1);
    request.add_cells(1);
    request.add_cells(4);
    request.set_epsilon(2);
    request.set_items(11);
    return request;
  }

  struct Answer {
    absl::Status status;
    std::vector<v1::RetrieveCellsResponse> messages;

    std::vector<std::string> ids() const {
      std::vector<std::string> all;
      for (const auto& m : messages) all.insert(all.end(), m.ids().begin(), m.ids().end());
      return all;
    }
  };
  Answer AskCells(const v1::RetrieveCellsRequest& request) const {
    grpc::ClientContext context;
    const auto reader = retrieval_->RetrieveCells(&context, request);
    Answer answer;
    v1::RetrieveCellsResponse message;
    while (reader->Read(&message)) answer.messages.push_back(message);
    answer.status = FromGrpc(reader->Finish());
    return answer;
  }
};

// `build --wait` must not end while the cells of the former build still answer.
TEST_F(RetrieveCellsTest, ShareTellsThatCellsOfAnEarlierBuildAnswer) {
  v1::RetrieveCellsRequest request = RequestFor(MakeReady());
  for (int round = 1; round <= 20; ++round) {
    Fill(absl::StrCat("round", round));
    ASSERT_TRUE(WaitUntil([&] { return !Get("fruit").has_cells_share(); }));
    const Answer answer = AskCells(request);
    ASSERT_THAT(answer.status, IsOk());
    EXPECT_EQ(answer.messages.front().items_version(), static_cast<uint64_t>(kItems * (round + 1)));
  }
}

TEST_F(RetrieveCellsTest, ReturnsCodedItemsOnceUpToLimit) {
  v1::RetrieveCellsRequest request = RequestFor(MakeReady());
  PublicParameters coded;
  coded.feature_dim = kDim;
  coded.cell_code = CellCode::kScalar8;
  for (const bool payloads : {false, true}) {
    request.set_with_payloads(payloads);
    const Answer answer = AskCells(request);
    ASSERT_THAT(answer.status, IsOk());
    const std::vector<std::string> ids = answer.ids();
    EXPECT_THAT(std::set<std::string>(ids.begin(), ids.end()), SizeIs(ids.size()));
    EXPECT_GE(ids.size(), 6u);  // one cell's
    EXPECT_LE(ids.size(), 12u);
    const std::vector<Item> items = MakeItems(kItems, 1);
    for (const v1::RetrieveCellsResponse& message : answer.messages) {
      EXPECT_EQ(message.items_version(), static_cast<uint64_t>(kItems));
      ASSERT_OK_AND_ASSIGN(const FloatMatrix rows, DecodeItemCodes(coded, message.codes()));
      ASSERT_EQ(rows.rows(), message.ids_size());
      ASSERT_EQ(message.payloads_size(), payloads ? message.ids_size() : 0);
      for (int i = 0; i < message.ids_size(); ++i) {
        const Item& item = items[static_cast<size_t>(std::stoi(message.ids(i).substr(5)))];
        EXPECT_EQ(message.labels(i), item.label);
        const auto features =
            Eigen::Map<const Eigen::RowVectorXf>(item.features.data(), kDim).normalized();
        EXPECT_LT((rows.row(i) - features).cwiseAbs().maxCoeff(), 1. / 254 + 1e-6);
        if (payloads) {
          EXPECT_EQ(message.payloads(i), "{\"file\":\"" + item.id + ".png\"}");
        }
      }
    }
  }
  request.set_items(0xFFFFFFFF);
  EXPECT_THAT(AskCells(request).ids(), SizeIs(kItems)) << "all items";
}

TEST_F(RetrieveCellsTest, InvalidFieldIsNamed) {
  const v1::RetrieveCellsRequest good = RequestFor(MakeReady());
  ASSERT_THAT(AskCells(good).status, IsOk());
  const std::pair<std::function<void(v1::RetrieveCellsRequest*)>, const char*> faults[] = {
      {[](auto* r) { r->set_partition(2); }, "partition must be between 0 and 1, but is 2"},
      {[](auto* r) { r->clear_cells(); }, "number of cells must be between 1 and 4, but is 0"},
      {[](auto* r) {
         for (int i = 0; i < 3; ++i) r->add_cells(4);
       },
       "number of cells must be between 1 and 4, but is 5"},
      {[](auto* r) { r->set_cells(1, 5); }, "cells[1] must be between 0 and 4, but is 5"},
      {[](auto* r) { r->set_cells(1, 1); },
       "cells[1] must be more than the one before, 1, but is 1"},
      {[](auto* r) { r->set_epsilon(0); }, "epsilon must be finite and positive, but is 0"},
      {[](auto* r) { r->set_epsilon(std::nan("")); }, "epsilon must be finite and positive"},
      {[](auto* r) { r->set_epsilon(INFINITY); }, "epsilon must be finite and positive"},
      {[](auto* r) { r->set_items(1); },
       "items must be at least one for each of the 2 cells, but is 1"},
  };
  for (const auto& [spoil, part] : faults) {
    v1::RetrieveCellsRequest request = good;
    spoil(&request);
    const Answer answer = AskCells(request);
    EXPECT_THAT(answer.status, FailsWith(kInvalid, part));
    EXPECT_THAT(answer.messages, SizeIs(0));
  }
  v1::RetrieveCellsRequest request = good;
  request.set_fingerprint(std::string(32, 'x'));
  EXPECT_THAT(AskCells(request).status, FailsWith(kFailedPrecondition, "fingerprint mismatch"));
}

TEST_F(RetrieveCellsTest, LargeAnswerIsSplitIntoMessagesNoneOfThemEmpty) {
  const int64_t large = 100'000;  // bytes of payload: 20 such items at most in a message
  v1::RetrieveCellsRequest request = RequestFor(MakeReady(std::string(large, 'x')));
  request.set_with_payloads(true);
  request.set_items(5 * kItems);
  for (const std::vector<uint32_t>& cells : {std::vector<uint32_t>{1, 4}, {3}}) {
    request.mutable_cells()->Assign(cells.begin(), cells.end());
    const Answer before = AskCells(request);
    ASSERT_THAT(before.status, IsOk());
    EXPECT_EQ(CallsIn(directory_ / "audit.jsonl").back()["rows"], before.ids().size());
    const std::vector<std::string> ids = before.ids();
    EXPECT_THAT(std::set<std::string>(ids.begin(), ids.end()), SizeIs(ids.size())) << "each once";
    ASSERT_THAT(before.messages, SizeIs(::testing::Ge(2u)));
    for (const v1::RetrieveCellsResponse& message : before.messages) {
      EXPECT_EQ(message.payloads_size(), message.ids_size());
      EXPECT_LT(message.ByteSizeLong(), (2u << 20) + 1000);
    }
    // Clients interpret a message without items as an empty answer.
    const auto& gone = before.messages.front().ids();
    ASSERT_THAT(DeleteItems("fruit", {gone.begin(), gone.end()}), IsOk());
    const Answer after = AskCells(request);
    ASSERT_THAT(after.status, IsOk());
    EXPECT_THAT(after.ids(), SizeIs(before.ids().size() - static_cast<size_t>(gone.size())));
    for (const v1::RetrieveCellsResponse& message : after.messages)
      EXPECT_GT(message.ids_size(), 0);
  }
  ASSERT_THAT(DeleteItems("fruit", AskCells(request).ids()), IsOk());
  const Answer none = AskCells(request);
  ASSERT_THAT(none.status, IsOk());
  ASSERT_THAT(none.messages, SizeIs(1));
  EXPECT_EQ(none.messages.front().ids_size(), 0);
}

}  // namespace
}  // namespace privatemail::testing
