#include "server/engine/rebuild_scheduler.h"

#include <atomic>

#include "absl/time/clock.h"
#include "tests/unit/server/engine/catalog_fixture.h"

namespace privatemail::testing {
namespace {

constexpr absl::Duration kQuiet = absl::Milliseconds(100);
constexpr absl::Duration kLongEnough = absl::Milliseconds(600);  // for a build that should not come

class RebuildSchedulerTest : public CatalogTest {
 protected:
  std::unique_ptr<RebuildScheduler> Start(double share, absl::Duration quiet = kQuiet) {
    return std::make_unique<RebuildScheduler>(
        catalog_.get(), RebuildOptions{share, quiet},
        RebuildScheduler::Hooks{[this](const CollectionView&) { return check_; },
                                [](const std::string&, double) {},
                                [this](const std::string& name, const absl::Status& status) {
                                  EXPECT_EQ(name, "birds");
                                  status.ok() ? ++succeeded_ : ++failed_;
                                }});
  }

  void CreateBuilt(int items) {
    CreateBirds(items);
    EXPECT_THAT(catalog_->Build("birds", nullptr), IsOk());
  }

  void Upsert(int items, unsigned seed) {
    EXPECT_THAT(catalog_->Upsert(*catalog_->Find("birds"), MakeItems(items, seed)), IsOk());
  }

  bool Reaches(const std::atomic<int>& count, int wanted) {
    for (int i = 0; i < 2000 && count < wanted; ++i) absl::SleepFor(absl::Milliseconds(10));
    return count >= wanted;
  }

  uint64_t Version() const { return catalog_->Find("birds")->retriever->version(); }
  uint64_t Changes() const { return catalog_->Find("birds")->changes_since_embedding(); }

  absl::Status check_;
  std::atomic<int> succeeded_ = 0;
  std::atomic<int> failed_ = 0;
};

TEST_F(RebuildSchedulerTest, BuildsWhenChangesReachShare) {
  CreateBuilt(40);
  const auto builds = Start(.25);
  Upsert(9, 2);  // updates of 9 out of 40
  absl::SleepFor(kLongEnough);
  EXPECT_EQ(succeeded_, 0);
  EXPECT_EQ(Changes(), 9);
  DeleteItems({"item-020"});
  ASSERT_TRUE(Reaches(succeeded_, 1));
  EXPECT_EQ(Version(), 2);
  EXPECT_EQ(Changes(), 0);
  absl::SleepFor(kLongEnough);
  EXPECT_EQ(succeeded_, 1) << "there is nothing more to do";
}

// Retried if the machine was stalled for the quiet period, which counts as a pause of the upload.
TEST_F(RebuildSchedulerTest, WaitsForQuietPeriod) {
  constexpr absl::Duration kPause = absl::Seconds(1);
  CreateBuilt(40);
  const auto builds = Start(.1, kPause);
  bool undisturbed = false;
  for (int attempt = 0; attempt < 10 && !undisturbed; ++attempt) {
    const int before = succeeded_;
    absl::Duration longest;
    for (unsigned i = 0; i < 24; ++i) {  // for longer than the pause
      const absl::Time start = absl::Now();
      Upsert(40, 100 * attempt + i);
      absl::SleepFor(kPause / 16);
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

TEST_F(RebuildSchedulerTest, BuildsDespiteEndlessChanges) {
  CreateBuilt(40);
  const auto builds = Start(.1);
  for (unsigned i = 0; i < 400 && succeeded_ == 0; ++i) {
    Upsert(40, 2 + i);
    absl::SleepFor(kQuiet / 2);
  }
  EXPECT_GE(succeeded_, 1);
}

TEST_F(RebuildSchedulerTest, NeverRunsFirstBuildNorWhenOff) {
  CreateBirds(40);
  {
    const auto builds = Start(.01);
    absl::SleepFor(kLongEnough);
  }
  EXPECT_EQ(catalog_->Find("birds")->retriever, nullptr);
  EXPECT_THAT(catalog_->Build("birds", nullptr), IsOk());
  Upsert(40, 2);
  const auto builds = Start(0);
  absl::SleepFor(kLongEnough);
  EXPECT_EQ(Version(), 1);
  builds->SetOptions({.1, kQuiet});
  EXPECT_TRUE(Reaches(succeeded_, 1));
}

TEST_F(RebuildSchedulerTest, RefusedBuildIsReportedOnce) {
  CreateBuilt(40);
  check_ = absl::ResourceExhaustedError("too large");
  const auto builds = Start(.1);
  Upsert(40, 2);
  ASSERT_TRUE(Reaches(failed_, 1));
  absl::SleepFor(kLongEnough);
  EXPECT_EQ(failed_, 1);
  EXPECT_EQ(Version(), 1);
}

TEST_F(RebuildSchedulerTest, EmptyCollectionIsNotBuilt) {
  CreateBuilt(3);
  const auto builds = Start(.1);
  DeleteItems({"item-000", "item-001", "item-002"});
  absl::SleepFor(kLongEnough);
  EXPECT_EQ(succeeded_ + failed_, 0);
  EXPECT_EQ(catalog_->Find("birds")->embedded_items(), 0);
}

}  // namespace
}  // namespace privatemail::testing
