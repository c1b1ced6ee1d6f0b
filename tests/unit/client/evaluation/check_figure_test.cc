#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/evaluation/report/figure.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

using Mark = FigureSeries::Mark;

Figure OneSeries(Mark mark, const std::vector<FigurePoint>& points) {
  Figure figure;
  figure.id = "one";
  figure.panels = {{"", {{"series", mark, points}}}};
  return figure;
}

TEST(CheckFigure, RefusesWhatCannotBeDrawnAndSaysWhere) {
  const auto code = absl::StatusCode::kInvalidArgument;
  Figure figure = OneSeries(Mark::kLine, {{1, 1}, {0, 2}});
  figure.x.logarithmic = true;
  EXPECT_THAT(CheckFigure(figure),
              FailsWith(code,
                        "figure one panels[0] series \"series\" points[1].x must be positive "
                        "on a logarithmic axis, but is 0"));
  figure = OneSeries(Mark::kLine, {{1, -1}});
  figure.y.logarithmic = true;
  EXPECT_THAT(CheckFigure(figure), FailsWith(code, "points[0].y must be positive"));
  figure = OneSeries(Mark::kLine, {{1, 0.1, 0, 0.2}, {2, 0.1, -1, 0.2}});
  figure.y.logarithmic = true;  // only the band reaches 0
  EXPECT_THAT(CheckFigure(figure), IsOk());
  EXPECT_THAT(CheckFigure(OneSeries(Mark::kBars, {{0, 1}})), FailsWith(code, "x.categories"));
  EXPECT_THAT(CheckFigure(OneSeries(Mark::kLine, {{0, 1e251}})), FailsWith(code, "1e250"));
  figure = OneSeries(Mark::kBars, {{1, 1}});
  figure.x.categories = {"only"};
  EXPECT_THAT(CheckFigure(figure), FailsWith(code, "points[0].x must be the index of one of 1"));
  figure = OneSeries(Mark::kLine, {});
  figure.y.low = 2;
  figure.y.high = 1;
  EXPECT_THAT(CheckFigure(figure), FailsWith(code, "figure one y.low must be below"));
  figure.id = "a/b";
  EXPECT_THAT(CheckFigure(figure), FailsWith(code, "figure id must be 1 to 80 letters"));
}

TEST(TakeOutUndrawable, LeavesTheOthersAndSaysWhy) {
  std::vector<Figure> figures(3, OneSeries(Mark::kLine, {{0, 1}}));
  figures[0].id = "first";
  figures[1].x.logarithmic = true;
  figures[2].id = "last";
  EXPECT_THAT(TakeOutUndrawable(&figures),
              testing::ElementsAre(testing::HasSubstr("points[0].x must be positive")));
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].id, "first");
  EXPECT_EQ(figures[1].id, "last");
  EXPECT_THAT(TakeOutUndrawable(&figures), testing::IsEmpty());
}

}  // namespace
}  // namespace privatemail::client
