#include "client/evaluation/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "client/evaluation/report/figure.h"
#include "common/base/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

TEST(WriteResults, KeepsEveryBitOfNumbersAndReplacesInvalidUtf8) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  std::vector<FigurePoint> points = {{5e-324, 1.7976931348623157e308, NAN, NAN, 0}};
  std::mt19937_64 generator(1);
  for (int i = 0; i < 500; ++i) {
    points.push_back({std::bit_cast<double>(generator() & ~(uint64_t{1} << 62)), .1 * i, NAN, NAN});
  }
  points.push_back({1, 2, -kInfinite, kInfinite, -1});
  Figure figure;
  figure.title = "caf\xe9";
  figure.panels = {{"", {{"series", FigureSeries::Mark::kLine, points}}}};
  const auto results = nlohmann::json::parse(WriteResults({"title", {}, {}, {figure}}));
  EXPECT_EQ(results["format"], 3);
  const nlohmann::json& written = results["figures"][0];
  EXPECT_EQ(written["title"], "caf\uFFFD");
  const nlohmann::json& series = written["panels"][0]["series"][0];
  EXPECT_EQ(series["mark"], "line");
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(series["points"][i]["x"].get<double>(), points[i].x);
    EXPECT_EQ(series["points"][i]["y"].get<double>(), points[i].y);
  }
  EXPECT_FALSE(series["points"][0].contains("low"));
  EXPECT_FALSE(series["points"][0].contains("group"));
  EXPECT_EQ(series["points"].back()["low"], "-Infinity");
  EXPECT_EQ(series["points"].back()["high"], "Infinity");
  EXPECT_EQ(series["points"].back()["group"], -1);
}

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

using ::testing::HasSubstr;
using ::testing::Not;

std::set<std::string> NamesIn(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

Figure NewFigure(const std::string& id, const std::string& title) {
  Figure figure;
  figure.id = id;
  figure.title = title;
  figure.x.label = "x";
  figure.y.label = "y";
  figure.words = {"A sentence."};
  return figure;
}

// Lines with bands and a level, bars, scatters in two panels, and values that are not finite.
Report SampleReport() {
  Figure recall = NewFigure("recall-epsilon", "Recall@8 against epsilon");
  recall.x.logarithmic = true;
  recall.panels = {{"",
                    {{"chance", Mark::kReference, {{1, .077}}},
                     {"proven", Mark::kLine, {{.1, .05, .03, .07}, {1, .33, .3, .36}, {16, .9}}}}}};
  Figure attacks = NewFigure("attacks", "Attackers' advantage");
  attacks.x.categories = {"nearest dummy", "feature inversion"};
  attacks.panels = {{"",
                     {{"measured", Mark::kBars, {{0, .04, .02, .06}, {1, .1}}},
                      {"allowed", Mark::kBars, {{0, .46}, {1, .26}}}}}};
  Figure alignment = NewFigure("alignment", "Before and after alignment");
  FigureSeries cloud = {"gallery", Mark::kScatter, {}};
  for (int32_t i = 0; i < 20; ++i) cloud.points.push_back({.1 * i, i % 3 + 0., NAN, NAN, i});
  alignment.panels = {{"before", {cloud}}, {"after", {cloud}}};
  Figure variance = NewFigure("variance", "Variance of the noise");
  variance.x.logarithmic = variance.y.logarithmic = true;
  variance.panels = {
      {"", {{"classical", Mark::kLine, {{.1, INFINITY}, {1, 23.5}, {2, NAN}, {4, 1.5}}}}}};
  return {"A sample report",
          {{"Data", "synthetic"}},
          {{"--alpha", "0.6"}},
          {recall, attacks, alignment, variance}};
}

TEST(WriteReport, WritesAPageResultsAndAPlotAFigure) {
  const TemporaryFolder folder;
  const Report report = SampleReport();
  const std::string directory = folder / "a/report";
  ASSERT_THAT(WriteReport(directory, report), IsOk());
  std::set<std::string> expected = {"index.html", "results.json"};
  for (const Figure& figure : report.figures) expected.insert(figure.id + ".svg");
  EXPECT_EQ(NamesIn(directory), expected);
  ASSERT_OK_AND_ASSIGN(const std::string results, ReadFile("results", directory + "/results.json"));
  EXPECT_EQ(results, WriteResults(report));
  struct stat properties = {};
  ASSERT_EQ(::stat((directory + "/index.html").c_str(), &properties), 0);
  EXPECT_EQ(properties.st_mode & 0777U, 0644U);
}

TEST(WriteReport, ReplacesAnEarlierReportAndLeavesOtherFilesAlone) {
  const TemporaryFolder folder;
  folder.Write("index.html", "earlier");
  folder.Write("notes.txt", "mine");
  ASSERT_THAT(WriteReport(folder.path(), SampleReport()), IsOk());
  EXPECT_THAT(*ReadFile("page", folder / "index.html"), HasSubstr("<!DOCTYPE html>"));
  EXPECT_EQ(*ReadFile("notes", folder / "notes.txt"), "mine");
}

TEST(WriteReport, WritesNothingWhenOneFigureCannotBeDrawn) {
  const TemporaryFolder folder;
  Report report = SampleReport();
  report.figures.back().panels[0].series[0].points[1].y = 0;  // on a logarithmic axis
  const auto code = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(WriteReport(folder / "report", report),
              FailsWith(code, "points[1].y must be positive on a logarithmic axis, but is 0"));
  report = SampleReport();
  report.figures[1].id = report.figures[0].id;
  EXPECT_THAT(WriteReport(folder / "report", report),
              FailsWith(code, "figure ids must differ, but two are recall-epsilon"));
  report.figures[1].id = "../ablation";
  EXPECT_THAT(WriteReport(folder / "report", report), FailsWith(code, "figure id must be"));
  EXPECT_FALSE(std::filesystem::exists(folder / "report"));
}

TEST(WriteReport, NamesThePathThatCannotBeWritten) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("file", "");
  const auto code = absl::StatusCode::kFailedPrecondition;
  EXPECT_THAT(WriteReport(file, SampleReport()), FailsWith(code, file));
  EXPECT_THAT(WriteReport(file + "/report", SampleReport()), FailsWith(code, file + "/report"));
  std::filesystem::create_directories(folder / "report/index.html");
  EXPECT_THAT(WriteReport(folder / "report", SampleReport()),
              FailsWith(code, folder / "report/index.html"));
}

TEST(HtmlReport, TextIsTextWhateverItSays) {
  const TemporaryFolder folder;
  const std::string hostile = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"'";
  Report report = {hostile, {{hostile, hostile}}, {{hostile, hostile}}, {}};
  Figure figure;
  figure.id = "one";
  figure.title = figure.x.label = figure.y.label = hostile;
  figure.words = {hostile};
  figure.class_names = {{3, hostile}};
  figure.x.categories = {hostile};
  figure.panels = {{hostile, {{hostile, FigureSeries::Mark::kBars, {{0, 1}}}}},
                   {hostile, {{hostile, FigureSeries::Mark::kLine, {{0, 1}}}}}};
  report.figures = {figure};
  ASSERT_THAT(WriteReport(folder.path(), report), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string page, ReadFile("page", folder / "index.html"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("<h1>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;"));
}

}  // namespace
}  // namespace privatemail::client
