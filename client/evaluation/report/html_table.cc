#include "client/evaluation/report/html_table.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/evaluation/report/plot_text.h"

namespace privatemail::client {
namespace {

constexpr int kDigits = 6;

// Which columns say something.
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

// Of a value that holds for every x.
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
  const bool level = series.mark == FigureSeries::Mark::kReference && series.points.size() == 1;
  std::string row = "<tr>";
  if (columns.panels) row += Cell(panel.title);
  row += Cell(series.name);
  row += level ? AllCell(figure.x) : XCell(figure.x, point.x);
  row += NumberCell(point.y);
  if (columns.bands) row += NumberCell(point.low) + NumberCell(point.high);
  if (columns.groups) row += GroupCell(figure, point.group);
  return row + "</tr>\n";
}

}  // namespace

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

}  // namespace privatemail::client
