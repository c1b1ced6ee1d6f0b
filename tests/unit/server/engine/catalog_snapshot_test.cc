#include <atomic>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "common/wire/proto_conversions.h"
#include "common/wire/snapshot.h"
#include "tests/unit/server/engine/catalog_fixture.h"
#include "tests/unit/server/snapshots.h"

namespace privatemail::testing {
namespace {

using ::testing::SizeIs;

class CatalogSnapshot : public CatalogTest {
 protected:
  std::string Snapshot(const std::string& name) const {
    return SnapshotOf(*catalog_, *catalog_->Find(name));
  }

  absl::StatusOr<CollectionView> RestoreAs(const std::string& bytes, const std::string& name) {
    auto contents = Parse(bytes);
    EXPECT_THAT(contents, IsOk());
    contents->collection.name = name;
    return Restore(catalog_.get(), *contents);
  }

  // Ids and distances of the nearest items of each slot.
  std::vector<std::pair<std::string, double>> Answer(const std::string& name) const {
    std::srand(5);
    const RetrievalQuery query = SomeQuery();
    const auto view = catalog_->Find(name);
    const auto answer = view->retriever->Retrieve(query);
    EXPECT_THAT(answer, IsOk());
    std::vector<std::pair<std::string, double>> all;
    for (const auto& slot : answer->slots) {
      for (const Neighbor& neighbor : slot) {
        all.emplace_back(view->retriever->IdOf(neighbor.row), neighbor.squared_distance);
      }
    }
    return all;
  }

  void Build(const std::string& name) {
    EXPECT_THAT(catalog_->Build(name, [](int, int) { return absl::OkStatus(); }), IsOk());
  }
};

TEST_F(CatalogSnapshot, RestoredCollectionAnswersAsOriginal) {
  const CollectionView fruit = CreateFruit(20);
  Build("fruit");
  const auto before = Answer("fruit");
  const std::string bytes = Snapshot("fruit");
  ASSERT_THAT(catalog_->Delete("fruit"), IsOk());
  ASSERT_OK_AND_ASSIGN(const CollectionView view, RestoreAs(bytes, "eagles"));
  EXPECT_EQ(view.items, 20u);
  EXPECT_EQ(view.retriever, nullptr);
  EXPECT_EQ(view.published->fingerprint, fruit.published->fingerprint);
  EXPECT_EQ(view.latest_version, 40u);  // no version that a client has seen comes again
  Build("eagles");
  EXPECT_EQ(Answer("eagles"), before);
  Reopen();
  EXPECT_EQ(Answer("eagles"), before);
  EXPECT_EQ(catalog_->Find("eagles")->published->fingerprint, fruit.published->fingerprint);
}

TEST_F(CatalogSnapshot, CopyBesideOriginalGetsNewFingerprint) {
  const CollectionView fruit = CreateFruit(20);
  Build("fruit");
  const std::string bytes = Snapshot("fruit");
  const auto before = Answer("fruit");
  ASSERT_OK_AND_ASSIGN(const CollectionView copy, RestoreAs(bytes, "copy"));
  EXPECT_NE(copy.published->fingerprint, fruit.published->fingerprint);
  EXPECT_EQ(copy.latest_version, 20u);
  Build("copy");
  EXPECT_THAT(Answer("copy"), SizeIs(before.size()));
  EXPECT_EQ(LoadGallery(*catalog_, copy).features, LoadGallery(*catalog_, fruit).features);
  EXPECT_EQ(Answer("fruit"), before);
  EXPECT_THAT(RestoreAs(bytes, "fruit"), FailsWith(kAlreadyExists, "fruit"));
  EXPECT_THAT(RestoreAs(bytes, "no name"), FailsWith(kInvalid, "name"));
}

// Otherwise it would be saved under the shared UUID.
TEST_F(CatalogSnapshot, BuildOfDeletedCollectionDoesNotReachRestoredOne) {
  const CollectionView fruit = CreateFruit(20);
  const std::string bytes = Snapshot("fruit");
  absl::StatusOr<CollectionView> restored = absl::UnknownError("not yet");
  const auto replace = [&](int done, int steps) {
    if (done != steps) return absl::OkStatus();
    EXPECT_THAT(catalog_->Delete("fruit"), IsOk());
    restored = RestoreAs(bytes, "fruit");
    return restored.status();
  };
  EXPECT_THAT(catalog_->Build("fruit", replace), FailsWith(kAborted, "was deleted"));
  ASSERT_THAT(restored, IsOk());
  EXPECT_EQ(restored->published->fingerprint, fruit.published->fingerprint);
  EXPECT_EQ(catalog_->Find("fruit")->retriever, nullptr);
  Reopen();
  EXPECT_EQ(catalog_->Find("fruit")->retriever, nullptr);
}

// They share a UUID, by which the store finds it.
TEST_F(CatalogSnapshot, WritesOfAnEarlierViewShowInRestoredCollection) {
  const CollectionView fruit = CreateFruit(20);
  const std::string bytes = Snapshot("fruit");
  ASSERT_THAT(catalog_->Delete("fruit"), IsOk());
  ASSERT_THAT(RestoreAs(bytes, "fruit"), IsOk());
  Build("fruit");
  ASSERT_THAT(catalog_->Upsert(fruit, MakeItems(21, 2)), IsOk());
  EXPECT_EQ(catalog_->Find("fruit")->items, 21u);
  ASSERT_THAT(catalog_->DeleteItems(fruit, {{"item-000"}}), IsOk());
  EXPECT_EQ(catalog_->Find("fruit")->items, 20u);
  EXPECT_EQ(catalog_->Find("fruit")->embedded_items(), 19u);
}

// Each batch replaces all items, so a consistent snapshot has features and version of one batch.
TEST_F(CatalogSnapshot, SnapshotIsConsistentDuringWrites) {
  constexpr int kItems = 200;
  const CollectionView view = CreateFruit(kItems);
  std::atomic<bool> stop = false;
  std::atomic<int> batches = 0;
  std::thread writer([&] {
    for (int batch = 1; !stop; ++batch) {
      std::vector<Item> items = MakeItems(kItems, 1);
      for (Item& item : items) item.payload = absl::StrFormat("{\"batch\":%d}", batch);
      EXPECT_THAT(catalog_->Upsert(view, items), IsOk());
      ++batches;
    }
  });
  const auto join = absl::MakeCleanup([&] {
    stop = true;
    writer.join();
  });
  int distinct = 0;
  uint64_t last = 0;
  for (int i = 0; i < 40 || distinct < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const SnapshotContents contents, Parse(Snapshot("fruit")));
    const uint64_t version = contents.collection.latest_version;
    ASSERT_EQ(version % kItems, 0u);
    const uint64_t batch = version / kItems - 1;
    const std::string payload = batch == 0 ? "" : absl::StrFormat("{\"batch\":%d}", batch);
    ASSERT_EQ(contents.gallery.payloads, std::vector<std::string>(kItems, payload));
    if (version != last) ++distinct;
    last = version;
  }
  EXPECT_GE(batches, 2);
}

TEST_F(CatalogSnapshot, InconsistentSnapshotReturnsDataLoss) {
  CreateFruit(5);
  auto contents = *Parse(Snapshot("fruit"));
  ASSERT_THAT(catalog_->Delete("fruit"), IsOk());
  const auto restore = [&](const std::function<void(SnapshotContents*)>& spoil) {
    SnapshotContents spoilt = contents;
    spoil(&spoilt);
    return Restore(catalog_.get(), spoilt).status();
  };
  EXPECT_THAT(restore([](auto* c) {
                c->collection.parameters.slot_labels = {3, 5, 11};
              }),
              FailsWith(kDataLoss, "its parameters are not those of its anchors"));
  EXPECT_THAT(restore([](auto* c) { c->collection.parameters.extractor.clear(); }),
              FailsWith(kDataLoss, "extractor"));
  EXPECT_THAT(catalog_->List(), SizeIs(0));
  EXPECT_THAT(restore([](auto*) {}), IsOk());
}

// Well-formed blocks with inconsistent content.
TEST_F(CatalogSnapshot, InvalidItemNamesItsBlock) {
  CreateFruit(3);
  SnapshotContents contents = *Parse(Snapshot("fruit"));
  const auto parse = [&] { return Parse(BytesOf(contents)).status(); };
  contents.gallery.labels[1] = 4;
  EXPECT_THAT(parse(),
              FailsWith(kDataLoss, "block 3 (items) is invalid: item 1: label must be one of"));
  contents.gallery.labels[1] = 3;
  contents.gallery.payloads[2] = "{";
  EXPECT_THAT(parse(), FailsWith(kDataLoss, "block 3 (items) is invalid: item 2: payload"));
  contents.gallery.payloads[2] = "";
  EXPECT_THAT(parse(), IsOk());
  for (const char* uuid : {"", "00000000-0000-4000-8000-00000000000G"}) {
    contents.collection.parameters.collection_uuid = uuid;
    EXPECT_THAT(parse(), FailsWith(kDataLoss, "block 1 (collection) is invalid: collection_uuid"));
  }
}

TEST_F(CatalogSnapshot, AnnouncedSizesAreNotAllocated) {
  const CollectionView view = CreateFruit(3);
  v1::SnapshotCollection head;
  head.set_name("fruit");
  ToProto(view.published->parameters, head.mutable_parameters());
  head.set_items(uint64_t{1} << 61);
  std::string promised;
  SnapshotWriter writer([&](absl::string_view block) {
    promised.append(block.data(), block.size());
    return absl::OkStatus();
  });
  ASSERT_THAT(writer.Begin(head, view.published->anchors), IsOk());
  v1::Item item;
  item.set_id("a");
  item.set_label(3);
  for (int i = 0; i < kDim; ++i) item.add_features(1);
  ASSERT_THAT(writer.Add(item), IsOk());
  EXPECT_THAT(writer.Finish(), FailsWith(kInternal));
  EXPECT_THAT(Parse(promised), FailsWith(kDataLoss, "block 4 is missing"));
}

}  // namespace
}  // namespace privatemail::testing
