// Encrypted rows against a model: a map of items, and definitions computed anew.
#include "server/engine/encrypted_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/items/item_checks.h"

namespace privatemail::encrypted_rows_test {
namespace {

using namespace server;  // NOLINT: every test of the server

constexpr int kRowsOfBlock = 2048;
constexpr int kDimensions = 3;

using Rows = std::shared_ptr<const EncryptedRows>;
using Model = std::map<std::string, Item>;

Item MakeItem(const std::string& id, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  Item item;
  item.id = id;
  for (int i = 0; i < kDimensions; ++i) item.features.push_back(5 * normal(random));
  item.label = random() % 3 == 0 ? kNoLabel : static_cast<int32_t>(random() % 7) - 3;
  if (random() % 4 == 0) item.payload = absl::StrCat("{\"n\":", random() % 100, "}");
  return item;
}

// The place of row r of a block: its 11 bits in reverse order.
int PlaceOf(int row) {
  int place = 0;
  for (int bit = 0; bit < 11; ++bit) place |= (row >> bit & 1) << (10 - bit);
  return place;
}

long double NormOf(const Item& item) {
  long double sum = 0;
  for (const float value : item.features) sum += static_cast<long double>(value) * value;
  return std::sqrt(sum);
}

std::vector<int16_t> Expected(const Item& item) {
  std::vector<int16_t> row;
  for (const float value : item.features) {
    row.push_back(static_cast<int16_t>(std::lround(16384 * value / NormOf(item))));
  }
  return row;
}

// The row of each item in all blocks. Checks everything that a version holds.
std::map<std::string, int> CheckRows(const EncryptedRows& rows, const Model& model) {
  std::map<std::string, int> places;
  EXPECT_EQ(rows.items, static_cast<int64_t>(model.size()));
  EXPECT_EQ(rows.blocks.size(), static_cast<size_t>((rows.rows + 2047) / 2048));
  for (size_t b = 0; b < rows.blocks.size(); ++b) {
    const EncryptedBlock& block = *rows.blocks[b];
    const size_t size = std::min<size_t>(kRowsOfBlock, static_cast<size_t>(rows.rows) - b * 2048);
    EXPECT_EQ(block.size(), size);
    EXPECT_EQ(block.norms().size(), size);
    bool any_label = false, any_payload = false;
    for (size_t row = 0; row < kRowsOfBlock; ++row) {
      const int16_t* values = block.values() + PlaceOf(static_cast<int>(row)) * kDimensions;
      const std::vector<int16_t> actual(values, values + kDimensions);
      if (row >= size || block.IdOf(row).empty()) {
        EXPECT_EQ(actual, std::vector<int16_t>(kDimensions)) << row;
        EXPECT_TRUE(row >= size || block.RowAt(row) == EncryptedRow()) << row;
        continue;
      }
      const std::string id(block.IdOf(row));
      EXPECT_TRUE(places.emplace(id, static_cast<int>(b * kRowsOfBlock + row)).second) << id;
      const auto item = model.find(id);
      EXPECT_NE(item, model.end()) << id << " is not in the model";
      if (item == model.end()) continue;
      EXPECT_EQ(actual, Expected(item->second)) << id;
      EXPECT_FLOAT_EQ(block.norms()[row], static_cast<float>(NormOf(item->second))) << id;
      const EncryptedRow shown = block.RowAt(row);
      EXPECT_EQ(shown.label, item->second.label) << id;
      EXPECT_EQ(shown.payload, item->second.payload) << id;
      any_label |= shown.label != kNoLabel;
      any_payload |= !shown.payload.empty();
    }
    EXPECT_EQ(block.labels().size(), any_label ? size : 0);
    EXPECT_EQ(block.payloads().size(), any_payload ? size : 0);
  }
  EXPECT_EQ(places.size(), model.size());
  return places;
}

class EncryptedRowsTest : public ::testing::Test {
 protected:
  void Put(const Item& item) {
    writer_.Put(item);
    model_[item.id] = item;
  }
  void Put(const std::string& id) { Put(MakeItem(id, random_)); }
  void PutMany(int first, int last) {
    for (int i = first; i < last; ++i) Put(absl::StrCat("item-", i));
  }
  void Erase(const std::string& id) { EXPECT_EQ(writer_.Erase(id), model_.erase(id) == 1); }
  Rows Publish() {
    Rows rows = writer_.Publish(1, ++version_);
    EXPECT_EQ(rows->items_version, version_);
    EXPECT_EQ(rows->memory, writer_.memory());
    places_ = CheckRows(*rows, model_);
    return rows;
  }

  std::mt19937_64 random_{7};
  EncryptedRowsWriter writer_;
  Model model_;
  uint64_t version_ = 0;
  std::map<std::string, int> places_;  // of the last version
};

TEST_F(EncryptedRowsTest, ItemsKeepTheirRowsAndFillEmptyOnes) {
  PutMany(0, 2100);
  const Rows before = Publish();
  EXPECT_EQ(places_["item-2050"], 2050);
  Erase("item-70");
  Erase("item-2049");
  Erase("item-7");
  Put("item-1000");
  const Rows after = Publish();
  EXPECT_EQ(after->rows, 2100);
  EXPECT_EQ(places_["item-1000"], 1000);
  EXPECT_EQ(places_["item-2050"], 2050);
  for (const char* id : {"a", "b", "c", "d"}) Put(id);
  Publish();
  EXPECT_EQ((std::vector{places_["a"], places_["b"], places_["c"], places_["d"]}),
            (std::vector{7, 70, 2049, 2100}));
}

TEST_F(EncryptedRowsTest, VersionsShareUnchangedBlocksAndStayAsTheyAre) {
  PutMany(0, 3 * kRowsOfBlock + 10);
  const Rows before = Publish();
  const Model model_before = model_;
  Put("item-2500");  // in block 1
  Erase("item-5");   // in block 0
  const Rows after = Publish();
  EXPECT_NE(after->blocks[0], before->blocks[0]);
  EXPECT_NE(after->blocks[1], before->blocks[1]);
  EXPECT_EQ(after->blocks[2], before->blocks[2]);
  EXPECT_EQ(after->blocks[3], before->blocks[3]);
  CheckRows(*before, model_before);
}

TEST_F(EncryptedRowsTest, EqualItemCopiesNothing) {
  PutMany(0, 100);
  const Rows before = Publish();
  for (const auto& [id, item] : model_) writer_.Put(item);
  EXPECT_EQ(Publish()->blocks, before->blocks);
  Item item = model_["item-3"];
  for (float& value : item.features) value *= 2;  // another norm alone
  Put(item);
  const Rows scaled = Publish();
  EXPECT_NE(scaled->blocks, before->blocks);
  item.label = 2;
  Put(item);
  const Rows labelled = Publish();
  EXPECT_NE(labelled->blocks, scaled->blocks);
  item.payload = "[1]";
  Put(item);
  EXPECT_NE(Publish()->blocks, labelled->blocks);
}

TEST_F(EncryptedRowsTest, EmptyRowsAtTheEndAreDropped) {
  PutMany(0, kRowsOfBlock + 3);
  Publish();
  for (int i = kRowsOfBlock - 2; i < kRowsOfBlock + 3; ++i) Erase(absl::StrCat("item-", i));
  const Rows rows = Publish();
  EXPECT_EQ(rows->rows, kRowsOfBlock - 2);
  Put("next");
  Publish();
  EXPECT_EQ(places_["next"], kRowsOfBlock - 2);
  while (!model_.empty()) Erase(std::string(model_.begin()->first));
  EXPECT_EQ(Publish()->blocks.size(), 0u);
}

TEST_F(EncryptedRowsTest, BlocksOfShardsAreFull) {
  writer_.PadBlocks();
  EXPECT_EQ(Publish()->blocks.size(), 0u);
  PutMany(0, kRowsOfBlock + 3);
  const Rows rows = Publish();
  EXPECT_EQ(rows->rows, 2 * kRowsOfBlock);
  EXPECT_EQ(rows->blocks[1]->size(), static_cast<size_t>(kRowsOfBlock));
  EXPECT_EQ(rows->changed_version, rows->items_version);
  Put(model_["item-7"]);  // an equal one; other shards may have changed
  const Rows same = Publish();
  EXPECT_EQ(same->changed_version, rows->items_version);
  EXPECT_EQ(same->items_version, rows->items_version + 1);
  Erase(absl::StrCat("item-", kRowsOfBlock + 1));
  Put("next");
  EXPECT_EQ(Publish()->changed_version, same->items_version + 1);
  EXPECT_EQ(places_["next"], kRowsOfBlock + 1);
  for (int i = kRowsOfBlock; i < kRowsOfBlock + 3; ++i) writer_.Erase(absl::StrCat("item-", i));
  writer_.Erase("next");
  EXPECT_EQ(writer_.Publish(1, 9)->rows, kRowsOfBlock);
}

TEST_F(EncryptedRowsTest, ManyEmptyRowsAreCompacted) {
  PutMany(0, 4 * kRowsOfBlock);
  Publish();
  for (int i = 0; i < kRowsOfBlock; ++i) Erase(absl::StrCat("item-", 3 * i));
  EXPECT_EQ(Publish()->rows, 4 * kRowsOfBlock) << "a block's worth of empty rows is allowed";
  Erase("item-1");
  const Rows rows = Publish();
  EXPECT_EQ(rows->rows, 3 * kRowsOfBlock - 1);
  EXPECT_EQ(rows->blocks.size(), 3u);
  EXPECT_EQ(places_["item-2"], 2) << "only items of the end move";
}

TEST_F(EncryptedRowsTest, ReloadErasesWhatWasNotPutAndCopiesWhatChanged) {
  PutMany(0, 3 * kRowsOfBlock);
  const Rows before = Publish();
  writer_.BeginReload();
  model_.erase("item-3000");
  for (const auto& [id, item] : model_) writer_.Put(item);
  Put("item-1");
  Put("new");
  writer_.EndReload();
  const Rows after = Publish();
  EXPECT_NE(after->blocks[0], before->blocks[0]);
  EXPECT_NE(after->blocks[1], before->blocks[1]);
  EXPECT_EQ(after->blocks[2], before->blocks[2]);
  EXPECT_EQ(places_["item-4000"], 4000);
}

TEST_F(EncryptedRowsTest, RandomChangesFollowTheModel) {
  std::set<size_t> sizes;
  for (int batch = 0; batch < 60; ++batch) {
    // Waves of growth and of decay, of which the latter compact.
    const bool grows = batch / 10 % 2 == 0;
    for (int i = 0; i < 700; ++i) {
      const std::string id = absl::StrCat("item-", random_() % 9000);
      if (random_() % 10 < (grows ? 9u : 2u)) {
        Put(id);
      } else {
        Erase(id);
      }
      if (!grows && !model_.empty()) {
        const auto next = model_.lower_bound(id);
        Erase(std::string(next == model_.end() ? model_.begin()->first : next->first));
      }
    }
    sizes.insert(Publish()->blocks.size());
    ASSERT_FALSE(HasFailure()) << batch;
  }
  EXPECT_GT(sizes.size(), 2u);
}

TEST_F(EncryptedRowsTest, LargestFeaturesHaveAFiniteNorm) {
  Item item;
  item.id = "a";
  item.label = kNoLabel;
  item.features = {3e38f, 3e38f, 3e38f};
  writer_.Put(item);
  EXPECT_EQ(writer_.Publish(1, 1)->blocks[0]->norms()[0], std::numeric_limits<float>::max());
}

TEST_F(EncryptedRowsTest, MemoryGrowsByWhatWasAnnounced) {
  EXPECT_EQ(writer_.memory(), 0);
  for (const int count : {1, 2047, 1, 3000}) {
    std::vector<Item> items;
    const int first = static_cast<int>(model_.size());
    for (int i = first; i < first + count; ++i) {
      items.push_back(MakeItem(absl::StrCat("item-", i), random_));
      items.back().label = 1;
      items.back().payload = "{}";
    }
    const int64_t before = writer_.memory(), announced = writer_.MemoryToPut(items);
    for (const Item& item : items) Put(item);
    Publish();
    EXPECT_NEAR(static_cast<double>(writer_.memory() - before), static_cast<double>(announced),
                64. * count / 100 + 200);
    EXPECT_EQ(writer_.MemoryToPut({}), 0);
  }
}

// The figure that operators plan with: 1,000,000 items with ids of nine bytes.
TEST_F(EncryptedRowsTest, MemoryIsAtMostThirteenTenthsOfTheRows) {
  constexpr int kItems = 100'000, kDim = 128;
  EncryptedRowsWriter writer;
  for (int i = 0; i < kItems; ++i) {
    Item item;
    item.id = absl::StrCat(100'000'000 + i);
    item.label = i % 100;
    item.features.assign(kDim, 1);
    item.features[static_cast<size_t>(i % kDim)] = static_cast<float>(i);
    writer.Put(item);
  }
  const int64_t rows = int64_t{kItems} * kDim * 2;
  const int64_t memory = writer.Publish(1, 1)->memory;
  EXPECT_GT(memory, rows);
  EXPECT_LE(static_cast<double>(memory), 1.3 * static_cast<double>(rows));
}

}  // namespace
}  // namespace privatemail::encrypted_rows_test
