#include "server/access/limits.h"

#include <malloc.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/matchers.h"

namespace privatemail::testing {

using namespace server;  // NOLINT: every test of the server

namespace {

TEST(ByteQuota, ReservationsShareQuota) {
  ByteQuota quota("number of bytes", "max_bytes");
  ByteQuota::Reservation one(&quota);
  std::optional<ByteQuota::Reservation> two(&quota);
  EXPECT_THAT(one.Take(60, 100), IsOk());
  EXPECT_THAT(two->Take(30, 100), IsOk());
  EXPECT_THAT(one.Take(11, 100), FailsWith(kExhausted,
                                           "number of bytes is 101, more than the limit of 100 "
                                           "(max_bytes)"));
  EXPECT_THAT(one.Check(11, 100), FailsWith(kExhausted, "is 101"));
  EXPECT_THAT(one.Check(10, 100), IsOk());
  EXPECT_THAT(one.Take(10, 100), IsOk()) << "neither a refusal nor a check takes anything";
  EXPECT_THAT(one.Take(1, 100), FailsWith(kExhausted, "is 101"));
  two.reset();
  EXPECT_THAT(one.Take(30, 100), IsOk());
}

TEST(ByteQuota, KeyHasHalf) {
  ByteQuota quota("number of bytes", "max_bytes");
  ByteQuota::Reservation one(&quota), two(&quota), other(&quota);
  EXPECT_THAT(one.Take(30, 100, "greedy"), IsOk());
  EXPECT_THAT(two.Take(21, 100, "greedy"),
              FailsWith(kExhausted,
                        "number of bytes of key greedy is 51, more than the limit of 50 "
                        "(half of max_bytes)"));
  EXPECT_THAT(two.Take(20, 100, "greedy"), IsOk());
  EXPECT_THAT(other.Take(50, 100, "other"), IsOk());
  EXPECT_THAT(other.Take(1, 100, "third"), FailsWith(kExhausted, "is 101"));
  one.ReduceTo(10);
  EXPECT_THAT(two.Take(20, 100, "greedy"), IsOk());
  EXPECT_THAT(one.Take(1, 100, ""), FailsWith(kExhausted, "is 101"));
}

TEST(ByteQuota, HoldsUnderConcurrency) {
  ByteQuota quota("number of bytes", "max_bytes");
  {
    std::vector<int64_t> taken(4);
    std::vector<std::thread> threads;
    std::vector<std::optional<ByteQuota::Reservation>> shares(taken.size());
    for (size_t i = 0; i < taken.size(); ++i) {
      shares[i].emplace(&quota);
      threads.emplace_back([&taken, &shares, i] {
        for (int round = 0; round < 10'000; ++round) {
          taken[i] += shares[i]->Take(1, 20'000).ok() ? 1 : 0;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(taken[0] + taken[1] + taken[2] + taken[3], 20'000);
  }
  EXPECT_THAT(ByteQuota::Reservation(&quota).Take(20'000, 20'000), IsOk());
}

AccessKey KeyOf(const std::string& id, double rate) {
  AccessKey key;
  key.id = id;
  key.grant.requests_per_second = rate;
  return key;
}

using Clock = RateLimiter::Clock;
using std::chrono::milliseconds;

const Clock::time_point kStart = Clock::time_point(std::chrono::seconds(1000));

int Taken(RateLimiter* limiter, const AccessKey& key, Clock::time_point now, int tries) {
  int taken = 0;
  for (int i = 0; i < tries; ++i) taken += limiter->Take(key, now).ok() ? 1 : 0;
  return taken;
}

TEST(RateLimiter, AllowsBurstThenRate) {
  RateLimiter limiter;
  const AccessKey key = KeyOf("a", 10);
  EXPECT_EQ(Taken(&limiter, key, kStart, 100), 20);
  EXPECT_EQ(Taken(&limiter, key, kStart + milliseconds(99), 100), 0);
  EXPECT_EQ(Taken(&limiter, key, kStart + milliseconds(101), 100), 1);
  EXPECT_EQ(Taken(&limiter, key, kStart + milliseconds(950), 100), 8);
  EXPECT_EQ(Taken(&limiter, key, kStart + std::chrono::hours(1), 100), 20);
  EXPECT_EQ(Taken(&limiter, key, kStart, 100), 0) << "an earlier time adds no tokens";
  EXPECT_EQ(Taken(&limiter, KeyOf("b", .1), kStart, 10), 1) << "at least one";
  EXPECT_EQ(Taken(&limiter, KeyOf("b", .1), kStart + milliseconds(10'010), 10), 1);
  EXPECT_EQ(Taken(&limiter, KeyOf("c", 0), kStart, 1000), 1000) << "unlimited";
}

TEST(RateLimiter, HoldsUnderConcurrency) {
  RateLimiter limiter;
  std::vector<int> taken(4);
  {
    std::vector<std::jthread> threads;
    for (int& own : taken) {
      threads.emplace_back([&] { own = Taken(&limiter, KeyOf("a", 1000), kStart, 2000); });
    }
  }
  EXPECT_EQ(taken[0] + taken[1] + taken[2] + taken[3], 2000);
}

TEST(RateLimiter, FurtherQueriesAreOwed) {
  RateLimiter limiter;
  const AccessKey key = KeyOf("a", 10);
  EXPECT_EQ(Taken(&limiter, key, kStart, 1), 1);
  limiter.Owe(key, kStart, 29);
  EXPECT_EQ(Taken(&limiter, key, kStart + milliseconds(1050), 100), 0) << "20 - 1 - 29 + 10.5";
  EXPECT_EQ(Taken(&limiter, key, kStart + milliseconds(1150), 100), 1);
  limiter.Owe(KeyOf("b", 0), kStart, 5);
  EXPECT_EQ(Taken(&limiter, KeyOf("b", 0), kStart, 9), 9) << "no rate";
}

TEST(RateLimiter, RemovesFullBucketsOnly) {
  RateLimiter limiter;
  const AccessKey busy = KeyOf("busy", 1);
  const size_t before = ::mallinfo2().uordblks;
  for (int second = 0; second < 20'000; ++second) {
    const Clock::time_point now = kStart + std::chrono::seconds(second);
    EXPECT_EQ(Taken(&limiter, KeyOf(std::to_string(second), 1), now, 3), 2);
    EXPECT_EQ(Taken(&limiter, busy, now, 3), second == 0 ? 2 : 1) << second;
  }
  EXPECT_LT(::mallinfo2().uordblks, before + (1 << 20));
}

}  // namespace
}  // namespace privatemail::testing
