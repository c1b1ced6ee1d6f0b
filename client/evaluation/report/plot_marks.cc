#include "client/evaluation/report/plot_marks.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "client/evaluation/report/plot_bars.h"
#include "client/evaluation/report/plot_points.h"
#include "client/evaluation/report/plot_text.h"

namespace privatemail::client {
namespace {

using Mark = FigureSeries::Mark;

constexpr std::ptrdiff_t kFewBands = 4;

std::string At(Spot spot) { return absl::StrCat(Pixels(spot.x), " ", Pixels(spot.y)); }

// A band's lower end may be 0 where the axis is logarithmic.
Spot LowEnd(const PlotFrame& frame, const FigurePoint& point) {
  return frame.At(point.x, std::max(point.low, frame.scales.y.low));
}

bool HasBand(const FigurePoint& point) {
  return IsDrawn(point) && std::isfinite(point.low) && std::isfinite(point.high);
}

std::string Path(absl::string_view style_class, absl::string_view colour, absl::string_view d,
                 absl::string_view more = "") {
  if (d.empty()) return "";
  return absl::StrCat("<path class=\"", style_class, " ", colour, "\"", more, " d=\"", d, "\"/>\n");
}

// One area for each stretch of points that have a band. Where there are many, each is fainter: all
// together would hide what lies under them.
std::string DrawBand(const FigureSeries& series, const PlotFrame& frame, const SeriesStyle& style,
                     bool faint) {
  const std::vector<FigurePoint> points = InOrder(series.points);
  std::string areas;
  std::string whiskers;
  for (size_t first = 0; first < points.size();) {
    size_t end = first;
    while (end < points.size() && HasBand(points[end])) ++end;
    if (end == first + 1) absl::StrAppend(&whiskers, WhiskerPath(frame, points[first]));
    if (end > first + 1) {
      for (size_t i = first; i < end; ++i) {
        absl::StrAppend(&areas, i == first ? "M" : "L", At(frame.At(points[i].x, points[i].high)));
      }
      for (size_t i = end; i > first; --i) {
        absl::StrAppend(&areas, "L", At(LowEnd(frame, points[i - 1])));
      }
      areas += "z";
    }
    first = end + 1;
  }
  return Path(faint ? "band faint" : "band", style.colour, areas) +
         Path("whisker", style.colour, whiskers);
}

std::string LinePath(const std::vector<FigurePoint>& points, const PlotFrame& frame) {
  std::string path;
  bool gap = true;
  for (const FigurePoint& point : points) {
    if (IsDrawn(point)) absl::StrAppend(&path, gap ? "M" : "L", At(frame.At(point.x, point.y)));
    gap = !IsDrawn(point);
  }
  return path;
}

std::string Dashes(const SeriesStyle& style) {
  return style.dash.empty() ? "" : absl::StrCat(" stroke-dasharray=\"", style.dash, "\"");
}

std::string DrawLine(const FigureSeries& series, const PlotFrame& frame, const SeriesStyle& style,
                     const std::vector<Spot>& places) {
  std::string points;
  for (const Spot& place : places) absl::StrAppend(&points, PointPath(style.shape, place, 3.6));
  return Path("line", style.colour, LinePath(InOrder(series.points), frame), Dashes(style)) +
         Path(style.hollow ? "hollow" : "point", style.colour, points);
}

// A single point is a level: it holds for every x. Over categories a line reaches the edges.
std::string DrawReference(const FigureSeries& series, const PlotFrame& frame,
                          const SeriesStyle& style) {
  const AxisRange& x = frame.scales.x;
  std::vector<FigurePoint> points = InOrder(series.curve.empty() ? series.points : series.curve);
  if (series.points.size() == 1 && std::isfinite(series.points[0].y)) {
    points = {series.points[0], series.points[0]};
    points[0].x = x.low;
    points[1].x = x.high;
  } else if (frame.scales.categories && !points.empty()) {
    points.insert(points.begin(), points.front());
    points.push_back(points.back());
    points.front().x -= 0.5;
    points.back().x += 0.5;
  }
  const std::string path = LinePath(points, frame);
  return Path("halo", style.colour, path) +
         Path(style.heavy ? "reference heavy" : "reference", style.colour, path, Dashes(style));
}

std::string DrawCloud(const FigureSeries& series, const PlotFrame& frame, const SeriesStyle& style,
                      const GroupRanks& ranks) {
  constexpr size_t kMany = 300;
  const double radius = series.points.size() > kMany ? 2.6 : 3.4;
  std::map<int, std::string> paths;  // by rank
  for (const FigurePoint& point : series.points) {
    if (!IsDrawn(point)) continue;
    const int rank = ranks.at(point.group);
    const SeriesStyle group = GroupStyle(rank, style);
    absl::StrAppend(&paths[rank],
                    PointPath(group.shape, frame.At(point.x, point.y), radius * group.size));
  }
  std::string drawn;
  for (const auto& [rank, path] : paths) {
    const SeriesStyle group = GroupStyle(rank, style);
    drawn += Path(group.hollow ? "cloud hollow" : "cloud point", group.colour, path);
  }
  return drawn;
}

}  // namespace

std::string DrawMarks(const FigurePanel& panel, const PlotFrame& frame,
                      const std::vector<SeriesStyle>& styles, const GroupRanks& ranks,
                      absl::string_view id_prefix, size_t panel_index) {
  const auto draw_all = [&](Mark mark, const auto& draw) {
    std::string drawn;
    for (const FigureSeries& series : panel.series) {
      if (series.mark == mark) drawn += draw(series, frame, StyleOf(styles, series));
    }
    return drawn;
  };
  const auto lines =
      std::count_if(panel.series.begin(), panel.series.end(),
                    [](const FigureSeries& series) { return series.mark == Mark::kLine; });
  const auto draw_band = [&](const auto& series, const auto& place, const auto& style) {
    return DrawBand(series, place, style, lines > kFewBands);
  };
  const auto draw_cloud = [&](const auto& series, const auto& place, const auto& style) {
    return DrawCloud(series, place, style, ranks);
  };
  const std::vector<std::vector<Spot>> places = PlacePoints(panel, frame);
  size_t line = 0;
  const auto draw_line = [&](const auto& series, const auto& place, const auto& style) {
    return DrawLine(series, place, style, places[line++]);
  };
  return absl::StrCat(DrawBars(panel, frame, styles, id_prefix), "<g clip-path=\"url(#", id_prefix,
                      "-clip", panel_index, ")\">\n", draw_all(Mark::kLine, draw_band),
                      draw_all(Mark::kReference, DrawReference),
                      draw_all(Mark::kScatter, draw_cloud), draw_all(Mark::kLine, draw_line),
                      "</g>\n");
}

}  // namespace privatemail::client
