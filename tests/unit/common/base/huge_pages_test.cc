#include "common/base/huge_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace privatemail {
namespace {

TEST(HugePages, HoldTheSame) {
  for (const size_t size : {0, 1, 1 << 18, (1 << 20) + 3, 5 << 20}) {
    std::vector<uint32_t> expected(size);
    std::iota(expected.begin(), expected.end(), 7);
    const std::vector<uint32_t> moved = expected;
    UseHugePages(moved);
    EXPECT_TRUE(moved == expected) << size;
  }
}

}  // namespace
}  // namespace privatemail
