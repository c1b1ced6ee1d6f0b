#include "common/items/item_checks.h"

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

std::string Nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(CheckPayload, AcceptsOnlyJsonOfLimitedDepth) {
  for (const std::string& payload :
       {std::string(), std::string("1e3"), std::string("{\"a\":[{},[]],\"b\":null}"), Nested(64)}) {
    EXPECT_TRUE(CheckPayload(payload).ok()) << payload;
  }
  for (const std::string& payload :
       {Nested(65), std::string("[1,]"), std::string("{} {}"), std::string("\"\xff\""),
        std::string("1e999"), std::string("[]\0", 3), std::string("[")}) {
    EXPECT_EQ(CheckPayload(payload).code(), absl::StatusCode::kInvalidArgument) << payload;
  }
}

// A parser that builds a document took quadratic time: 12 s for 80,000 empty objects.
TEST(CheckPayload, TakesLinearTime) {
  const auto seconds = [](int objects) {
    std::string payload = "[{}";
    for (int i = 1; i < objects; ++i) payload += ",{}";
    payload += "]";
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(CheckPayload(payload).ok());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  EXPECT_LT(seconds(1'000'000), 5);  // a thousand times as much if quadratic
}

TEST(ItemLabel, IsOneOfTheClasses) {
  PublicParameters parameters;
  parameters.slot_labels = {-2, 3, 9};
  for (const int32_t label : {-2, 3, 9}) EXPECT_THAT(CheckItemLabel(label, parameters), IsOk());
  EXPECT_THAT(CheckItemLabel(4, parameters), FailsWith(kInvalid, "label must be one"));
  EXPECT_THAT(CheckItemLabel(kNoLabel, parameters), FailsWith(kInvalid, "label must be one"));
}

TEST(ItemLabel, IsAnyOrMissingWithoutClasses) {
  const PublicParameters parameters;
  for (const int32_t label :
       {0, -1, 7, kNoLabel + 1, std::numeric_limits<int32_t>::max(), kNoLabel})
    EXPECT_THAT(CheckItemLabel(label, parameters), IsOk());
}

absl::Status Check(Metric metric, const std::vector<float>& values) {
  return CheckHasSimilarity("query", metric, values.data(), std::ssize(values));
}

TEST(ItemDirection, IsNeededByCosineAlone) {
  EXPECT_THAT(Check(Metric::kCosine, {0, 0}), FailsWith(kInvalid, "query: all 2 values"));
  for (const Metric metric : {Metric::kDot, Metric::kEuclidean}) {
    EXPECT_THAT(Check(metric, {0, -0.F}), IsOk());
    EXPECT_THAT(Check(metric, {0, std::numeric_limits<float>::denorm_min()}), IsOk());
    EXPECT_THAT(Check(metric, {0, std::numeric_limits<float>::quiet_NaN()}),
                FailsWith(kInvalid, "nan"));
    EXPECT_THAT(Check(metric, {0, std::numeric_limits<float>::infinity()}),
                FailsWith(kInvalid, "inf"));
  }
}

}  // namespace
}  // namespace privatemail
