#include "privatemail/cell_item_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/items/item_code.h"
#include "tests/testing/matchers.h"
#include "tests/testing/published_things.h"

namespace privatemail::client::cell_item_cache_test {
namespace {

using ::testing::ElementsAre;

constexpr int kDim = PublishedThings::kDim;
constexpr int kItemBytes = 2 * kDim + 6;  // a code, and an id such as "item 3"

PublicParameters Parameters() { return PublishedThings(1, CellCode::kFloat16).parameters; }

// Item i lies in direction i + `turn` of a quarter circle of ten steps.
Eigen::RowVectorXf Direction(int step) {
  Eigen::RowVectorXf row = Eigen::RowVectorXf::Zero(kDim);
  const float angle = static_cast<float>(step) * .157F;
  row[0] = std::cos(angle);
  row[1] = std::sin(angle);
  return row;
}

v1::RetrieveCellsResponse Message(uint64_t version, const std::vector<int>& items, int turn = 0,
                                  bool with_payloads = false) {
  v1::RetrieveCellsResponse message;
  for (const int item : items) {
    message.add_ids(absl::StrCat("item ", item));
    message.add_labels(item % 5);
    AppendScalarCode(CellCode::kFloat16, Direction(item + turn), message.mutable_codes());
    if (with_payloads) message.add_payloads(absl::StrCat("{\"i\":", item, "}"));
  }
  message.set_items_version(version);
  return message;
}

std::vector<std::string> NearestTo(const CellItemCache& items, int step, int64_t k) {
  const auto result = items.FindNearest({.point = Direction(step).cast<double>(), .k = k});
  EXPECT_THAT(result, IsOk());
  std::vector<std::string> ids;
  for (const QueryMatch& match : result->matches) {
    ids.push_back(match.id);
  }
  return ids;
}

TEST(CellItemCache, FindNearestSearchesAllAnswers) {
  CellItemCache items(Parameters());
  EXPECT_THAT(NearestTo(items, 0, 3), ElementsAre());
  ASSERT_THAT(items.Add(Message(1, {0, 4, 8})), IsOk());
  ASSERT_THAT(items.Add(Message(1, {2, 6}, 0, true)), IsOk());
  EXPECT_EQ(items.items(), 5);
  EXPECT_THAT(NearestTo(items, 9, 2), ElementsAre("item 8", "item 6"));
  EXPECT_THAT(NearestTo(items, 0, 9),
              ElementsAre("item 0", "item 2", "item 4", "item 6", "item 8"));
  ASSERT_OK_AND_ASSIGN(const CellQueryResult result,
                       items.FindNearest({.point = Direction(2).cast<double>(), .k = 1}));
  EXPECT_EQ(result.candidates, 5);
  EXPECT_EQ(result.items_version, 1u);
  EXPECT_EQ(result.matches[0].label, 2);
  EXPECT_EQ(result.matches[0].payload, "{\"i\":2}");
  EXPECT_LT(result.matches[0].squared_distance, 1e-6);
}

TEST(CellItemCache, LatestMessageReplacesItem) {
  CellItemCache items(Parameters());
  ASSERT_THAT(items.Add(Message(5, {1, 2})), IsOk());
  ASSERT_THAT(items.Add(Message(6, {1}, /*turn=*/8)), IsOk());
  EXPECT_EQ(items.items(), 2);
  EXPECT_THAT(NearestTo(items, 9, 1), ElementsAre("item 1"));
  EXPECT_THAT(NearestTo(items, 2, 1), ElementsAre("item 2"));
  // A restored collection counts its versions anew.
  ASSERT_THAT(items.Add(Message(4, {2}, /*turn=*/20)), IsOk());
  EXPECT_THAT(NearestTo(items, 22, 1), ElementsAre("item 2"));
  EXPECT_EQ(items.FindNearest({.point = Direction(2).cast<double>(), .k = 1})->items_version, 4u);
}

TEST(CellItemCache, UnchangedItemKeepsPayload) {
  CellItemCache items(Parameters());
  const auto payload = [&] {
    return items.FindNearest({.point = Direction(1).cast<double>(), .k = 1})->matches[0].payload;
  };
  ASSERT_THAT(items.Add(Message(5, {1}, 0, /*with_payloads=*/true)), IsOk());
  ASSERT_THAT(items.Add(Message(5, {1})), IsOk());
  EXPECT_EQ(payload(), "{\"i\":1}");
  ASSERT_THAT(items.Add(Message(6, {1})), IsOk());
  EXPECT_EQ(payload(), "") << "a new version may have another";
}

TEST(CellItemCache, EvictsOldestBeyondMaxBytes) {
  CellItemCache items(Parameters(), 3 * kItemBytes);
  ASSERT_THAT(items.Add(Message(1, {0, 1, 2})), IsOk());
  EXPECT_EQ(items.items(), 3);
  ASSERT_THAT(items.Add(Message(1, {0})), IsOk());  // now the newest
  ASSERT_THAT(items.Add(Message(1, {3})), IsOk());
  EXPECT_THAT(NearestTo(items, 0, 9), ElementsAre("item 0", "item 2", "item 3"));
}

TEST(CellItemCache, CorruptMessageInsertsNothing) {
  CellItemCache items(Parameters());
  v1::RetrieveCellsResponse message = Message(1, {0, 1});
  message.mutable_codes()->pop_back();
  EXPECT_EQ(items.Add(message).code(), absl::StatusCode::kDataLoss);
  message = Message(1, {0, 1});
  message.set_labels(1, 77);
  EXPECT_FALSE(items.Add(message).ok());
  message = Message(1, {0, 1}, 0, true);
  message.mutable_payloads()->RemoveLast();
  EXPECT_FALSE(items.Add(message).ok());
  EXPECT_EQ(items.items(), 0);
}

TEST(CellItemCache, ToMessagesRoundTrips) {
  CellItemCache items(Parameters());
  ASSERT_THAT(items.Add(Message(1, {0, 1})), IsOk());
  ASSERT_THAT(items.Add(Message(2, {2, 3}, 0, true)), IsOk());
  ASSERT_THAT(items.Add(Message(2, {4})), IsOk());
  CellItemCache again(Parameters());
  for (const v1::RetrieveCellsResponse& message : items.ToMessages()) {
    ASSERT_THAT(again.Add(message), IsOk());
  }
  EXPECT_EQ(again.items(), 5);
  const auto text = [](const CellItemCache& of) {
    std::string all;
    for (const auto& message : of.ToMessages()) all += message.SerializeAsString() + "|";
    return all;
  };
  EXPECT_EQ(text(again), text(items));
}

}  // namespace
}  // namespace privatemail::client::cell_item_cache_test
