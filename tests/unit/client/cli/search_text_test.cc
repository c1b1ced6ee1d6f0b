#include "client/cli/search_text.h"

#include <gmock/gmock.h>

namespace privatemail::client::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

json Joint(double epsilon, bool proven) {
  return {{"scheme", "joint"},
          {"matches", json::array()},
          {"bytes", {{"up", 1500}, {"down", 250}}},
          {"guarantee", {{"epsilon", epsilon}, {"delta", 1e-5}, {"proven", proven}}},
          {"ledger", {{"left", {{"epsilon", 0.30000000000000004}, {"delta", .001}}}}}};
}

TEST(SearchText, MatchesHaveTheColumnsThatSaySomething) {
  json search = Joint(1, true);
  EXPECT_EQ(MatchesText(search, Metric::kCosine), "no item matches\n");
  search["matches"] = {{{"id", "a"},
                        {"label", nullptr},
                        {"class", nullptr},
                        {"squared_distance", .5},
                        {"payload", nullptr}}};
  EXPECT_EQ(MatchesText(search, Metric::kCosine), "id\na\n");
  search["scheme"] = "cells";
  EXPECT_EQ(MatchesText(search, Metric::kEuclidean), "id  squared distance\na   0.5\n");
  EXPECT_EQ(MatchesText(search, Metric::kCosine), "id  similarity\na   0.7500\n");
  search["scheme"] = "encrypted";
  search["matches"][0].update({{"similarity", .75}, {"label", 3}, {"payload", {{"x", 1}}}});
  EXPECT_EQ(MatchesText(search, Metric::kCosine),
            "id  label  similarity  payload\na   3      0.7500      {\"x\":1}\n");
  EXPECT_THAT(MatchesText(search, Metric::kEuclidean), HasSubstr("squared distance"));
  search["matches"][0]["class"] = "ramen\nid";
  EXPECT_THAT(MatchesText(search, Metric::kCosine), HasSubstr("a   ramen\\nid  0.7500"));
}

TEST(SearchText, LikelyLabelsComeFirst) {
  json search = Joint(1, true);
  search["label_guessed"] = true;
  search["classes"] = {{{"class", "soba"}, {"posterior", .9997}},
                       {{"class", "udon"}, {"posterior", .0003}}};
  EXPECT_EQ(MatchesText(search, Metric::kCosine),
            "likely label: soba (0.9997), udon (0.0003)\nno item matches\n");
}

TEST(SearchText, CostNamesGuaranteeRestAndBytes) {
  EXPECT_EQ(CostText({Joint(1, true)}),
            "joint: epsilon 1 delta 1e-05, proven; left of the collection's budget: epsilon 0.3 "
            "delta 0.001; "
            "1.5 kB up, 0.25 kB down\n");
  const std::string large = CostText({Joint(9, true)});
  EXPECT_THAT(large, HasSubstr("proven, which allows the server to become e^9 = 8103 times"));
  const std::string unproven = CostText({Joint(9, false)});
  EXPECT_THAT(unproven, HasSubstr("as published, without a proof"));
  EXPECT_THAT(unproven, Not(HasSubstr(", proven")));
  EXPECT_EQ(
      CostText({Joint(1, true), Joint(1, true), Joint(1, true)}),
      "joint: 3 queries, each epsilon 1 delta 1e-05, proven; left of the collection's budget: "
      "epsilon 0.3 delta 0.001; 4.5 kB up, 0.75 kB down\n");
  json again = Joint(1, true);
  again.erase("guarantee");
  EXPECT_EQ(CostText({again}),
            "joint: sent again, so nothing was spent; 1.5 kB up, 0.25 kB down\n");
}

}  // namespace
}  // namespace privatemail::client::cli
