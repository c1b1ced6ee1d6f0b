#include "client/evaluation/report/plot_points.h"

#include <gtest/gtest.h>

#include <cmath>

namespace privatemail::client {
namespace {

using Mark = FigureSeries::Mark;

// On 200 x 100 pixels: lines that fall by 1 from x = 0 to 1, which takes 100 pixels, and rise
// again, and one apart from them.
TEST(PlotPoints, OfLinesThatCoincideStandSideBySideOnTheirLines) {
  FigurePanel panel;
  for (int i = 0; i < 3; ++i) panel.series.push_back({"", Mark::kLine, {{0, 1}, {1, 0}, {2, 1}}});
  panel.series.push_back({"", Mark::kReference, {{1, 0}}});
  panel.series.push_back({"", Mark::kLine, {{0, .5}, {1, .5}, {2, NAN}}});
  const PlotFrame frame = {{0, 0, 200, 100}, {{0, 2, false}, {0, 1, false}, false}};
  const std::vector<std::vector<Spot>> places = PlacePoints(panel, frame);
  ASSERT_EQ(places.size(), 4U);
  const auto expect_at = [&](size_t line, size_t point, double x, double y) {
    EXPECT_NEAR(places[line].at(point).x, x, 1e-9) << line << " " << point;
    EXPECT_NEAR(places[line].at(point).y, y, 1e-9) << line << " " << point;
  };
  for (size_t i = 0; i < 3; ++i) {
    const double shift = 9 * static_cast<double>(i);
    ASSERT_EQ(places[i].size(), 3U);
    expect_at(i, 0, shift, shift);
    expect_at(i, 1, 91 + shift, 100 - std::abs(shift - 9));
    expect_at(i, 2, 182 + shift, 18 - shift);
  }
  ASSERT_EQ(places[3].size(), 2U);
  expect_at(3, 0, 0, 50);
  expect_at(3, 1, 100, 50);
}

}  // namespace
}  // namespace privatemail::client
