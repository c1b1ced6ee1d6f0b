#include "common/base/suggestion.h"

#include <gtest/gtest.h>

namespace privatemail {
namespace {

TEST(Suggestion, SwappedNeighboursAreOneMistake) {
  const std::vector<std::string> commands = {"items list", "key revoke", "plan"};
  EXPECT_EQ(Suggestion("lsit", commands), "; did you mean \"items list\"?");
  EXPECT_EQ(Suggestion("plna", {"plan", "play"}), "; did you mean \"plan\"?");
  EXPECT_EQ(Suggestion("koever", commands), "") << "has the letters of revoke";
  EXPECT_EQ(Suggestion("--eps", {"--yes", "--epsilon"}), "; did you mean \"--epsilon\"?");
  EXPECT_EQ(Suggestion(std::string(1 << 20, 'x'), {std::string(1 << 10, 'x')}), "");
}

}  // namespace
}  // namespace privatemail
