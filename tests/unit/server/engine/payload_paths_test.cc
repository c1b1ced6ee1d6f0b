#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/payload_columns.h"
#include "tests/testing/matchers.h"

namespace privatemail::testing {
namespace {

using server::PayloadPaths;

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(PayloadPaths, RarePathsHaveTheirRows) {
  std::vector<std::string> payloads(3000, R"({"common": 1, "nested": {"also": [2]}})");
  payloads[7] = R"({"rare": null, "nested": {"rare": {"deep": []}}})";
  payloads[9] = "";
  payloads[11] = R"(["rare"])";
  payloads[2999] = R"({"rare": "twice", "a.b": 1, "rare": 2})";
  PayloadPaths paths;
  ASSERT_THAT(paths.Read(payloads, nullptr), IsOk());
  EXPECT_THAT(paths.RowsWith("rare"), Optional(ElementsAre(7, 2999)));
  EXPECT_THAT(paths.RowsWith("nested.rare.deep"), Optional(ElementsAre(7)));
  EXPECT_THAT(paths.RowsWith("nested.rare"), Optional(IsEmpty())) << "an object has no value";
  EXPECT_THAT(paths.RowsWith("none"), Optional(IsEmpty()));
  EXPECT_EQ(paths.RowsWith("common"), std::nullopt);
  EXPECT_EQ(paths.RowsWith("nested.also"), std::nullopt);
}

TEST(PayloadPaths, TooManyPathsAreAllCommon) {
  std::vector<std::string> payloads;
  for (size_t i = 0; i <= PayloadPaths::kMaxPaths; ++i) {
    payloads.push_back(absl::StrCat(R"({"p)", i, R"(": 1})"));
  }
  PayloadPaths many, fewer;
  ASSERT_THAT(many.Read(payloads, nullptr), IsOk());
  EXPECT_EQ(many.RowsWith("none"), std::nullopt);
  payloads.pop_back();
  ASSERT_THAT(fewer.Read(payloads, nullptr), IsOk());
  EXPECT_THAT(fewer.RowsWith("none"), Optional(IsEmpty()));
}

TEST(PayloadPaths, DeepAndLongPathsAreSkipped) {
  constexpr int kDepth = 5000;
  std::string deep;
  for (int i = 0; i < kDepth; ++i) deep += R"({"a":)";
  deep += "1" + std::string(kDepth, '}');
  PayloadPaths paths;
  ASSERT_THAT(paths.Read({deep, R"({"a": {"a": 1}})"}, nullptr), IsOk());
  EXPECT_THAT(paths.RowsWith("a.a"), Optional(ElementsAre(1)));
}

TEST(PayloadPaths, CancelledReadGoesOnLater) {
  std::vector<std::string> payloads(9000, "{}");
  payloads[1] = R"({"early": 1})";
  payloads[8999] = R"({"late": 1})";
  PayloadPaths paths;
  int polls = 0;
  EXPECT_THAT(paths.Read(payloads, [&] { return ++polls == 3; }), FailsWith(kCancelled));
  payloads[1] = "{}";  // is not read again
  ASSERT_THAT(paths.Read(payloads, nullptr), IsOk());
  EXPECT_THAT(paths.RowsWith("early"), Optional(ElementsAre(1)));
  EXPECT_THAT(paths.RowsWith("late"), Optional(ElementsAre(8999)));
}

}  // namespace
}  // namespace privatemail::testing
