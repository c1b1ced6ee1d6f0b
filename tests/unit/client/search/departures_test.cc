#include "client/search/departures.h"

#include <gtest/gtest.h>

#include <utility>

namespace privatemail::client {
namespace {

TEST(NextDeparture, IsAMultipleOfTheInterval) {
  using std::chrono::milliseconds;
  const std::chrono::steady_clock::time_point arrived(std::chrono::seconds(1000));
  for (const auto& [past, expected] : {std::pair{0, 50},
                                       {1, 50},
                                       {49'999, 50},
                                       {50'000, 50},
                                       {50'001, 100},
                                       {100'000, 100},
                                       {149'000, 150}}) {
    EXPECT_EQ(NextDeparture(arrived, arrived + std::chrono::microseconds(past), milliseconds(50)),
              arrived + milliseconds(expected))
        << past;
  }
}

}  // namespace
}  // namespace privatemail::client
