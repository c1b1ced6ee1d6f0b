#include "server/access/rate_limits.h"

#include "tests/testing/matchers.h"

namespace privatemail::testing {
namespace {

AccessKey KeyOf(const std::string& id, double rate) {
  AccessKey key;
  key.id = id;
  key.grant.requests_per_second = rate;
  return key;
}

using Clock = RateLimits::Clock;
using std::chrono::milliseconds;

const Clock::time_point kStart = Clock::time_point(std::chrono::seconds(1000));

int Taken(RateLimits* limits, const AccessKey& key, Clock::time_point now, int tries) {
  int taken = 0;
  for (int i = 0; i < tries; ++i) taken += limits->Take(key, now).ok() ? 1 : 0;
  return taken;
}

TEST(RateLimits, AllowABurstAndThenTheRate) {
  RateLimits limits;
  const AccessKey key = KeyOf("a", 10);
  EXPECT_EQ(Taken(&limits, key, kStart, 100), 20);
  EXPECT_EQ(Taken(&limits, key, kStart + milliseconds(99), 100), 0);
  EXPECT_EQ(Taken(&limits, key, kStart + milliseconds(101), 100), 1);
  EXPECT_EQ(Taken(&limits, key, kStart + milliseconds(950), 100), 8);
  EXPECT_EQ(Taken(&limits, key, kStart + std::chrono::hours(1), 100), 20);
  EXPECT_EQ(Taken(&limits, key, kStart, 100), 0) << "a thread that comes late fills nothing";
}

TEST(RateLimits, SlowKeysMayStillCallOnce) {
  RateLimits limits;
  EXPECT_EQ(Taken(&limits, KeyOf("a", .1), kStart, 10), 1);
  EXPECT_EQ(Taken(&limits, KeyOf("a", .1), kStart + milliseconds(10'010), 10), 1);
}

TEST(RateLimits, AreEachKeysOwnAndOfNoneWithoutOne) {
  RateLimits limits;
  EXPECT_EQ(Taken(&limits, KeyOf("a", 1), kStart, 10), 2);
  EXPECT_EQ(Taken(&limits, KeyOf("b", 1), kStart, 10), 2);
  EXPECT_EQ(Taken(&limits, KeyOf("c", 0), kStart, 1000), 1000);
}

TEST(RateLimits, SayTheLimitAndWhenToTryAgain) {
  RateLimits limits;
  Taken(&limits, KeyOf("0123456789ab", 2), kStart, 4);
  absl::Duration wait;
  EXPECT_THAT(
      limits.Take(KeyOf("0123456789ab", 2), kStart, &wait),
      FailsWith(absl::StatusCode::kResourceExhausted,
                "key 0123456789ab may make 2 calls a second (4 at once): try again in 0.5 s"));
  EXPECT_EQ(wait, absl::Milliseconds(500));
}

TEST(RateLimits, ForgetKeysThatHaveNotCalledForLongAndNoOthers) {
  RateLimits limits;
  const AccessKey busy = KeyOf("busy", 1);
  for (int second = 0; second < 5000; ++second) {
    const Clock::time_point now = kStart + std::chrono::seconds(second);
    EXPECT_EQ(Taken(&limits, KeyOf(std::to_string(second), 1), now, 3), 2);
    EXPECT_EQ(Taken(&limits, busy, now, 3), second == 0 ? 2 : 1) << second;
  }
  EXPECT_LE(limits.size(), 1001u);
}

}  // namespace
}  // namespace privatemail::testing
