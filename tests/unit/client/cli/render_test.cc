#include "client/cli/render.h"

#include <gmock/gmock.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace privatemail::client::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Render, ObjectIsLinesOfNamesAndAlignedValues) {
  EXPECT_EQ(Render({{"name", "moths"},
                    {"feature_dim", nullptr},
                    {"ready", true},
                    {"stale", false},
                    {"share", .1},
                    {"cells", {4, 10}},
                    {"schemes", json::array()},
                    {"note", ""},
                    {"warnings", {"is on standard error"}},
                    {"made_at", 1'800'000'000},
                    {"items", 1'800'000'000}}),
            "name         moths\n"
            "feature dim  -\n"
            "items        1800000000\n"
            "made at      2027-01-15 08:00:00\n"
            "note         -\n"
            "ready        yes\n"
            "share        0.1\n"
            "stale        no\n"
            "cells        4, 10\n"
            "schemes      -\n");
}

TEST(Render, SecondsHaveTwoDigitsOrAreWhole) {
  EXPECT_EQ(Render({{"seconds", 1.25365}}, {}, /*rounded=*/true), "seconds  1.3\n");
  EXPECT_EQ(Render({{"seconds", 125.365}}, {}, /*rounded=*/true), "seconds  125\n");
  EXPECT_EQ(Render({{"seconds", 1.25365}}), "seconds  1.25365\n");
}

TEST(Render, ObjectWithinIsOnALineIfItHoldsFewNumbersElseIndented) {
  EXPECT_EQ(Render({{"left", {{"delta", 0}, {"epsilon", .25}}},
                    {"recall", {{"value", .5}, {"low", .4}, {"high", .6}}},
                    {"none", json::object()},
                    {"guarantee", {{"source", "theorem 8"}, {"epsilon", 1}}}}),
            "left    epsilon 0.25, delta 0\n"
            "none    -\n"
            "recall  0.50 (0.40 to 0.60)\n"
            "guarantee\n"
            "  epsilon  1\n"
            "  source   theorem 8\n");
}

TEST(Render, MatchesAreATableOfTheColumns) {
  const json result = {
      {"scheme", "encrypted"},
      {"matches",
       {{{"id", "ä"}, {"label", nullptr}, {"squared_distance", .123456789}, {"similarity", .9}},
        {{"id", "moth-7"},
         {"label", 3},
         {"squared_distance", 2},
         {"payload", {{"year", 1990}, {"name", "köl"}}}}}}};
  EXPECT_EQ(Render(result, {{"matches", {"id", "label", "squared_distance", "payload"}}}),
            "scheme  encrypted\n"
            "matches\n"
            "  id      label  squared distance  payload\n"
            "  ä       -      0.123457          -\n"
            "  moth-7  3      2                 {\"name\":\"köl\",\"year\":1990}\n");
  EXPECT_EQ(Render(json::array({{{"b", 1}, {"id", 2}}, {{"a", "x"}}})),
            "id  a  b\n"
            "2   -  1\n"
            "-   x  -\n");
}

TEST(Render, RowsOfAWideTableAreBlocks) {
  const std::string wide(120, 'x');
  EXPECT_EQ(
      Render({{"rows", {{{"a", wide}, {"b", wide}, {"long_c", 1.5}}, {{"a", ""}, {"long_c", 2}}}}}),
      absl::StrCat("rows\n  a       ", wide, "\n  b       ", wide,
                   "\n  long c  1.5\n\n  a       -\n  long c  2\n"));
}

TEST(Render, ResultThatIsNoObjectIsItsValue) {
  EXPECT_EQ(Render("pm_0a_b"), "pm_0a_b\n");
  EXPECT_EQ(Render(json::array()), "none\n");
}

TEST(Render, LongListsAreCutOnlyInBrief) {
  json names = json::array();
  for (int i = 0; i < 1000; ++i) names.push_back(absl::StrCat("n", i));
  const std::string brief = Render({{"class_names", names}}, {}, /*rounded=*/true);
  EXPECT_THAT(brief, HasSubstr("n22, n23, ... (1000 in all)\n"));
  EXPECT_THAT(Render({{"class_names", names}}), HasSubstr("n998, n999\n"));
}

// All digits where a rounded number could look smaller than it is.
TEST(Render, NumbersOfAnObjectKeepTheirDigitsButOfSums) {
  EXPECT_EQ(Render({{"stddev", 0.30000000000000004}}), "stddev  0.30000000000000004\n");
  EXPECT_EQ(Render({{"spent", {{"epsilon", .1 + .2}, {"delta", 0.50035087293117103}}}}),
            "spent  epsilon 0.3, delta 0.500350872931171\n");
}

// A server chooses ids, names and payloads, but not the width of the output.
TEST(Render, TextsOfAServerBeginNoLineAndWidenNoOtherRow) {
  const std::string forged = "\x1b[2J\nforged\r\u2028\u202e";
  const json payload = {{"x\nforged", {{"y", forged}}}};
  json rows = json::array();
  for (int i = 0; i < 100; ++i) rows.push_back({{"id", i}, {"payload", payload}});
  rows.push_back({{"id", std::string(1'000'000, 'i') + forged}, {"payload", payload}});
  for (const Columns& columns : {Columns{}, Columns{{"matches", {"id", "payload"}}}}) {
    const std::string text = Render({{"name", forged}, {"matches", rows}}, columns);
    EXPECT_THAT(text, HasSubstr(R"(name  \x1b[2J\nforged\r\xe2\x80\xa8)"));
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      EXPECT_FALSE(absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "forged"));
    }
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, Not(HasSubstr("\r")));
    EXPECT_LT(text.size(), 1'050'000u);
  }
}

}  // namespace
}  // namespace privatemail::client::cli
