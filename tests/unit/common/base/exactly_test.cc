#include "common/base/exactly.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace privatemail {
namespace {

TEST(Exactly, IsAsShortAsItMayBe) {
  EXPECT_EQ(Exactly(.1), "0.1");
  EXPECT_EQ(Exactly(2), "2");
  EXPECT_EQ(Exactly(-.5), "-0.5");
  EXPECT_EQ(Exactly(.1 + .2), "0.30000000000000004");
}

TEST(Exactly, ReadsBackAsTheSame) {
  using Limits = std::numeric_limits<double>;
  for (const double number : {1e-5, 1. / 3, std::nextafter(2., 3.), Limits::min(), Limits::max(),
                              Limits::denorm_min(), 1e22, 123456789012345678.}) {
    EXPECT_EQ(std::strtod(Exactly(number).c_str(), nullptr), number);
  }
}

}  // namespace
}  // namespace privatemail
