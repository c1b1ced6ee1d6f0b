#include "client/evaluation/report/axis_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace privatemail::client {
namespace {

using ::testing::ElementsAre;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::vector<std::string> Texts(const AxisRange& range, int most) {
  std::vector<std::string> texts;
  for (const AxisTick& tick : AxisTicks(range, most)) {
    if (!tick.text.empty()) texts.push_back(tick.text);
  }
  return texts;
}

TEST(AxisScale, LinearTicksAreRoundNumbersOfEqualDigits) {
  EXPECT_THAT(Texts({0, 1, false}, 6), ElementsAre("0.0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(Texts({0.3, 11, false}, 4), ElementsAre("5", "10"));
  EXPECT_THAT(Texts({-0.02, 0.025, false}, 5),
              ElementsAre("\u22120.02", "\u22120.01", "0.00", "0.01", "0.02"));
  EXPECT_THAT(Texts({0, 4e7, false}, 5), ElementsAre("0", "10\u2077", "2\u00d710\u2077",
                                                     "3\u00d710\u2077", "4\u00d710\u2077"));
}

TEST(AxisScale, LogarithmicTicksAreDecadesAndTheirHalvesWhereThereIsRoom) {
  EXPECT_THAT(Texts({0.1, 30, true}, 8),
              ElementsAre("0.1", "0.2", "0.5", "1", "2", "5", "10", "20"));
  EXPECT_THAT(Texts({0.1, 30, true}, 4), ElementsAre("0.1", "1", "10"));
  EXPECT_THAT(Texts({1e-8, 1e4, true}, 4),
              ElementsAre("10\u207b\u2078", "10\u207b\u2074", "1", "10000"));
  EXPECT_THAT(Texts({31, 39, true}, 5), ElementsAre("32", "34", "36", "38"));
  // Those in between are there without a text.
  EXPECT_EQ(AxisTicks({1, 10, true}, 3).size(), 10U);
}

TEST(AxisScale, PlacesValuesBetweenTheEnds) {
  EXPECT_DOUBLE_EQ(PlaceOn({-1, 3, false}, 0), 0.25);
  EXPECT_DOUBLE_EQ(PlaceOn({0.01, 100, true}, 1), 0.5);
  EXPECT_DOUBLE_EQ(PlaceOn({0.01, 100, true}, 0.01), 0);
  EXPECT_DOUBLE_EQ(PlaceOn({2, 4, false}, 5), 1.5);
}

TEST(AxisScale, FitsAroundFiniteValuesOnly) {
  const AxisRange tight = FitRange({}, {NAN, 3, -kInfinite, 7, kInfinite}, AxisFit::kTight);
  EXPECT_EQ(tight.low, 3);
  EXPECT_EQ(tight.high, 7);
  const AxisRange rounded = FitRange({}, {0.03, 0.91}, AxisFit::kRounded);
  EXPECT_EQ(rounded.low, 0);
  EXPECT_EQ(rounded.high, 1);
  FigureAxis logarithmic;
  logarithmic.logarithmic = true;
  const AxisRange decades = FitRange(logarithmic, {0.03, 200, 0, -1}, AxisFit::kRounded);
  EXPECT_DOUBLE_EQ(decades.low, 0.01);
  EXPECT_DOUBLE_EQ(decades.high, 1000);
}

TEST(AxisScale, EndsThatAreGivenHold) {
  FigureAxis axis;
  axis.low = 0.25;
  axis.high = 0.75;
  const AxisRange both = FitRange(axis, {-5, 5}, AxisFit::kRounded);
  EXPECT_EQ(both.low, 0.25);
  EXPECT_EQ(both.high, 0.75);
  axis.high = NAN;
  axis.low = 10;  // beyond all points
  const AxisRange one = FitRange(axis, {1, 2}, AxisFit::kRounded);
  EXPECT_LT(one.low, one.high);
}

// Every axis must have a length, few ticks and finite numbers, whatever lies on it.
TEST(AxisScale, ThereIsAnAxisForWhateverValues) {
  const std::vector<std::vector<double>> all_values = {{},
                                                       {NAN},
                                                       {kInfinite},
                                                       {0},
                                                       {1e250},
                                                       {-1e250, 1e250},
                                                       {1e-250},
                                                       {5e-324},
                                                       {1, 1 + 1e-15},
                                                       {1e250, 1e-250},
                                                       {-7},
                                                       {1e15, 1e15 + 1},
                                                       {0, 5e-324},
                                                       {123456.7, 123456.8}};
  for (const bool logarithmic : {false, true}) {
    FigureAxis axis;
    axis.logarithmic = logarithmic;
    for (const std::vector<double>& values : all_values) {
      for (const AxisFit fit : {AxisFit::kTight, AxisFit::kRounded, AxisFit::kPadded}) {
        const AxisRange range = FitRange(axis, values, fit);
        const std::string name = ::testing::PrintToString(values);
        EXPECT_TRUE(range.low < range.high && std::isfinite(range.high - range.low)) << name;
        EXPECT_LE(AxisTicks(range, 6).size(), 70U) << name;
        EXPECT_GE(Texts(range, 6).size(), 1U) << name;
        EXPECT_TRUE(std::isfinite(PlaceOn(range, range.high))) << name;
      }
    }
  }
}

}  // namespace
}  // namespace privatemail::client
