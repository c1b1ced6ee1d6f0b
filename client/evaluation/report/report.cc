#include "client/evaluation/report/report.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/evaluation/report/plot.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

absl::string_view HtmlStyleSheet() {
  return R"css(:root{color-scheme:light dark;--paper:#fff;--ink:#14181d;--soft:#59616c;--rule:#e3e6ea;--wash:#f6f7f9;--link:#0b62a0}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);font:17px/1.65 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;overflow-wrap:anywhere}
.sheet{max-width:968px;margin:0 auto;padding:72px 24px 96px}
h1,h2{line-height:1.25;letter-spacing:-.012em;text-wrap:balance}
h1{font-size:36px;font-weight:650;margin:6px 0 0;max-width:24em}
h2{font-size:24px;font-weight:620;margin:4px 0 0;max-width:32em}
p{margin:14px 0 0;max-width:40em}
a{color:var(--link);text-underline-offset:.18em;text-decoration-thickness:1px}
a:focus-visible,summary:focus-visible,.table:focus-visible{outline:2px solid var(--link);outline-offset:3px}
.kicker{margin:0;font-size:14px;color:var(--soft);letter-spacing:.02em}
.about{display:grid;grid-template-columns:repeat(auto-fill,minmax(250px,1fr));gap:0 40px;margin:36px 0 0}
.about div{padding:11px 0;border-top:1px solid var(--rule)}
dt{font-size:14px;line-height:1.45;color:var(--soft)}
dd{margin:0;line-height:1.45;font-variant-numeric:tabular-nums}
nav{margin:44px 0 0}
header h2{margin:40px 0 -20px}header h2,nav h2{font-size:15px;font-weight:600;letter-spacing:0;color:var(--soft)}
nav ol{margin:8px 0 0;padding:0;list-style:none;counter-reset:figure}
nav li{display:flex;gap:14px;line-height:1.5;padding:5px 0;counter-increment:figure}
nav li::before{content:counter(figure);flex:none;min-width:1.2em;white-space:nowrap;color:var(--soft);font-variant-numeric:tabular-nums}
section{margin:64px 0 0;padding:40px 0 0;border-top:1px solid var(--rule);scroll-margin-top:0}
figure{margin:30px 0 0}
figure svg{display:block;width:100%;height:auto}
.page svg{max-width:920px}
.phone{display:none;max-width:480px;margin:0 auto}
details{margin:22px 0 0;font-size:15px}
summary{cursor:pointer;color:var(--link);width:fit-content;padding:4px 0}
.table{margin:10px 0 0;max-height:460px;overflow:auto;border:1px solid var(--rule);border-radius:6px}
table{border-collapse:separate;border-spacing:0;width:100%;font-size:14px;line-height:1.4;font-variant-numeric:tabular-nums;overflow-wrap:normal}
caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
th,td{padding:7px 16px;text-align:left;white-space:nowrap;border-top:1px solid var(--rule)}
thead th{position:sticky;top:0;background:var(--wash);font-weight:600;border-top:0;border-bottom:1px solid var(--rule)}
tbody tr:first-child td{border-top:0}
.number{text-align:right}
.files,footer{font-size:15px;color:var(--soft)}
footer{margin:72px 0 0;padding:24px 0 0;border-top:1px solid var(--rule)}
@media (max-width:839px){
body{font-size:16px}
.sheet{padding:36px 16px 64px}
h1{font-size:27px}h2{font-size:21px}
.about{margin-top:26px}
section{margin-top:48px;padding-top:30px}
.page{display:none}.phone{display:block}
th,td{padding:7px 12px}
}
@media screen and (prefers-color-scheme:dark){
:root{--paper:#15181d;--ink:#e6e9ed;--soft:#98a1ad;--rule:#2a2f37;--wash:#1c2027;--link:#7cb8ea}
}
)css";
}

constexpr int kDigits = 6;

struct Columns {
  bool panels = false;
  bool bands = false;
  bool groups = false;
};

Columns ColumnsOf(const Figure& figure) {
  Columns columns;
  columns.panels = figure.panels.size() > 1;
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      columns.groups |= series.mark == FigureSeries::Mark::kScatter;
      for (const FigurePoint& point : series.points) {
        columns.bands |= !std::isnan(point.low) || !std::isnan(point.high);
      }
    }
  }
  return columns;
}

std::string Cell(absl::string_view text) { return absl::StrCat("<td>", Escaped(text), "</td>"); }

std::string NumberCell(double value) {
  return absl::StrCat("<td class=\"number\">", NumberText(value, kDigits), "</td>");
}

std::string XCell(const FigureAxis& axis, double x) {
  if (axis.categories.empty()) return NumberCell(x);
  return Cell(axis.categories.at(static_cast<size_t>(x)));
}

std::string GroupCell(const Figure& figure, int32_t group) {
  const auto name = figure.class_names.find(group);
  if (name == figure.class_names.end()) {
    return absl::StrCat("<td class=\"number\">", group, "</td>");
  }
  return Cell(absl::StrCat(group, " ", name->second));
}

std::string AllCell(const FigureAxis& axis) {
  return axis.categories.empty() ? "<td class=\"number\">all</td>" : "<td>all</td>";
}

std::string HeadCell(absl::string_view text, bool number) {
  return absl::StrCat("<th scope=\"col\"", number ? " class=\"number\"" : "", ">", Escaped(text),
                      "</th>");
}

std::string Head(const Figure& figure, const Columns& columns) {
  const auto name = [](const FigureAxis& axis, const char* without) {
    return axis.label.empty() ? std::string(without) : axis.label;
  };
  std::string head;
  if (columns.panels) head += HeadCell("panel", false);
  head += HeadCell("series", false);
  head += HeadCell(name(figure.x, figure.x.categories.empty() ? "x" : "category"),
                   figure.x.categories.empty());
  head += HeadCell(name(figure.y, "y"), true);
  if (columns.bands) head += HeadCell("band from", true) + HeadCell("to", true);
  if (columns.groups) head += HeadCell("class", true);
  return absl::StrCat("<thead><tr>", head, "</tr></thead>\n");
}

std::string Row(const Figure& figure, const Columns& columns, const FigurePanel& panel,
                const FigureSeries& series, const FigurePoint& point) {
  std::string row = "<tr>";
  if (columns.panels) row += Cell(panel.title);
  row += Cell(series.name);
  row += IsLevel(series) ? AllCell(figure.x) : XCell(figure.x, point.x);
  row += NumberCell(point.y);
  if (columns.bands) row += NumberCell(point.low) + NumberCell(point.high);
  if (columns.groups) row += GroupCell(figure, point.group);
  return row + "</tr>\n";
}

std::string HtmlTable(const Figure& figure) {
  const Columns columns = ColumnsOf(figure);
  std::string rows;
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      for (const FigurePoint& point : series.points) {
        rows += Row(figure, columns, panel, series, point);
      }
    }
  }
  const std::string title = Escaped(figure.title);
  return absl::StrCat("<div class=\"table\" role=\"region\" tabindex=\"0\" aria-label=\"Table: ",
                      title, "\">\n<table>\n<caption>", title, "</caption>\n",
                      Head(figure, columns), "<tbody>\n", rows, "</tbody>\n</table>\n</div>\n");
}

size_t PointCount(const Figure& figure) {
  size_t count = 0;
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) count += series.points.size();
  }
  return count;
}

std::string DocumentHead(const Report& report) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; img-src data:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>",
      Escaped(report.title), "</title>\n<style>\n", HtmlStyleSheet(), PlotStyleSheet(),
      "</style>\n</head>\n");
}

std::string Facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string list;
  for (const auto& [key, value] : facts) {
    absl::StrAppend(&list, "<div><dt>", Escaped(key), "</dt><dd>", Escaped(value), "</dd></div>\n");
  }
  return list.empty() ? "" : absl::StrCat("<dl class=\"about\">\n", list, "</dl>\n");
}

std::string Header(const Report& report) {
  return absl::StrCat("<header>\n<p class=\"kicker\">PrivateMail evaluation</p>\n<h1>",
                      Escaped(report.title), "</h1>\n", Facts(report.about),
                      report.settings.empty() ? "" : "<h2 id=\"settings\">Settings</h2>\n",
                      Facts(report.settings), "</header>\n");
}

std::string Contents(const Report& report) {
  if (report.figures.size() < 2) return "";
  std::string items;
  for (const Figure& figure : report.figures) {
    absl::StrAppend(&items, "<li><a href=\"#figure-", figure.id, "\">", Escaped(figure.title),
                    "</a></li>\n");
  }
  return absl::StrCat(
      "<nav aria-labelledby=\"contents\">\n<h2 id=\"contents\">Figures</h2>\n<ol>\n", items,
      "</ol>\n</nav>\n");
}

absl::StatusOr<std::string> Section(const Figure& figure, size_t number) {
  PM_ASSIGN_OR_RETURN(const std::string page, InlineSvg(figure, kPageWidth));
  PM_ASSIGN_OR_RETURN(const std::string phone, InlineSvg(figure, kPhoneWidth));
  // The first sentence precedes the plot, the others follow it.
  std::string first;
  std::string rest;
  for (const std::string& sentence : figure.words) {
    absl::StrAppend(first.empty() ? &first : &rest, "<p>", Escaped(sentence), "</p>\n");
  }
  return absl::StrCat("<section id=\"figure-", figure.id, "\" aria-labelledby=\"heading-",
                      figure.id, "\">\n<p class=\"kicker\">Figure ", number,
                      "</p>\n<h2 id=\"heading-", figure.id, "\">", Escaped(figure.title), "</h2>\n",
                      first, "<figure>\n<div class=\"page\">\n", page,
                      "</div>\n<div class=\"phone\">\n", phone, "</div>\n</figure>\n", rest,
                      "<details>\n<summary>Table of the ", PointCount(figure),
                      " points</summary>\n", HtmlTable(figure),
                      "<p class=\"files\">Rounded to six digits; exact in "
                      "<a href=\"results.json\">results.json</a>. The plot alone: <a href=\"",
                      figure.id, ".svg\">", figure.id, ".svg</a></p>\n</details>\n</section>\n");
}

absl::StatusOr<std::string> HtmlReport(const Report& report) {
  std::string page = absl::StrCat(DocumentHead(report), "<body>\n<div class=\"sheet\">\n",
                                  Header(report), Contents(report), "<main>\n");
  for (size_t i = 0; i < report.figures.size(); ++i) {
    PM_ASSIGN_OR_RETURN(const std::string section, Section(report.figures[i], i + 1));
    page += section;
  }
  return absl::StrCat(page,
                      "</main>\n<footer>All numbers, exactly as computed: "
                      "<a href=\"results.json\">results.json</a></footer>\n"
                      "</div>\n</body>\n</html>\n");
}

absl::Status CheckIdsDiffer(const Report& report) {
  std::set<std::string> ids;
  for (const Figure& figure : report.figures) {
    if (ids.insert(figure.id).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("figure ids must differ, but two are ", figure.id));
  }
  return absl::OkStatus();
}

absl::Status MakeDirectory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot make the directory ", directory, ": ", error.message()));
}

constexpr const char* kInfinity = "Infinity";
constexpr const char* kMinusInfinity = "-Infinity";

// In the order of FigureSeries::Mark.
constexpr std::array<const char*, 4> kMarkNames = {"line", "reference", "bars", "scatter"};

const char* MarkName(FigureSeries::Mark mark) { return kMarkNames.at(static_cast<size_t>(mark)); }

using Json = nlohmann::ordered_json;

Json Number(double value) {
  if (std::isinf(value)) return value > 0 ? kInfinity : kMinusInfinity;
  return value;
}

void Set(Json* object, const char* name, double value) {
  if (!std::isnan(value)) (*object)[name] = Number(value);
}

Json ToJson(const FigureAxis& axis) {
  Json object = {{"label", axis.label}, {"logarithmic", axis.logarithmic}};
  Set(&object, "low", axis.low);
  Set(&object, "high", axis.high);
  if (!axis.categories.empty()) object["categories"] = axis.categories;
  return object;
}

Json ToJson(const FigurePoint& point) {
  Json object = Json::object();
  Set(&object, "x", point.x);
  Set(&object, "y", point.y);
  Set(&object, "low", point.low);
  Set(&object, "high", point.high);
  if (point.group != 0) object["group"] = point.group;
  return object;
}

Json ToJson(const FigureSeries& series) {
  Json points = Json::array();
  for (const FigurePoint& point : series.points) points.push_back(ToJson(point));
  Json object = {
      {"name", series.name}, {"mark", MarkName(series.mark)}, {"points", std::move(points)}};
  for (const FigurePoint& point : series.curve) object["curve"].push_back(ToJson(point));
  return object;
}

Json ToJson(const FigurePanel& panel) {
  Json series = Json::array();
  for (const FigureSeries& one : panel.series) series.push_back(ToJson(one));
  return {{"title", panel.title}, {"series", std::move(series)}};
}

Json ToJson(const std::vector<Figure>& figures) {
  Json list = Json::array();
  for (const Figure& figure : figures) {
    Json panels = Json::array();
    for (const FigurePanel& panel : figure.panels) panels.push_back(ToJson(panel));
    list.push_back({{"id", figure.id},
                    {"title", figure.title},
                    {"x", ToJson(figure.x)},
                    {"y", ToJson(figure.y)},
                    {"panels", std::move(panels)},
                    {"words", figure.words}});
    for (const auto& [group, name] : figure.class_names) {
      list.back()["class_names"].push_back(Json::array({group, name}));
    }
  }
  return list;
}

Json ToJson(const std::vector<std::pair<std::string, std::string>>& facts) {
  Json list = Json::array();
  for (const auto& [key, value] : facts) list.push_back(Json::array({key, value}));
  return list;
}

std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

absl::Status WriteReport(const std::string& directory, const Report& report) {
  constexpr mode_t kReadableByAll = 0644;
  PM_RETURN_IF_ERROR(CheckIdsDiffer(report));
  std::vector<std::pair<std::string, std::string>> files;
  for (const Figure& figure : report.figures) {
    PM_ASSIGN_OR_RETURN(std::string svg, StandAloneSvg(figure));
    files.emplace_back(figure.id + ".svg", std::move(svg));
  }
  files.emplace_back("results.json", WriteResults(report));
  PM_ASSIGN_OR_RETURN(std::string page, HtmlReport(report));
  files.emplace_back("index.html", std::move(page));
  PM_RETURN_IF_ERROR(MakeDirectory(directory));
  for (const auto& [name, content] : files) {
    const std::string path = (std::filesystem::path(directory) / name).string();
    PM_RETURN_IF_ERROR(WriteFileAtomically(path, content, kReadableByAll));
  }
  return absl::OkStatus();
}

std::string WriteResults(const Report& report) {
  return Text({{"format", kResultsFormat},
               {"title", report.title},
               {"about", ToJson(report.about)},
               {"settings", ToJson(report.settings)},
               {"figures", ToJson(report.figures)}});
}

}  // namespace privatemail::client
