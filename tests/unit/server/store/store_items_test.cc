// The contract of Store: items, versions, and changes since an embedding.
#include "absl/strings/str_format.h"
#include "common/base/cancellation.h"
#include "tests/unit/server/store/store_backend.h"

namespace privatemail::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

PayloadFilter Filter(const std::string& text) {
  auto filter = PayloadFilter::Parse(text);
  EXPECT_THAT(filter, IsOk());
  return *filter;
}

auto HasId(const std::string& id) { return Field(&Item::id, id); }

class StoreItems : public StoreConformance {
 protected:
  uint64_t VersionOf(const std::string& id) {
    const auto items = store_->GetItems(collection_.parameters, {id});
    EXPECT_THAT(items, IsOk());
    return items->empty() ? 0 : items->front().version;
  }
};

TEST_P(StoreItems, EachChangeTakesNextVersion) {
  std::vector<Item> items = MakeItems(3, 1);
  EXPECT_EQ(Upsert(items).latest_version, 3u);
  EXPECT_EQ(VersionOf("item-000"), 1u);
  EXPECT_EQ(VersionOf("item-002"), 3u);
  EXPECT_EQ(Upsert(items).latest_version, 3u) << "nothing changed";
  items[1].label = 9;
  EXPECT_EQ(Upsert(items).latest_version, 4u);
  EXPECT_EQ(VersionOf("item-001"), 4u);
  EXPECT_EQ(VersionOf("item-002"), 3u);
  const DeleteResult deleted = DeleteItems({"item-001", "none", "item-001"});
  EXPECT_EQ(deleted.deleted, 1u);
  EXPECT_EQ(deleted.items, 2u);
  EXPECT_EQ(deleted.latest_version, 5u);
  Reopen();
  const UpsertResult back = Upsert(items);
  EXPECT_EQ(back.inserted, 1u);
  EXPECT_EQ(back.items, 3u);
  EXPECT_EQ(VersionOf("item-001"), 6u);
  EXPECT_EQ(Load().version, 6u);
  EXPECT_EQ(store_->ListStates()->front().latest_version, 6u);
}

// Whenever its caller leaves: a later write of the same caller must not be overwritten by it.
TEST_P(StoreItems, WriteOfAnAbsentCallerIsNotStored) {
  absl::StatusOr<UpsertResult> written;
  int polls = 0;
  do {
    int left = polls++;
    const CancellationScope scope([&left] { return left-- <= 0; });
    written = store_->Upsert(collection_.parameters, MakeItems(1, 1));
    EXPECT_TRUE(written.ok() || absl::IsCancelled(written.status())) << written.status();
    const CancellationScope reading(nullptr);
    EXPECT_EQ(VersionOf("item-000") > 0, written.ok());
  } while (!written.ok() && !HasFailure());
  EXPECT_GT(polls, 2);
}

TEST_P(StoreItems, LastOfEqualIdsInBatchWinsAndEachChangeTakesVersion) {
  const UpsertResult result =
      Upsert({MakeItem("a", 3, 1), MakeItem("a", 5, 2), MakeItem("a", 5, 2), MakeItem("b", 3, 1)});
  EXPECT_EQ(result.inserted, 2u);
  EXPECT_EQ(result.updated, 1u);
  EXPECT_EQ(result.unchanged, 1u);
  EXPECT_EQ(result.items, 2u);
  EXPECT_EQ(result.latest_version, 3u);
  EXPECT_EQ(VersionOf("a"), 2u);
  EXPECT_THAT(Load().labels, ElementsAre(5, 3)) << "the last of equal ids";
}

TEST_P(StoreItems, GetReturnsExistingItemsInRequestOrder) {
  std::vector<Item> items = MakeItems(4, 1);
  items[2].payload = R"({"a":1})";
  Upsert(items);
  const std::vector<std::string> ids = {"item-002", "none", "item-000", "item-002", ""};
  ASSERT_OK_AND_ASSIGN(const auto found, store_->GetItems(collection_.parameters, ids));
  ASSERT_THAT(found, ElementsAre(HasId("item-002"), HasId("item-000"), HasId("item-002")));
  EXPECT_EQ(found[0].features, items[2].features);
  EXPECT_EQ(found[0].label, items[2].label);
  EXPECT_EQ(found[0].payload, items[2].payload);
  EXPECT_EQ(found[0].version, 3u);
}

TEST_P(StoreItems, ScrollPagesHaveNoGapsOrRepeats) {
  Upsert(MakeItems(25, 1));
  for (const int64_t limit : {1, 7, 24, 25, 26, 1000}) {
    const std::vector<Item> all = ScrollAll({}, limit);
    ASSERT_THAT(all, SizeIs(25)) << limit;
    for (int i = 0; i < 25; ++i) EXPECT_EQ(all[i].id, absl::StrFormat("item-%03d", i));
  }
  const auto full = store_->ScrollItems(collection_.parameters, {}, "", 25);
  EXPECT_EQ(full->next, std::nullopt) << "nothing follows a page that holds the last";
  EXPECT_THAT(store_->ScrollItems(collection_.parameters, {}, "item-023", 5)->items,
              ElementsAre(HasId("item-024")));
}

TEST_P(StoreItems, ScrollSeesUnchangedItemsOnceDuringWrites) {
  Upsert(MakeItems(10, 1));
  auto page = store_->ScrollItems(collection_.parameters, {}, "", 4);
  DeleteItems({"item-000", "item-003", "item-004"});  // also the one the cursor names
  Upsert({MakeItem("item-0", 3, 1)});
  page = store_->ScrollItems(collection_.parameters, {}, *page->next, 100);
  ASSERT_THAT(page->items, SizeIs(5));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(page->items[i].id, absl::StrFormat("item-00%d", i + 5));
}

TEST_P(StoreItems, ScrollAndCountApplyFilter) {
  std::vector<Item> items = MakeItems(20, 1);
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].payload = absl::StrFormat(R"({"n":%d,"odd":%s})", i, i % 2 == 1 ? "true" : "false");
  }
  items[19].payload.clear();
  Upsert(items);
  const PayloadFilter filter =
      Filter(R"({"and":[{"path":"odd","equals":true}, {"path":"n","gte":11}]})");
  for (const int64_t limit : {1, 2, 100}) {
    EXPECT_THAT(ScrollAll(filter, limit), ElementsAre(HasId("item-011"), HasId("item-013"),
                                                      HasId("item-015"), HasId("item-017")));
  }
  EXPECT_EQ(*store_->CountItems(collection_.parameters, filter, {}), 4u);
  EXPECT_EQ(*store_->CountItems(collection_.parameters, {}, {}), 20u);
}

TEST_P(StoreItems, RareFilterReadsLimitedPartPerPage) {
  std::vector<Item> items;
  for (int i = 0; i < 2 * kMaxScannedItems + 5; ++i) {
    items.push_back(MakeItem(absl::StrFormat("%06d", i), 3, i % 100));
  }
  items.back().payload = "{\"rare\":1}";
  Upsert(items);
  const PayloadFilter rare = Filter(R"({"path":"rare","equals":1})");
  ASSERT_OK_AND_ASSIGN(const auto page, store_->ScrollItems(collection_.parameters, rare, "", 10));
  EXPECT_THAT(page.items, IsEmpty());
  EXPECT_THAT(page.next, ::testing::Optional(absl::StrFormat("%06d", kMaxScannedItems - 1)));
  EXPECT_THAT(ScrollAll(rare, 10), ElementsAre(HasId(items.back().id)));
  EXPECT_EQ(*store_->CountItems(collection_.parameters, rare, {}), 1u);
  int polls = 0;
  EXPECT_THAT(store_->CountItems(collection_.parameters, rare, [&] { return ++polls == 2; }),
              FailsWith(kCancelled, "no longer waits"));
  EXPECT_EQ(polls, 2) << "between the parts";
}

TEST_P(StoreItems, PageBytesAreBounded) {
  std::vector<Item> items = MakeItems(5, 1);
  for (Item& item : items) item.payload = '"' + std::string(kMaxPageBytes / 2 - 100, 'x') + '"';
  items[3].payload = '"' + std::string(kMaxPageBytes + 1, 'x') + '"';
  Upsert(items);
  std::vector<size_t> sizes;
  std::optional<std::string> after = "";
  while (after) {
    ASSERT_OK_AND_ASSIGN(const auto page,
                         store_->ScrollItems(collection_.parameters, {}, *after, 100));
    sizes.push_back(page.items.size());
    after = page.next;
  }
  EXPECT_THAT(sizes, ElementsAre(2, 1, 1, 1));
}

TEST_P(StoreItems, CountsChangesSinceEmbedding) {
  std::vector<Item> items = MakeItems(10, 1);
  Upsert(items);
  DeleteItems({"item-009"});
  Upsert({MakeItem("item-008", 9, 50)});
  EXPECT_EQ(Changes(), (ChangesSinceEmbedding{9, 0, 0})) << "before the first embedding";
  Embed();
  EXPECT_EQ(Changes(), ChangesSinceEmbedding{});
  Upsert({MakeItem("new-1", 3, 1), MakeItem("new-2", 3, 1), MakeItem("item-000", 9, 1)});
  Upsert({MakeItem("item-000", 5, 1), MakeItem("new-1", 9, 1)});  // once is enough
  EXPECT_EQ(Changes(), (ChangesSinceEmbedding{2, 1, 0}));
  DeleteItems({"item-000", "item-001", "new-2"});  // updated, embedded, and never embedded
  EXPECT_EQ(Changes(), (ChangesSinceEmbedding{1, 0, 2}));
  Upsert({items[1]});  // back as it was, and yet another item
  EXPECT_EQ(Changes(), (ChangesSinceEmbedding{2, 0, 2}));
  DeleteItems({"item-001"});
  EXPECT_EQ(Changes(), (ChangesSinceEmbedding{1, 0, 2}));
  Reopen();
  EXPECT_EQ(Changes(), (ChangesSinceEmbedding{1, 0, 2}));
  Embed();
  EXPECT_EQ(Changes(), ChangesSinceEmbedding{});
  EXPECT_EQ(Rows("deletions"), 0) << "no longer needed";
}

TEST_P(StoreItems, CountsChangesDuringBuild) {
  Upsert(MakeItems(6, 1));
  const Gallery gallery = Load();
  DeleteItems({"item-002"});
  Upsert({MakeItem("item-003", 9, 9), MakeItem("new", 3, 1)});
  Embedding embedding = SomeEmbedding(6);
  embedding.items_version = gallery.version;
  ASSERT_THAT(store_->SaveEmbedding(collection_.parameters, embedding), IsOk());
  EXPECT_EQ(Changes(), (ChangesSinceEmbedding{1, 1, 1}));
  const auto loaded = store_->LoadEmbedding(collection_.parameters);
  EXPECT_THAT((*loaded)->deleted, ElementsAre(Field(&DeletedItem::id, "item-002")));
}

TEST_P(StoreItems, DeletedSinceListsIdsOfEmbedding) {
  Upsert(MakeItems(6, 1));
  EXPECT_EQ(Embed(), 1u);
  DeleteItems({"item-004", "item-001"});
  Upsert({MakeItem("item-001", 3, 1)});  // what answers is still the deleted one
  ASSERT_OK_AND_ASSIGN(const auto deleted, store_->DeletedSince(collection_.parameters, 1, 0));
  ASSERT_TRUE(deleted.has_value());
  EXPECT_THAT(*deleted, UnorderedElementsAre(Field(&DeletedItem::id, "item-001"),
                                             Field(&DeletedItem::id, "item-004")));
  EXPECT_THAT(*deleted, UnorderedElementsAre(Field(&DeletedItem::version, 7u),
                                             Field(&DeletedItem::version, 8u)));
  EXPECT_THAT(**store_->DeletedSince(collection_.parameters, 1, 7), SizeIs(1));
  EXPECT_THAT(**store_->DeletedSince(collection_.parameters, 1, 8), IsEmpty());
  EXPECT_EQ(Embed(), 2u);
  EXPECT_EQ(*store_->DeletedSince(collection_.parameters, 1, 0), std::nullopt);
  EXPECT_THAT(**store_->DeletedSince(collection_.parameters, 2, 0), IsEmpty());
}

TEST_P(StoreItems, EmbeddingOfEarlierItemsReturnsAborted) {
  Upsert(MakeItems(3, 1));
  Embedding early = SomeEmbedding(3);
  early.items_version = Load().version;
  Upsert(MakeItems(4, 1));
  Embed();
  EXPECT_THAT(store_->SaveEmbedding(collection_.parameters, early),
              FailsWith(kAborted, "an embedding of later items (version 4)"));
  EXPECT_THAT((*store_->LoadEmbedding(collection_.parameters))->ids, SizeIs(4));
}

TEST_P(StoreItems, CollectionsAreListedAndSeparate) {
  Upsert(MakeItems(3, 1));
  DeleteItems({"item-000"});
  Embed();
  const StoredCollection other = SmallCollection("ants");
  ASSERT_THAT(store_->Create(other), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto states, store_->ListStates());
  EXPECT_THAT(
      states,
      ElementsAre(
          AllOf(Field(&CollectionState::name, "ants"),
                Field(&CollectionState::uuid, other.parameters.collection_uuid),
                Field(&CollectionState::items, 0u), Field(&CollectionState::latest_version, 0u),
                Field(&CollectionState::embedding_version, 0u)),
          AllOf(Field(&CollectionState::name, "fruit"), Field(&CollectionState::items, 2u),
                Field(&CollectionState::latest_version, 4u),
                Field(&CollectionState::embedding_version, 1u))));
  ASSERT_OK_AND_ASSIGN(const auto loaded, store_->LoadCollection(other.parameters.collection_uuid));
  EXPECT_EQ(loaded.name, "ants");
  EXPECT_EQ(loaded.anchors.features, other.anchors.features);
  EXPECT_EQ(store_->DeleteItems(other.parameters, {{"item-001"}})->deleted, 0u);
  EXPECT_THAT(*store_->GetItems(other.parameters, {{"item-001"}}), IsEmpty());
  EXPECT_THAT(store_->ScrollItems(other.parameters, {}, "", 9)->items, IsEmpty());
  EXPECT_THAT(Load().ids, ElementsAre("item-001", "item-002"));
}

// All parts of Store::ReadChanges.
struct ReadParts {
  ItemChanges summary;
  std::vector<Item> items;
  std::vector<size_t> part_sizes;
};

class StoreChanges : public StoreItems {
 protected:
  ReadParts ReadChanges(uint64_t after) {
    ReadParts read;
    EXPECT_THAT(store_->ReadChanges(collection_.parameters, after,
                                    [&](const ItemChanges& changes, std::vector<Item> part) {
                                      read.summary = changes;
                                      read.part_sizes.push_back(part.size());
                                      for (Item& item : part) read.items.push_back(std::move(item));
                                      return absl::OkStatus();
                                    }),
                IsOk());
    return read;
  }
};

TEST_P(StoreChanges, EmptyCollectionHasOneEmptyPart) {
  const ReadParts changes = ReadChanges(0);
  EXPECT_THAT(changes.part_sizes, ElementsAre(0u));
  EXPECT_EQ(changes.summary.items, 0u);
  EXPECT_EQ(changes.summary.latest_version, 0u);
  EXPECT_EQ(changes.summary.collection, store_->ListStates()->front().key);
}

TEST_P(StoreChanges, ItemsComeInOrderOfTheirLastChange) {
  std::vector<Item> items = MakeItems(4, 1);
  items[3].payload = R"({"a":1})";
  Upsert(items);  // versions 1 to 4
  items[1].label = 9;
  Upsert({items[1]});  // version 5
  const ReadParts all = ReadChanges(0);
  EXPECT_THAT(all.items, ElementsAre(HasId("item-000"), HasId("item-002"), HasId("item-003"),
                                     HasId("item-001")));
  EXPECT_EQ(all.items[2].features, items[3].features);
  EXPECT_EQ(all.items[2].payload, R"({"a":1})");
  EXPECT_EQ(all.items[3].label, 9);
  EXPECT_EQ(all.items[3].version, 5u);
  EXPECT_EQ(all.summary.items, 4u);
  EXPECT_EQ(all.summary.latest_version, 5u);
  EXPECT_THAT(ReadChanges(3).items, ElementsAre(HasId("item-003"), HasId("item-001")));
  const ReadParts none = ReadChanges(5);
  EXPECT_THAT(none.part_sizes, ElementsAre(0u));
  EXPECT_EQ(none.summary.items, 4u);
}

TEST_P(StoreChanges, DeletedItemsAreListedUnlessTheyAreBack) {
  std::vector<Item> items = MakeItems(4, 1);
  Upsert(items);                          // versions 1 to 4
  DeleteItems({"item-000", "item-001"});  // versions 5 and 6
  Upsert({items[1]});                     // version 7
  DeleteItems({"item-002"});              // version 8
  Upsert({items[2]});                     // version 9
  DeleteItems({"item-002"});              // version 10
  Reopen();
  const ReadParts changes = ReadChanges(4);
  EXPECT_THAT(changes.summary.deleted, UnorderedElementsAre("item-000", "item-002"));
  EXPECT_THAT(changes.items, ElementsAre(HasId("item-001")));
  EXPECT_EQ(changes.summary.items, 2u);
  EXPECT_EQ(changes.summary.latest_version, 10u);
  EXPECT_THAT(ReadChanges(6).summary.deleted, ElementsAre("item-002"));
  EXPECT_THAT(ReadChanges(10).summary.deleted, IsEmpty());
  const ReadParts all = ReadChanges(0);
  EXPECT_THAT(all.summary.deleted, IsEmpty()) << "a reader without items needs none";
  EXPECT_THAT(all.items, ElementsAre(HasId("item-003"), HasId("item-001")));
}

TEST_P(StoreChanges, PartsAreBounded) {
  const auto part_rows = static_cast<size_t>(GalleryPartRows(kDim));
  std::vector<Item> items;
  for (size_t i = 0; i < 2 * part_rows; ++i) {
    items.push_back(MakeItem(absl::StrFormat("%06d", 2 * part_rows - i), 3, 1));
  }
  Upsert(items);
  EXPECT_THAT(ReadChanges(0).part_sizes, ElementsAre(part_rows, part_rows));
  const ReadParts changes = ReadChanges(1);
  EXPECT_THAT(changes.part_sizes, ElementsAre(part_rows, part_rows - 1));
  for (size_t i = 0; i < changes.items.size(); ++i) {
    ASSERT_EQ(changes.items[i].id, items[i + 1].id);
  }
}

TEST_P(StoreChanges, ReadingIsOfOneMoment) {
  const auto part_rows = static_cast<int>(GalleryPartRows(kDim));
  Upsert(MakeItems(part_rows + 2, 1));
  size_t read = 0;
  const absl::Status status = store_->ReadChanges(
      collection_.parameters, 0, [&](const ItemChanges& changes, std::vector<Item> part) {
        EXPECT_EQ(changes.items, static_cast<uint64_t>(part_rows + 2));
        if (read == 0) {
          DeleteItems({"item-000", part.back().id});
          Upsert({MakeItem("new", 3, 1)});
        }
        read += part.size();
        return absl::OkStatus();
      });
  EXPECT_THAT(status, IsOk());
  EXPECT_EQ(read, static_cast<size_t>(part_rows + 2));
}

TEST_P(StoreChanges, ErrorOfVisitEndsReading) {
  Upsert(MakeItems(3, 1));
  const auto stop = [](const auto&, auto) { return absl::AbortedError("enough"); };
  EXPECT_THAT(store_->ReadChanges(collection_.parameters, 0, stop), FailsWith(kAborted, "enough"));
  ASSERT_THAT(store_->Delete(collection_.parameters.collection_uuid), IsOk());
  EXPECT_THAT(store_->ReadChanges(collection_.parameters, 0, stop),
              FailsWith(kNotFound, "does not exist"));
}

TEST_P(StoreChanges, TombstonesWithoutAnchorsArePruned) {
  PublicParameters without_anchors = collection_.parameters;
  without_anchors.anchor_count = 0;
  Upsert(MakeItems(5, 1));
  const auto erase = [&](const std::string& id) {
    EXPECT_EQ(store_->DeleteItems(without_anchors, {id})->deleted, 1u);
  };
  erase("item-000");  // version 6
  erase("item-001");  // version 7
  // Versions up to 6 + kKeptTombstones, the deletion included.
  std::vector<Item> changing = {MakeItem("a", 3, 1), MakeItem("a", 5, 1)};
  std::vector<Item> batch;
  for (int64_t i = 0; i < kKeptTombstones - 2; ++i) batch.push_back(changing[i % 2]);
  EXPECT_EQ(Upsert(batch).latest_version, 5u + kKeptTombstones);
  Reopen();
  EXPECT_EQ(Rows("deletions"), 2) << "only deletions prune";
  erase("item-002");
  EXPECT_THAT(ReadChanges(5).summary.deleted, UnorderedElementsAre("item-001", "item-002"));
  EXPECT_EQ(ReadChanges(5).summary.items, 3u) << "one less than a reader has who applies this";
  erase("item-003");
  EXPECT_THAT(ReadChanges(5).summary.deleted, UnorderedElementsAre("item-002", "item-003"));
  DeleteItems({"item-004"});  // of a collection with anchors
  EXPECT_THAT(ReadChanges(5).summary.deleted, SizeIs(3));
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreChanges, ::testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(Stores, StoreItems, ::testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace privatemail::testing
