#include "server/engine/maintenance.h"

#include <atomic>
#include <limits>

#include "absl/time/clock.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/engine/catalog_fixture.h"

namespace privatemail::testing {
namespace {

constexpr absl::Duration kQuiet = absl::Milliseconds(100);

class MaintenanceTest : public CatalogTest {
 protected:
  MaintenanceTest() {
    NewCollection later = Fruit();
    later.name = "later";  // it takes collections in the order of their names
    EXPECT_THAT(catalog_->Create(later), IsOk());
    Change("later");
    EXPECT_THAT(catalog_->Build("later", nullptr), IsOk());
  }

  std::unique_ptr<Maintenance> Start(double share, absl::Duration quiet = kQuiet) {
    return std::make_unique<Maintenance>(
        catalog_.get(), RebuildOptions{share, quiet},
        Maintenance::Hooks{[this](const CollectionView& view) {
                             return view.published->name == "fruit" ? check_ : absl::OkStatus();
                           },
                           [this](const std::string& name, const absl::Status& status) {
                             if (name == "fruit") ++(status.ok() ? succeeded_ : failed_);
                             if (name == "later") ++passes_;
                           }});
  }

  void CreateBuilt(int items) {
    CreateFruit(items);
    EXPECT_THAT(catalog_->Build("fruit", nullptr), IsOk());
  }

  // Inserts or updates items.
  void Change(const std::string& name, int items = 40) {
    EXPECT_THAT(catalog_->Upsert(*catalog_->Find(name), MakeItems(items, ++seed_)), IsOk());
  }

  // Waits until "later", changed now, is built: "fruit" would have been built before, if at all.
  void WaitForPass() {
    const int before = passes_;
    Change("later");
    ASSERT_TRUE(WaitUntil([&] { return passes_ > before; }));
  }

  static bool Reaches(const std::atomic<int>& count, int wanted) {
    return WaitUntil([&] { return count >= wanted; });
  }

  uint64_t Version() const { return catalog_->Find("fruit")->retriever->version(); }
  uint64_t Changes() const { return catalog_->Find("fruit")->changes_since_embedding(); }

  absl::Status check_;
  unsigned seed_ = 1;
  std::atomic<int> succeeded_ = 0;
  std::atomic<int> failed_ = 0;
  std::atomic<int> passes_ = 0;
};

TEST_F(MaintenanceTest, BuildsWhenChangesReachShare) {
  CreateBuilt(40);
  const auto builds = Start(.25);
  Change("fruit", 9);
  WaitForPass();
  EXPECT_EQ(succeeded_, 0);
  EXPECT_EQ(Changes(), 9);
  DeleteItems({"item-020"});
  ASSERT_TRUE(Reaches(succeeded_, 1));
  EXPECT_EQ(Version(), 2);
  EXPECT_EQ(Changes(), 0);
  WaitForPass();
  EXPECT_EQ(succeeded_, 1) << "there is nothing more to do";
}

// Retried if the machine was stalled for the quiet period, which counts as a pause of the upload.
TEST_F(MaintenanceTest, WaitsForQuietPeriod) {
  constexpr absl::Duration kPause = absl::Milliseconds(500);
  CreateBuilt(40);
  const auto builds = Start(.1, kPause);
  bool undisturbed = false;
  for (int attempt = 0; attempt < 10 && !undisturbed; ++attempt) {
    const int before = succeeded_;
    absl::Duration longest;
    for (int i = 0; i < 24; ++i) {  // for longer than the pause
      const absl::Time start = absl::Now();
      Change("fruit");
      absl::SleepFor(kPause / 16);  // the pace is what is tested
      longest = std::max(longest, absl::Now() - start);
    }
    undisturbed = longest < kPause / 2;
    if (undisturbed) {
      EXPECT_EQ(succeeded_, before);
    }
    ASSERT_TRUE(Reaches(succeeded_, before + 1));
  }
  EXPECT_TRUE(undisturbed);
  EXPECT_EQ(Changes(), 0);
}

TEST_F(MaintenanceTest, BuildsDespiteEndlessChanges) {
  CreateBuilt(40);
  const auto builds = Start(.1);
  for (int i = 0; i < 400 && succeeded_ == 0; ++i) {
    Change("fruit");
    absl::SleepFor(kQuiet / 2);  // the pace is what is tested
  }
  EXPECT_GE(succeeded_, 1);
}

TEST_F(MaintenanceTest, NeverRunsFirstBuildNorWhenOff) {
  CreateFruit(40);
  {
    const auto builds = Start(.01);
    WaitForPass();
  }
  EXPECT_EQ(catalog_->Find("fruit")->retriever, nullptr);
  EXPECT_THAT(catalog_->Build("fruit", nullptr), IsOk());
  Change("fruit");
  const auto builds = Start(0);
  absl::SleepFor(3 * kQuiet);  // nothing shows that it is off
  EXPECT_EQ(Version(), 1);
  builds->SetOptions({.1, kQuiet});
  EXPECT_TRUE(Reaches(succeeded_, 1));
}

TEST_F(MaintenanceTest, RefusedBuildIsReportedOnce) {
  CreateBuilt(40);
  check_ = absl::ResourceExhaustedError("too large");
  const auto builds = Start(.1);
  Change("fruit");
  ASSERT_TRUE(Reaches(failed_, 1));
  WaitForPass();
  EXPECT_EQ(failed_, 1);
  EXPECT_EQ(Version(), 1);
}

// Features tell the classes apart, so that labels can be wrong.
class LabelledRebuildTest : public MaintenanceTest {
 protected:
  LabelledRebuildTest() {
    NewCollection fruit = Fruit();
    for (Eigen::Index i = 0; i < fruit.anchors.features.rows(); ++i) {
      fruit.anchors.features.row(i) += 50 * Eigen::RowVectorXf::Unit(kDim, i % 3);
    }
    labels_ = {fruit.anchors.labels.begin(), fruit.anchors.labels.begin() + 3};
    EXPECT_THAT(catalog_->Create(fruit), IsOk());
    Upsert(0);
  }

  // Items of all classes, named `shift` classes too far.
  void Upsert(size_t shift) {
    std::vector<Item> items = MakeItems(30, ++seed_);
    for (size_t i = 0; i < items.size(); ++i) {
      items[i].features[i % 3] += 50;
      items[i].label = labels_[(i + shift) % 3];
    }
    EXPECT_THAT(catalog_->Upsert(*catalog_->Find("fruit"), items), IsOk());
  }

  absl::Status Build(Catalog::LabelCheck check) {
    constexpr int64_t kMemory = std::numeric_limits<int64_t>::max();
    return catalog_->Build("fruit", nullptr, kMemory, check).status();
  }

  std::vector<int32_t> labels_;
};

TEST_F(LabelledRebuildTest, WrongLabelsLeaveTheFormerEmbedding) {
  ASSERT_THAT(Build(Catalog::LabelCheck::kOn), IsOk());
  const auto builds = Start(.1);
  Upsert(0);
  ASSERT_TRUE(Reaches(succeeded_, 1));
  Upsert(1);
  ASSERT_TRUE(Reaches(failed_, 1));
  EXPECT_EQ(Version(), 2);
}

TEST_F(LabelledRebuildTest, AcceptedLabelsAreBuiltAgain) {
  Upsert(1);
  ASSERT_THAT(Build(Catalog::LabelCheck::kOff), IsOk());
  const auto builds = Start(.1);
  Upsert(1);
  ASSERT_TRUE(Reaches(succeeded_, 1));
  EXPECT_EQ(Version(), 2);
}

TEST_F(MaintenanceTest, EmptyCollectionIsNotBuilt) {
  CreateBuilt(3);
  const auto builds = Start(.1);
  DeleteItems({"item-000", "item-001", "item-002"});
  WaitForPass();
  EXPECT_EQ(succeeded_ + failed_, 0);
  EXPECT_EQ(catalog_->Find("fruit")->embedded_items(), 0);
}

}  // namespace
}  // namespace privatemail::testing
