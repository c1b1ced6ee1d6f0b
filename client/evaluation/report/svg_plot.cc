#include "client/evaluation/report/svg_plot.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/evaluation/report/check_figure.h"
#include "client/evaluation/report/plot_axes.h"
#include "client/evaluation/report/plot_layout.h"
#include "client/evaluation/report/plot_legend.h"
#include "client/evaluation/report/plot_marks.h"
#include "client/evaluation/report/plot_text.h"
#include "client/evaluation/report/series_style.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

// Room at the edges of a file of its own, which nothing else surrounds.
constexpr double kMargin = 20;

std::string Opening(const Figure& figure, const std::string& id_prefix, double left, double top,
                    double width, double height) {
  return absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"",
                      Pixels(left), " ", Pixels(top), " ", Pixels(width), " ", Pixels(height),
                      "\" width=\"", Pixels(width), "\" height=\"", Pixels(height),
                      "\" role=\"img\" aria-labelledby=\"", id_prefix, "-title ", id_prefix,
                      "-desc\">\n<title id=\"", id_prefix, "-title\">", Escaped(figure.title),
                      "</title>\n<desc id=\"", id_prefix, "-desc\">",
                      Escaped(absl::StrJoin(figure.words, " ")), "</desc>\n");
}

// Points at the edge of a plot are drawn whole.
std::string ClipPath(const std::string& id, const Box& box) {
  constexpr double kPoint = 7;
  return absl::StrCat("<clipPath id=\"", id, "\"><rect x=\"", Pixels(box.left - kPoint), "\" y=\"",
                      Pixels(box.top - kPoint), "\" width=\"", Pixels(box.width + 2 * kPoint),
                      "\" height=\"", Pixels(box.height + 2 * kPoint), "\"/></clipPath>\n");
}

bool HasValues(const FigurePanel& panel) {
  for (const FigureSeries& series : panel.series) {
    for (const FigurePoint& point : series.points) {
      if (std::isfinite(point.y)) return true;
    }
  }
  return false;
}

std::string DrawPanel(const FigurePanel& panel, const PanelPlace& place,
                      const std::vector<SeriesStyle>& styles, const GroupRanks& ranks,
                      const std::string& id_prefix, size_t index) {
  const Box& box = place.frame.box;
  std::string drawn = ClipPath(absl::StrCat(id_prefix, "-clip", index), box);
  absl::StrAppend(&drawn, DrawGrid(place),
                  DrawMarks(panel, place.frame, styles, ranks, id_prefix, index), DrawAxes(place));
  if (!HasValues(panel)) {
    absl::StrAppend(&drawn, "<text class=\"middle\" x=\"", Pixels(box.left + box.width / 2),
                    "\" y=\"", Pixels(box.top + box.height / 2), "\">no values</text>\n");
  }
  return drawn;
}

std::string DrawTitle(const PlotLayout& layout) {
  std::string drawn;
  double y = kTitleFontSize;
  for (const std::string& line : layout.title) {
    absl::StrAppend(&drawn, "<text class=\"strong title\" x=\"0\" y=\"", Pixels(y), "\">",
                    Escaped(line), "</text>\n");
    y += kTitleLine;
  }
  return drawn;
}

std::string DrawContent(const Figure& figure, const PlotLayout& layout,
                        const std::vector<SeriesStyle>& styles, const std::string& id_prefix) {
  std::string drawn = HatchDefinitions(id_prefix, styles) + DrawTitle(layout);
  const GroupRanks ranks = RanksOf(figure);
  for (size_t i = 0; i < figure.panels.size(); ++i) {
    drawn += DrawPanel(figure.panels[i], layout.panels[i], styles, ranks, id_prefix, i);
  }
  if (layout.legend_beside) {
    drawn += DrawLeaders(figure.panels[0], layout.panels[0].frame, layout.legend);
  }
  return drawn + DrawLegend(id_prefix, layout.legend);
}

}  // namespace

absl::StatusOr<std::string> StandAloneSvg(const Figure& figure) {
  PM_RETURN_IF_ERROR(CheckFigure(figure));
  const std::vector<SeriesStyle> styles = StylesOf(figure);
  const PlotLayout layout = LayOut(figure, styles, kPageWidth, /*with_title=*/true);
  const double width = layout.width + 2 * kMargin;
  const double height = layout.height + 2 * kMargin;
  return absl::StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
                      Opening(figure, figure.id, -kMargin, -kMargin, width, height), "<style>",
                      PlotStyleSheet(), "</style>\n<rect class=\"paper\" x=\"", Pixels(-kMargin),
                      "\" y=\"", Pixels(-kMargin), "\" width=\"", Pixels(width), "\" height=\"",
                      Pixels(height), "\"/>\n", DrawContent(figure, layout, styles, figure.id),
                      "</svg>\n");
}

absl::StatusOr<std::string> InlineSvg(const Figure& figure, double width) {
  PM_RETURN_IF_ERROR(CheckFigure(figure));
  const std::vector<SeriesStyle> styles = StylesOf(figure);
  const PlotLayout layout = LayOut(figure, styles, width, /*with_title=*/false);
  const std::string id_prefix = absl::StrCat("plot-", figure.id, "-", Pixels(width));
  return absl::StrCat(Opening(figure, id_prefix, 0, 0, layout.width, layout.height),
                      DrawContent(figure, layout, styles, id_prefix), "</svg>\n");
}

}  // namespace privatemail::client
