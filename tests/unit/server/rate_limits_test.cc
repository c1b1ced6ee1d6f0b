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

int Taken(RateLimits* limits, const AccessKey& key, absl::Time now, int tries) {
  int taken = 0;
  for (int i = 0; i < tries; ++i) taken += limits->Take(key, now).ok() ? 1 : 0;
  return taken;
}

TEST(RateLimits, AllowABurstAndThenTheRate) {
  RateLimits limits;
  const AccessKey key = KeyOf("a", 10);
  const absl::Time start = absl::FromUnixSeconds(1000);
  EXPECT_EQ(Taken(&limits, key, start, 100), 20);
  EXPECT_EQ(Taken(&limits, key, start + absl::Milliseconds(99), 100), 0);
  EXPECT_EQ(Taken(&limits, key, start + absl::Milliseconds(101), 100), 1);
  EXPECT_EQ(Taken(&limits, key, start + absl::Milliseconds(950), 100), 8);
  EXPECT_EQ(Taken(&limits, key, start + absl::Hours(1), 100), 20);
  EXPECT_EQ(Taken(&limits, key, start, 100), 0) << "a clock that goes backwards fills nothing";
}

TEST(RateLimits, SlowKeysMayStillCallOnce) {
  RateLimits limits;
  const absl::Time start = absl::FromUnixSeconds(1000);
  EXPECT_EQ(Taken(&limits, KeyOf("a", .1), start, 10), 1);
  EXPECT_EQ(Taken(&limits, KeyOf("a", .1), start + absl::Seconds(10.01), 10), 1);
}

TEST(RateLimits, AreEachKeysOwnAndOfNoneWithoutOne) {
  RateLimits limits;
  const absl::Time now = absl::FromUnixSeconds(1000);
  EXPECT_EQ(Taken(&limits, KeyOf("a", 1), now, 10), 2);
  EXPECT_EQ(Taken(&limits, KeyOf("b", 1), now, 10), 2);
  EXPECT_EQ(Taken(&limits, KeyOf("c", 0), now, 1000), 1000);
}

TEST(RateLimits, SayTheLimitAndWhenToTryAgain) {
  RateLimits limits;
  const absl::Time now = absl::FromUnixSeconds(1000);
  Taken(&limits, KeyOf("0123456789ab", 2), now, 4);
  EXPECT_THAT(
      limits.Take(KeyOf("0123456789ab", 2), now),
      FailsWith(absl::StatusCode::kResourceExhausted,
                "key 0123456789ab may make 2 calls a second (4 at once): try again in 0.5 s"));
}

}  // namespace
}  // namespace privatemail::testing
