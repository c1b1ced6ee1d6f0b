#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/evaluation/report/plot.h"

namespace privatemail::client {
namespace {

using Mark = FigureSeries::Mark;

constexpr size_t kMostPoints = 24;  // on one line, beside its last: more would hide it
constexpr double kTouching = 8;     // pixels between the middles of two points
constexpr double kStep = 9;         // from one point to the next beside it

struct Vertex {
  size_t line = 0;
  Spot spot;
  Spot before;  // itself where the line begins or has a gap
  Spot after;
};

Spot OnLine(const Vertex& vertex, double shift) {
  const Spot& end = shift < 0 ? vertex.before : vertex.after;
  const double run = end.x - vertex.spot.x;
  const double rise = run == 0 ? 0 : (end.y - vertex.spot.y) / run;
  return {vertex.spot.x + shift, vertex.spot.y + rise * shift};
}

bool IsDrawn(const FigurePoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

std::vector<FigurePoint> InOrder(std::vector<FigurePoint> points) {
  // NaN has no place in an order.
  const auto finite = std::stable_partition(
      points.begin(), points.end(), [](const auto& point) { return std::isfinite(point.x); });
  points.erase(finite, points.end());
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& left, const auto& right) { return left.x < right.x; });
  return points;
}

std::vector<Vertex> VerticesOf(const FigureSeries& series, size_t line, const PlotFrame& frame) {
  const std::vector<FigurePoint> points = InOrder(series.points);
  const size_t stride = (points.size() + kMostPoints - 1) / kMostPoints;
  std::vector<Vertex> vertices;
  const auto spot_or = [&](size_t i, Spot instead) {
    return i < points.size() && IsDrawn(points[i]) ? frame.At(points[i].x, points[i].y) : instead;
  };
  for (size_t i = 0; i < points.size(); ++i) {
    const bool shown = i % stride == 0 || i + 1 == points.size();
    if (!shown || !IsDrawn(points[i])) continue;
    const Spot spot = frame.At(points[i].x, points[i].y);
    vertices.push_back({.line = line,
                        .spot = spot,
                        .before = spot_or(i - 1, spot),  // beyond the end where i is 0
                        .after = spot_or(i + 1, spot)});
  }
  return vertices;
}

class Column {
 public:
  void Add(const Vertex& vertex) { vertices_.push_back(vertex); }

  // room: to the next column. begins, ends: nothing lies on that side.
  void Place(double room, bool begins, bool ends, std::vector<std::vector<Spot>>* places) {
    std::stable_sort(
        vertices_.begin(), vertices_.end(),
        [](const Vertex& one, const Vertex& other) { return one.spot.y < other.spot.y; });
    for (size_t first = 0, end = 0; first < vertices_.size(); first = end) {
      end = first + 1;
      while (end < vertices_.size() &&
             vertices_[end].spot.y - vertices_[end - 1].spot.y < kTouching) {
        ++end;
      }
      std::sort(vertices_.begin() + static_cast<std::ptrdiff_t>(first),
                vertices_.begin() + static_cast<std::ptrdiff_t>(end),
                [](const Vertex& one, const Vertex& other) { return one.line < other.line; });
      const auto count = static_cast<double>(end - first);
      const double step = std::min(kStep, .9 * room / count);
      const double left = begins ? 0 : ends ? 1 - count : (1 - count) / 2;
      for (size_t i = first; i < end; ++i) {
        const double shift = step * (left + static_cast<double>(i - first));
        (*places)[vertices_[i].line].push_back(OnLine(vertices_[i], shift));
      }
    }
  }

 private:
  std::vector<Vertex> vertices_;
};

std::vector<std::vector<Spot>> PlacePoints(const FigurePanel& panel, const PlotFrame& frame) {
  std::map<double, Column> columns;  // by x on paper
  size_t lines = 0;
  for (const FigureSeries& series : panel.series) {
    if (series.mark != Mark::kLine) continue;
    for (const Vertex& vertex : VerticesOf(series, lines, frame))
      columns[vertex.spot.x].Add(vertex);
    ++lines;
  }
  std::vector<std::vector<Spot>> places(lines);
  for (auto column = columns.begin(); column != columns.end(); ++column) {
    const auto next = std::next(column);
    const bool begins = column == columns.begin();
    const bool ends = next == columns.end();
    double room = frame.box.width;
    if (!begins) room = std::min(room, column->first - std::prev(column)->first);
    if (!ends) room = std::min(room, next->first - column->first);
    column->second.Place(room, begins && !ends, ends && !begins, &places);
  }
  return places;
}

struct Strip {
  double first = 0;
  double last = 0;
  double middle() const { return (first + last) / 2; }
};

Strip StripOf(size_t series, size_t count) {
  constexpr double kUsed = 0.72;  // of a category
  const double width = kUsed / static_cast<double>(count);
  const double first = -kUsed / 2 + width * static_cast<double>(series);
  constexpr double kBetween = 0.03;
  return {first + kBetween / 2, first + width - kBetween / 2};
}

// Three digits of the longest bar, and as many behind the point for all, as in a column.
std::string ValueText(double value, const AxisRange& range) {
  constexpr int kMostDecimals = 6;
  constexpr int kMostZeros = 3;
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  const int decimals = 2 - static_cast<int>(std::floor(std::log10(largest)));
  if (decimals < -kMostZeros || decimals > kMostDecimals) return NumberText(value, 3);
  return FixedText(value, std::max(0, decimals));
}

std::string WhiskerPath(const PlotFrame& frame, const FigurePoint& point) {
  constexpr double kCap = 3.5;
  const AxisRange& y = frame.scales.y;
  const bool lying = frame.scales.categories;
  std::string path;
  Spot ends[2] = {frame.At(point.x, std::clamp(point.low, y.low, y.high)),
                  frame.At(point.x, std::clamp(point.high, y.low, y.high))};
  for (const Spot& end : ends) {
    absl::StrAppend(&path, "M", Pixels(end.x - (lying ? 0 : kCap)), " ",
                    Pixels(end.y - (lying ? kCap : 0)), lying ? "v" : "h", Pixels(2 * kCap));
  }
  return absl::StrCat(path, "M", Pixels(ends[0].x), " ", Pixels(ends[0].y), "L", Pixels(ends[1].x),
                      " ", Pixels(ends[1].y));
}

std::string DrawBar(const FigurePoint& point, const Strip& strip, const PlotFrame& frame,
                    const SeriesStyle& style, absl::string_view id_prefix) {
  constexpr double kTextGap = 7;
  const AxisRange& y = frame.scales.y;
  const double from = frame.Across(std::clamp(0.0, y.low, y.high));
  const double to = frame.Across(std::clamp(point.y, y.low, y.high));
  const double top = frame.Upward(point.x + strip.first);
  const double bottom = frame.Upward(point.x + strip.last);
  std::string drawn =
      absl::StrCat("<rect class=\"bar ", style.colour, "\"", HatchFill(id_prefix, style), " x=\"",
                   Pixels(std::min(from, to)), "\" y=\"", Pixels(top), "\" width=\"",
                   Pixels(std::abs(to - from)), "\" height=\"", Pixels(bottom - top), "\"/>");
  double text_left = std::max(from, to) + kTextGap;
  if (std::isfinite(point.low) && std::isfinite(point.high)) {
    FigurePoint shifted = point;
    shifted.x += strip.middle();
    absl::StrAppend(&drawn, "<path class=\"whisker\" d=\"", WhiskerPath(frame, shifted), "\"/>");
    text_left = std::max(text_left, frame.Across(std::min(point.high, y.high)) + kTextGap);
  }
  absl::StrAppend(&drawn, "<text class=\"small strong\" x=\"", Pixels(text_left), "\" y=\"",
                  Pixels((top + bottom) / 2 + 4), "\">", ValueText(point.y, y), "</text>\n");
  return drawn;
}

std::string DrawBars(const FigurePanel& panel, const PlotFrame& frame,
                     const std::vector<SeriesStyle>& styles, absl::string_view id_prefix) {
  std::vector<const FigureSeries*> bars;
  for (const FigureSeries& series : panel.series) {
    if (series.mark == FigureSeries::Mark::kBars) bars.push_back(&series);
  }
  std::string drawn;
  for (size_t i = 0; i < bars.size(); ++i) {
    const SeriesStyle& style = StyleOf(styles, *bars[i]);
    for (const FigurePoint& point : bars[i]->points) {
      if (!std::isfinite(point.y)) continue;
      drawn += DrawBar(point, StripOf(i, bars.size()), frame, style, id_prefix);
    }
  }
  return drawn;
}

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
