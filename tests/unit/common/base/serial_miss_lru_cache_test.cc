#include "common/base/serial_miss_lru_cache.h"

#include <atomic>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "tests/testing/matchers.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;

bool Never() { return false; }
bool Always(int) { return true; }

TEST(CancellableMutex, OwnersTakeTurnsEachInOrderOfArrival) {
  CancellableMutex mutex;
  auto first = mutex.Acquire(Never, "greedy");
  std::vector<int> order;  // guarded by the mutex
  std::vector<std::thread> callers;
  for (const char* owner : {"greedy", "greedy", "greedy", "greedy", "honest"}) {
    std::atomic<bool> waits = false;
    const int caller = static_cast<int>(callers.size());
    callers.emplace_back([&mutex, &order, &waits, owner, caller] {
      bool polled = false;
      const auto poll = [&] {
        if (!std::exchange(polled, true)) waits = true;
        return false;
      };
      const auto lock = mutex.Acquire(poll, owner);
      order.push_back(caller);
    });
    while (!waits) std::this_thread::yield();
  }
  first.reset();
  // A caller that arrives while the mutex is handed over waits as well.
  {
    const auto last = mutex.Acquire(Never, "greedy");
    EXPECT_THAT(order, ElementsAre(4, 0, 1, 2, 3));
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(CancellableMutex, CancelledWaiterGetsNoLock) {
  CancellableMutex mutex;
  {
    const auto first = mutex.Acquire(Never);
    int polls = 0;
    EXPECT_FALSE(mutex.Acquire([&] { return ++polls == 3; }).has_value());
    EXPECT_EQ(polls, 3) << "polled while it waits";
  }
  EXPECT_FALSE(mutex.Acquire([] { return true; }).has_value()) << "also when it is free";
  EXPECT_TRUE(mutex.Acquire(Never).has_value());
}

TEST(CancellableMutex, MovedLockUnlocksOnce) {
  CancellableMutex mutex;
  auto first = mutex.Acquire(Never);
  {
    const CancellableMutex::Lock moved = *std::move(first);
    first.reset();
    int polls = 0;
    EXPECT_FALSE(mutex.Acquire([&] { return ++polls > 1; }).has_value());
  }
  EXPECT_TRUE(mutex.Acquire(Never).has_value());
}

class SerialMissLruCacheTest : public ::testing::Test {
 protected:
  using Cache = SerialMissLruCache<int, int>;

  static constexpr int64_t kOverhead = 256;
  static constexpr int64_t kCapacity = 100'000 + 4 * kOverhead;

  // A value of at least `min`.
  int Get(int key, int min) {
    const auto value = cache_.Get(
        key, [&](int cached) { return cached >= min; }, Never,
        [&] {
          ++computed_;
          return min;
        });
    EXPECT_THAT(value, IsOk());
    return **value;
  }

  // A value's charge is the value.
  Cache cache_{{.bytes = kCapacity}, [](int value) { return kOverhead + value; }};
  int computed_ = 0;
};

TEST_F(SerialMissLruCacheTest, UnusableValueIsReplaced) {
  EXPECT_EQ(Get(1, 50), 50);
  EXPECT_EQ(Get(1, 20), 50);
  EXPECT_EQ(computed_, 1);
  EXPECT_EQ(Get(1, 60), 60);
  EXPECT_EQ(Get(1, 50), 60);
  EXPECT_EQ(computed_, 2);
}

TEST_F(SerialMissLruCacheTest, EvictsLeastRecentlyUsed) {
  Get(1, 40'000);
  Get(2, 40'000);
  Get(1, 40'000);
  EXPECT_EQ(computed_, 2);
  Get(3, 40'000);  // evicts the second
  Get(1, 40'000);
  EXPECT_EQ(computed_, 3);
  Get(2, 40'000);
  EXPECT_EQ(computed_, 4);
  Get(4, 1'000'000);  // exceeds the capacity: cached alone
  Get(4, 1'000'000);
  EXPECT_EQ(computed_, 5);
  Get(2, 40'000);
  EXPECT_EQ(computed_, 6);
}

TEST_F(SerialMissLruCacheTest, ReplacedValueIsNoLongerCharged) {
  for (int min = 100; min <= 10'000; min += 100) Get(1, min);
  Get(2, 30'000);
  Get(3, 30'000);
  Get(1, 100);
  EXPECT_EQ(computed_, 102);
}

TEST_F(SerialMissLruCacheTest, CancelledCallerDoesNotWaitForRunningMiss) {
  std::atomic<bool> computing = false, proceed = false;
  std::thread slow([&] {
    const auto value = cache_.Get(1, Always, Never, [&] {
      computing = true;
      while (!proceed) std::this_thread::yield();
      return 10;
    });
    EXPECT_THAT(value, IsOk());
  });
  while (!computing) std::this_thread::yield();
  EXPECT_THAT(cache_.Get(
                  2, Always, [] { return true; }, [] { return 0; }),
              FailsWith(kCancelled, "no longer waits"));
  proceed = true;
  slow.join();
  EXPECT_EQ(Get(2, 10), 10);
}

TEST_F(SerialMissLruCacheTest, HitDoesNotWaitForRunningMiss) {
  Get(1, 10);
  const auto value = cache_.Get(2, Always, Never, [&] {
    EXPECT_EQ(Get(1, 10), 10);
    return 20;
  });
  EXPECT_THAT(value, IsOk());
  EXPECT_EQ(computed_, 1);
}

TEST_F(SerialMissLruCacheTest, ExceptionOfComputeLeavesCacheUsable) {
  const auto no_memory = []() -> int { throw std::bad_alloc(); };
  EXPECT_THROW((void)cache_.Get(1, Always, Never, no_memory), std::bad_alloc);
  EXPECT_EQ(Get(1, 10), 10);
}

TEST_F(SerialMissLruCacheTest, GetAllComputesMissingKeysOnly) {
  Cache cache({.bytes = kCapacity, .entries = 2}, [](int value) { return value; });
  std::vector<int> missing;
  const auto get = [&](const std::vector<int>& keys, int64_t max_bytes) {
    const auto compute = [&](const std::vector<int>& some) -> absl::StatusOr<std::vector<int>> {
      missing = some;
      return std::vector<int>(some.begin(), some.end());
    };
    const auto handles = cache.GetAll(keys, Always, Never, compute, max_bytes);
    EXPECT_THAT(handles, IsOk());
    std::vector<int> values;
    for (const Cache::Handle& handle : *handles) values.push_back(*handle);
    return values;
  };
  EXPECT_THAT(get({1, 2}, 100), ElementsAre(1, 2));
  EXPECT_THAT(get({3, 2}, 100), ElementsAre(3, 2));
  EXPECT_THAT(missing, ElementsAre(3));
  EXPECT_THAT(get({1, 2, 3}, 100), ElementsAre(1, 2, 3)) << "more keys than entries";
  EXPECT_THAT(missing, ElementsAre(1));
  EXPECT_THAT(get({9, 1}, 9), ElementsAre(9, 1)) << "more bytes than this call allows";
  missing.clear();
  EXPECT_THAT(get({9}, 9), ElementsAre(9));
  EXPECT_THAT(missing, ElementsAre());
}

TEST_F(SerialMissLruCacheTest, OwnerWithMostBytesEvictsItsOwn) {
  Cache cache({.bytes = 100, .entries = 3}, [](int value) { return value; });
  int computed = 0;
  const auto get = [&](int key, absl::string_view owner) {
    const auto compute = [&](const std::vector<int>& keys) -> absl::StatusOr<std::vector<int>> {
      ++computed;
      return keys;
    };
    EXPECT_THAT(cache.GetAll({key}, Always, Never, compute, 100, owner), IsOk());
  };
  get(20, "honest");
  get(1, "honest");
  for (const int key : {30, 40, 50, 60}) get(key, "greedy");  // bytes
  for (const int key : {2, 3, 4, 5, 6}) get(key, "greedy");   // entries
  EXPECT_EQ(std::exchange(computed, 0), 11);
  get(20, "greedy");
  get(1, "honest");
  EXPECT_EQ(computed, 0) << "kept, and for all owners";
  get(60, "greedy");
  EXPECT_EQ(computed, 1);
}

TEST_F(SerialMissLruCacheTest, InsertEvictsOfTheOwnersWithMostTheLeastRecentlyUsed) {
  const auto insert = [this](int key, int value, const char* owner) {
    return cache_.Insert(key, std::make_shared<const int>(value), 3 * kOverhead + 20, owner);
  };
  EXPECT_TRUE(insert(1, 10, "a"));
  EXPECT_TRUE(insert(2, 9, "b"));
  EXPECT_TRUE(insert(2, 10, "b")) << "replaces it";
  EXPECT_EQ(cache_.bytes(), 2 * kOverhead + 20);
  EXPECT_EQ(*cache_.Find(1), 10);
  EXPECT_TRUE(insert(3, 10, "c"));
  EXPECT_EQ(cache_.Find(2), nullptr) << "all owners have as many bytes";
  EXPECT_FALSE(insert(4, 11, "d")) << "it has most";
  EXPECT_TRUE(insert(4, 10, "c"));
  EXPECT_EQ(cache_.Find(3), nullptr) << "of the owner with most";
  EXPECT_NE(cache_.Find(1), nullptr);
  EXPECT_EQ(cache_.size(), 2u);
  cache_.Clear();
  EXPECT_EQ(cache_.size(), 0u);
  EXPECT_EQ(cache_.bytes(), 0);
  EXPECT_TRUE(insert(5, 10, "a"));
  EXPECT_EQ(cache_.bytes(), kOverhead + 10);
}

TEST_F(SerialMissLruCacheTest, GetAllPassesErrorsThrough) {
  const auto fail = [](const std::vector<int>&) -> absl::StatusOr<std::vector<int>> {
    return absl::DataLossError("damaged");
  };
  EXPECT_THAT(cache_.GetAll({1}, Always, Never, fail, kCapacity), FailsWith(kDataLoss, "damaged"));
  EXPECT_EQ(Get(1, 10), 10);
}

TEST_F(SerialMissLruCacheTest, ConcurrentMissesComputeOnce) {
  std::atomic<int> computing = 0, computed = 0, wrong = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const int key = i % 5;
        const auto value = cache_.Get(key, Always, Never, [&] {
          if (++computing != 1) ++wrong;
          ++computed;
          --computing;
          return 10 + key;
        });
        if (!value.ok() || **value != 10 + key) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(computed, 5);
}

}  // namespace
}  // namespace privatemail::testing
