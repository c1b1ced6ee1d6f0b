#include "server/access/byte_budget.h"

#include <optional>
#include <thread>
#include <vector>

#include "tests/testing/matchers.h"

namespace privatemail::server {
namespace {

constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;

TEST(ByteBudget, IsSharedAndGivenBack) {
  ByteBudget budget("number of bytes", "max_bytes");
  ByteBudget::Share one(&budget);
  std::optional<ByteBudget::Share> two(&budget);
  EXPECT_THAT(one.Take(60, 100), IsOk());
  EXPECT_THAT(two->Take(30, 100), IsOk());
  EXPECT_THAT(one.Take(11, 100), FailsWith(kExhausted,
                                           "number of bytes is 101, more than the limit of 100 "
                                           "(max_bytes)"));
  EXPECT_THAT(one.Take(10, 100), IsOk()) << "what was refused was not taken";
  EXPECT_THAT(one.Take(1, 100), FailsWith(kExhausted, "is 101"));
  two.reset();
  EXPECT_THAT(one.Take(30, 100), IsOk());
}

TEST(ByteBudget, LooksAheadWithoutTaking) {
  ByteBudget budget("number of bytes", "max_bytes");
  ByteBudget::Share share(&budget);
  EXPECT_THAT(share.Take(60, 100), IsOk());
  EXPECT_THAT(share.Check(41, 100), FailsWith(kExhausted, "is 101"));
  EXPECT_THAT(share.Check(40, 100), IsOk());
  EXPECT_THAT(share.Take(40, 100), IsOk());
}

TEST(ByteBudget, HoldsWhenManyTakeAtOnce) {
  ByteBudget budget("number of bytes", "max_bytes");
  {
    std::vector<int64_t> taken(4);
    std::vector<std::thread> threads;
    std::vector<std::optional<ByteBudget::Share>> shares(taken.size());
    for (size_t i = 0; i < taken.size(); ++i) {
      shares[i].emplace(&budget);
      threads.emplace_back([&taken, &shares, i] {
        for (int round = 0; round < 10'000; ++round) {
          taken[i] += shares[i]->Take(1, 20'000).ok() ? 1 : 0;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(taken[0] + taken[1] + taken[2] + taken[3], 20'000);
  }
  EXPECT_THAT(ByteBudget::Share(&budget).Take(20'000, 20'000), IsOk());
}

}  // namespace
}  // namespace privatemail::server
