#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "client/evaluation/report/figure_json.h"
#include "client/evaluation/report/report.h"
#include "common/base/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/sample_report.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::set<std::string> NamesIn(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.insert(entry.path().filename().string());
  }
  return names;
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

TEST(WriteReport, TheSameReportGivesTheSameBytes) {
  const TemporaryFolder folder;
  ASSERT_THAT(WriteReport(folder / "one", SampleReport()), IsOk());
  ASSERT_THAT(WriteReport(folder / "two", SampleReport()), IsOk());
  for (const std::string& name : NamesIn(folder / "one")) {
    EXPECT_EQ(*ReadFile("one", folder / "one/" + name), *ReadFile("two", folder / "two/" + name));
  }
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

TEST(HtmlReport, TheTableTellsEveryPointWithItsBandAndClass) {
  const TemporaryFolder folder;
  Figure figure;
  figure.id = "one";
  figure.x = {"epsilon", false, NAN, NAN, {}};
  figure.y = {"recall", false, NAN, NAN, {}};
  FigurePoint point = {0.125, 0.98765432, 0.5, INFINITY, 0};
  figure.panels = {{"",
                    {{"ours", FigureSeries::Mark::kLine, {point, {1, NAN}}},
                     {"chance", FigureSeries::Mark::kReference, {{0, 0.01}}}}}};
  ASSERT_THAT(WriteReport(folder.path(), {"title", {}, {}, {figure}}), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string page, ReadFile("page", folder / "index.html"));
  const auto row = [](const std::string& name, const std::vector<std::string>& numbers) {
    std::string text = "<tr><td>" + name + "</td>";
    for (const std::string& number : numbers) text += "<td class=\"number\">" + number + "</td>";
    return text + "</tr>";
  };
  EXPECT_THAT(page, HasSubstr(row("ours", {"0.125", "0.987654", "0.5", "\u221e"})));
  EXPECT_THAT(page, HasSubstr(row("ours", {"1", "\u2013", "\u2013", "\u2013"})));
  EXPECT_THAT(page, HasSubstr(row("chance", {"all", "0.01", "\u2013", "\u2013"})));
  EXPECT_THAT(page, HasSubstr("<th scope=\"col\" class=\"number\">epsilon</th>"));
}

TEST(HtmlReport, TellsTheSettings) {
  const TemporaryFolder folder;
  ASSERT_THAT(WriteReport(folder.path(), {"title", {}, {{"--alpha", "0.6"}}, {}}), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string page, ReadFile("page", folder / "index.html"));
  EXPECT_THAT(page, HasSubstr("Settings</h2>"));
  EXPECT_THAT(page, HasSubstr("<dt>--alpha</dt><dd>0.6</dd>"));
}

TEST(HtmlReport, CallsClassesByTheirNamesWhereTheyHaveOne) {
  const TemporaryFolder folder;
  Figure figure;
  figure.id = "one";
  figure.class_names = {{30, "heron"}};
  figure.panels = {{"", {{"rows", FigureSeries::Mark::kScatter, {}}}}};
  for (const int32_t label : {30, 7, 210}) {
    FigurePoint& point = figure.panels[0].series[0].points.emplace_back();
    point.group = label;
  }
  ASSERT_THAT(WriteReport(folder.path(), {"title", {}, {}, {figure}}), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string page, ReadFile("page", folder / "index.html"));
  for (const char* text : {">class 7</text>", ">heron</text>", ">class 210</text>",
                           "<td>30 heron</td>", "<td class=\"number\">210</td>"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
}

}  // namespace
}  // namespace privatemail::client
