#include "client/evaluation/report/figure_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/matchers.h"
#include "tests/testing/sample_report.h"

namespace privatemail::client {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

bool SameNumber(double left, double right) {
  if (std::isnan(left)) return std::isnan(right);
  return std::memcmp(&left, &right, sizeof(left)) == 0;
}

void ExpectSame(const FigureAxis& left, const FigureAxis& right) {
  EXPECT_EQ(left.label, right.label);
  EXPECT_EQ(left.logarithmic, right.logarithmic);
  EXPECT_TRUE(SameNumber(left.low, right.low) && SameNumber(left.high, right.high));
  EXPECT_EQ(left.categories, right.categories);
}

void ExpectSame(const FigurePoint& left, const FigurePoint& right) {
  EXPECT_TRUE(SameNumber(left.x, right.x) && SameNumber(left.y, right.y)) << left.y;
  EXPECT_TRUE(SameNumber(left.low, right.low) && SameNumber(left.high, right.high)) << left.low;
  EXPECT_EQ(left.group, right.group);
}

void ExpectSame(const Figure& left, const Figure& right) {
  EXPECT_EQ(left.id, right.id);
  EXPECT_EQ(left.title, right.title);
  EXPECT_EQ(left.words, right.words);
  EXPECT_EQ(left.class_names, right.class_names);
  ExpectSame(left.x, right.x);
  ExpectSame(left.y, right.y);
  ASSERT_EQ(left.panels.size(), right.panels.size());
  for (size_t i = 0; i < left.panels.size(); ++i) {
    EXPECT_EQ(left.panels[i].title, right.panels[i].title);
    ASSERT_EQ(left.panels[i].series.size(), right.panels[i].series.size());
    for (size_t j = 0; j < left.panels[i].series.size(); ++j) {
      const FigureSeries& one = left.panels[i].series[j];
      const FigureSeries& other = right.panels[i].series[j];
      EXPECT_EQ(one.name, other.name);
      EXPECT_EQ(one.mark, other.mark);
      ASSERT_EQ(one.points.size(), other.points.size());
      for (size_t k = 0; k < one.points.size(); ++k) ExpectSame(one.points[k], other.points[k]);
      ASSERT_EQ(one.curve.size(), other.curve.size());
      for (size_t k = 0; k < one.curve.size(); ++k) ExpectSame(one.curve[k], other.curve[k]);
    }
  }
}

std::vector<Figure> OneFigure(const std::vector<FigurePoint>& points) {
  Figure figure;
  figure.id = "one";
  figure.panels = {{"", {{"series", FigureSeries::Mark::kLine, points}}}};
  return {figure};
}

TEST(FigureJson, BringsEveryNumberBackBitByBit) {
  std::vector<FigurePoint> points = {{0.0, -0.0, kNothing, kNothing, 0},
                                     {kInfinite, -kInfinite, -kInfinite, kInfinite, -1},
                                     {kNothing, kNothing, 0.1, 1.0 / 3, 2147483647},
                                     {5e-324, 1.7976931348623157e308, 1e16, 9007199254740993.0, 0}};
  std::mt19937_64 generator(1);
  for (int i = 0; i < 2000; ++i) {
    FigurePoint point;
    for (double* value : {&point.x, &point.y, &point.low, &point.high}) {
      const uint64_t bits = generator();
      std::memcpy(value, &bits, sizeof(bits));
    }
    point.group = static_cast<int32_t>(generator());
    points.push_back(point);
  }
  const std::vector<Figure> figures = OneFigure(points);
  ASSERT_OK_AND_ASSIGN(const std::vector<Figure> read, ReadFigures(WriteFigures(figures)));
  ASSERT_EQ(read.size(), 1U);
  ExpectSame(figures[0], read[0]);
}

TEST(FigureJson, ReadsAReportAsItWasWritten) {
  const Report report = SampleReport();
  ASSERT_OK_AND_ASSIGN(const Report read, ReadResults(WriteResults(report)));
  EXPECT_EQ(read.title, report.title);
  EXPECT_EQ(read.about, report.about);
  EXPECT_EQ(read.settings, report.settings);
  ASSERT_EQ(read.figures.size(), report.figures.size());
  for (size_t i = 0; i < read.figures.size(); ++i) ExpectSame(read.figures[i], report.figures[i]);
}

TEST(FigureJson, ReadsWhatTheHeaderDescribes) {
  const std::string text =
      R"([{"id": "recall", "title": "T", "x": {"label": "epsilon", "logarithmic": true, "low": 1,
           "high": 10}, "y": {"label": "", "logarithmic": false, "categories": ["a", "b"]},
           "panels": [{"title": "P", "series": [{"name": "S", "mark": "scatter", "points":
           [{"x": 1, "y": 0.5, "low": "-Infinity", "group": 3}]}]}], "words": ["w"],
           "class_names": [[3, "heron"]]}])";
  ASSERT_OK_AND_ASSIGN(const std::vector<Figure> figures, ReadFigures(text));
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_EQ(figures[0].x.high, 10);
  EXPECT_EQ(figures[0].class_names.at(3), "heron");
  EXPECT_EQ(figures[0].y.categories, (std::vector<std::string>{"a", "b"}));
  const FigureSeries& series = figures[0].panels.at(0).series.at(0);
  EXPECT_EQ(series.mark, FigureSeries::Mark::kScatter);
  EXPECT_EQ(series.points.at(0).group, 3);
  EXPECT_EQ(series.points.at(0).low, -kInfinite);
  EXPECT_TRUE(std::isnan(series.points.at(0).high));
}

TEST(FigureJson, NamesTheFieldThatIsWrong) {
  const std::string good = WriteFigures(OneFigure({{1, 2, 0.5, 3, 4}}));
  ASSERT_THAT(ReadFigures(good), IsOk());
  const std::vector<std::vector<std::string>> breaks = {
      {"\"x\":1.0", "\"x\":null", "figures[0].panels[0].series[0].points[0].x must be a number"},
      {"\"y\":2.0", "\"y\":\"2\"", "points[0].y must be a number, \"Infinity\""},
      {"\"low\":0.5", "\"low\":[0.5]",
       "points[0].low must be a number, \"Infinity\" or "
       "\"-Infinity\", but is a list"},
      {"\"group\":4", "\"group\":4.5", "points[0].group must be a whole number of 32 bits"},
      {"\"group\":4", "\"group\":2147483648", "points[0].group must be a whole number of 32 bits"},
      {"\"group\":4", "\"colour\":4", "points[0] has an unknown member \"colour\""},
      {"\"line\"", "\"pie\"", "series[0].mark must be line, reference, bars or scatter"},
      {"\"line\"", "{}", "series[0].mark must be line, reference, bars or scatter, but is an obj"},
      {"\"id\":\"one\"", "\"id\":\"../one\"", "figures[0].id must be 1 to 80 letters"},
      {"\"id\":\"one\"", "\"id\":\"\"", "figures[0].id must be 1 to 80 letters"},
      {"\"id\":\"one\",", "", "figures[0].id must be a text, but is absent"},
      {"\"words\":[]", "\"words\":[7]", "figures[0].words[0] must be a text, but is 7"},
      {"\"words\":[]", "\"words\":[],\"class_names\":[[1]]",
       "figures[0].class_names[0] must be a list of a class and its name, but is a list"},
      {"\"words\":[]", "\"words\":[],\"class_names\":[[1.5,\"a\"]]",
       "figures[0].class_names[0][0] must be a whole number"},
      {"\"logarithmic\":false", "\"logarithmic\":0", "figures[0].x.logarithmic must be true or"},
      {"\"panels\":[", "\"panels\":[true,", "figures[0].panels[0] must be an object, but is true"},
  };
  for (const std::vector<std::string>& change : breaks) {
    const std::string broken = absl::StrReplaceAll(good, {{change[0], change[1]}});
    ASSERT_NE(broken, good) << change[0];
    EXPECT_THAT(ReadFigures(broken), FailsWith(absl::StatusCode::kInvalidArgument, change[2]));
  }
}

TEST(FigureJson, RefusesOtherFormatsOfResults) {
  const auto code = absl::StatusCode::kInvalidArgument;
  const std::string good = WriteResults({"title", {{"key", "value"}}, {{"alpha", "0.6"}}, {}});
  ASSERT_THAT(ReadResults(good), IsOk());
  const auto changed = [&](const std::string& from, const std::string& to) {
    return ReadResults(absl::StrReplaceAll(good, {{from, to}}));
  };
  EXPECT_THAT(changed("\"format\":3", "\"format\":1"), FailsWith(code, "results.format must be 3"));
  EXPECT_THAT(changed("\"format\":3,", ""), FailsWith(code, "but is absent"));
  EXPECT_THAT(changed("\"0.6\"", "0.6"), FailsWith(code, "results.settings[0][1] must be a text"));
  EXPECT_THAT(changed("[\"key\",\"value\"]", "[\"key\"]"),
              FailsWith(code, "results.about[0] must be a list of two texts"));
  EXPECT_THAT(changed("\"value\"", "1"), FailsWith(code, "results.about[0][1] must be a text"));
}

// Each must be an answer, not a crash.
TEST(FigureJson, SurvivesHostileTexts) {
  const auto code = absl::StatusCode::kInvalidArgument;
  const std::string deep(1000000, '[');
  const std::string closed = deep + std::string(1000000, ']');
  for (const std::string& text :
       {std::string(), std::string("["), std::string("\xff"), std::string("[1e999]"), deep,
        std::string("{}"), std::string("[{}]"), std::string("null"), std::string("[\"\xc3\"]")}) {
    EXPECT_THAT(ReadFigures(text), FailsWith(code, "figures")) << text.substr(0, 20);
    EXPECT_THAT(ReadResults(text), FailsWith(code, "results")) << text.substr(0, 20);
  }
  EXPECT_THAT(ReadFigures(closed), FailsWith(code, "figures[0] must be an object, but is a list"));
  EXPECT_THAT(ReadFigures(absl::StrCat("[{\"", std::string(100000, 'x'), "\":1}]")),
              FailsWith(code, "figures[0] has an unknown member"));
}

TEST(FigureJson, WritesTextThatIsNotUtf8AsUtf8) {
  std::vector<Figure> figures = OneFigure({});
  figures[0].title = "caf\xe9";
  ASSERT_OK_AND_ASSIGN(const std::vector<Figure> read, ReadFigures(WriteFigures(figures)));
  EXPECT_EQ(read[0].title, "caf\uFFFD");
}

}  // namespace
}  // namespace privatemail::client
