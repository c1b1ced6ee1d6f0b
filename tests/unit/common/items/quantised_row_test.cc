#include "common/items/quantised_row.h"

#include <gtest/gtest.h>

namespace privatemail {
namespace {

TEST(QuantiseUnitRow, RoundsToNearest) {
  RowVector row(5);
  row << 1, -1, 0, .5 / 16384, -1.49 / 16384;
  const std::vector<int16_t> expected = {16384, -16384, 0, 1, -1};
  EXPECT_EQ(QuantiseUnitRow(row), expected);
}

}  // namespace
}  // namespace privatemail
