#include "common/items/item_text.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

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

}  // namespace
}  // namespace privatemail
