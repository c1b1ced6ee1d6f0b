#include "server/engine/payload_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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
  const auto paths = PayloadPaths::Read(payloads, nullptr);
  ASSERT_THAT(paths, IsOk());
  EXPECT_THAT(paths->RowsWith("rare"), Optional(ElementsAre(7, 2999)));
  EXPECT_THAT(paths->RowsWith("nested.rare.deep"), Optional(ElementsAre(7)));
  EXPECT_THAT(paths->RowsWith("nested.rare"), Optional(IsEmpty())) << "an object has no value";
  EXPECT_THAT(paths->RowsWith("none"), Optional(IsEmpty()));
  EXPECT_EQ(paths->RowsWith("common"), std::nullopt);
  EXPECT_EQ(paths->RowsWith("nested.also"), std::nullopt);
}

TEST(PayloadPaths, TooManyPathsAreAllCommon) {
  std::vector<std::string> payloads;
  for (size_t i = 0; i <= PayloadPaths::kMaxPaths; ++i) {
    payloads.push_back(absl::StrCat(R"({"p)", i, R"(": 1})"));
  }
  EXPECT_EQ(PayloadPaths::Read(payloads, nullptr)->RowsWith("none"), std::nullopt);
  payloads.pop_back();
  EXPECT_THAT(PayloadPaths::Read(payloads, nullptr)->RowsWith("none"), Optional(IsEmpty()));
}

TEST(PayloadPaths, DeepAndLongPathsAreSkipped) {
  constexpr int kDepth = 5000;
  std::string deep;
  for (int i = 0; i < kDepth; ++i) deep += R"({"a":)";
  deep += "1" + std::string(kDepth, '}');
  const auto paths = PayloadPaths::Read({deep, R"({"a": {"a": 1}})"}, nullptr);
  ASSERT_THAT(paths, IsOk());
  EXPECT_THAT(paths->RowsWith("a.a"), Optional(ElementsAre(1)));
}

TEST(PayloadPaths, CancelledReadReturnsCancelled) {
  EXPECT_THAT(PayloadPaths::Read({"{}"}, [] { return true; }),
              FailsWith(absl::StatusCode::kCancelled, ""));
}

}  // namespace
}  // namespace privatemail::testing
