#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/evaluation/report/plot.h"

namespace privatemail::client {
namespace {

using Mark = FigureSeries::Mark;

constexpr double kPointRadius = 3.6;

// Numbers of dashes and of shapes are coprime to those of colours: combinations occur late again.
constexpr std::array<absl::string_view, 5> kLineDashes = {"", "10 3", "16 3 3 3", "6 2.5", "22 4"};
constexpr std::array<absl::string_view, 5> kReferenceDashes = {"2 4", "7 4", "14 3 2 3", "18 5",
                                                               "7 3 2 3 2 3"};

struct Shape {
  int corners;  // on a circle
  double first_degrees;
  double size;  // so that all look equally large
};
constexpr std::array<Shape, 5> kShapes = {
    {{10, 0, 1}, {4, 45, 1.2}, {3, -90, 1.35}, {4, 0, 1.3}, {3, 90, 1.35}}};

// Colours are Okabe and Ito's (Color Universal Design, 2008) without yellow, which paper swallows.
SeriesStyle NthStyle(int index) {
  constexpr int kColours = 7;
  constexpr int kShapeCount = static_cast<int>(kShapes.size());
  SeriesStyle style;
  style.colour = absl::StrCat("c", index % kColours);
  style.shape = index % kShapeCount;
  style.hollow = index / (kColours * kShapeCount) % 2 == 1;
  return style;
}

SeriesStyle NewStyle(const FigureSeries& series, int index) {
  SeriesStyle style = NthStyle(index);
  style.name = series.name;
  style.mark = series.mark;
  if (series.mark == Mark::kLine) style.dash = std::string(kLineDashes[index % 5]);
  if (series.mark == Mark::kScatter) {
    // Colours and shapes are the groups'. Dots, then larger rings, then rings around these.
    constexpr std::array<double, 3> kSizes = {1, 1.7, 3};
    style.colour = "quiet";
    style.shape = 0;
    style.hollow = index % 3 > 0;
    style.size = kSizes[index % 3];
  }
  if (series.mark == Mark::kReference) {
    style.dash = std::string(kReferenceDashes[index % 5]);
    style.colour = index % 2 == 0 ? "quiet" : "ink";  // no colour of a line's
  }
  return style;
}

bool Fits(const SeriesStyle& style, const FigureSeries& series) {
  return style.mark == series.mark && style.name == series.name;
}

const SeriesStyle& StyleOf(const std::vector<SeriesStyle>& styles, const FigureSeries& series) {
  return *std::find_if(styles.begin(), styles.end(),
                       [&](const SeriesStyle& style) { return Fits(style, series); });
}

bool IsDrawn(const FigurePoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

std::vector<FigurePoint> InOrder(std::vector<FigurePoint> points) {
  // NaN has no place in an order.
  std::erase_if(points, [](const FigurePoint& point) { return !std::isfinite(point.x); });
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& left, const auto& right) { return left.x < right.x; });
  return points;
}

// Commands of an SVG path that draw a point.
std::string PointPath(const SeriesStyle& style, Spot centre) {
  const Shape& shape = kShapes.at(static_cast<size_t>(style.shape));
  const double radius = kPointRadius * style.size * shape.size;
  std::string path;
  for (int i = 0; i < shape.corners; ++i) {
    const double angle = (shape.first_degrees + 360.0 * i / shape.corners) * M_PI / 180;
    absl::StrAppend(
        &path, i == 0 ? "M" : "L",
        Pixels(Spot{centre.x + radius * std::cos(angle), centre.y + radius * std::sin(angle)}));
  }
  return path + "z";
}

std::string Path(absl::string_view kind, absl::string_view colour, absl::string_view d) {
  if (d.empty()) return "";
  return absl::StrCat("<path class=\"", kind, " ", colour, "\" d=\"", d, "\"/>\n");
}

std::string StyledLine(const SeriesStyle& style, absl::string_view d) {
  const std::string dashed =
      style.dash.empty() ? "" : absl::StrCat("\" stroke-dasharray=\"", style.dash);
  return Path("line", style.colour + dashed, d);
}

std::string Points(const SeriesStyle& style, absl::string_view d) {
  return Path(style.hollow ? "hollow" : "point", style.colour, d);
}

std::string LinePath(const std::vector<FigurePoint>& points, const PlotFrame& frame) {
  std::string path;
  bool gap = true;
  for (const FigurePoint& point : points) {
    if (IsDrawn(point)) absl::StrAppend(&path, gap ? "M" : "L", Pixels(frame.At(point.x, point.y)));
    gap = !IsDrawn(point);
  }
  return path;
}

// The band of a point as an error bar, or nothing where it has none.
std::string WhiskerPath(const PlotFrame& frame, const FigurePoint& point) {
  constexpr double kCap = 3.5;
  if (!IsDrawn(point) || !std::isfinite(point.low) || !std::isfinite(point.high)) return "";
  const bool lying = frame.scales.categories;
  const Spot low = frame.At(point.x, point.low);
  const Spot high = frame.At(point.x, point.high);
  std::string path = absl::StrCat("M", Pixels(low), "L", Pixels(high));
  for (const Spot& end : {low, high}) {
    const Spot cap = {end.x - (lying ? 0 : kCap), end.y - (lying ? kCap : 0)};
    absl::StrAppend(&path, "M", Pixels(cap), lying ? "v" : "h", Pixels(2 * kCap));
  }
  return path;
}

// place: of the series among `count` with bars.
std::string DrawBars(const FigureSeries& series, const PlotFrame& frame, const SeriesStyle& style,
                     double place, double count) {
  constexpr double kUsed = 0.72;  // of a category
  constexpr double kTextGap = 7;
  const double from = frame.Across(0);
  std::string drawn;
  for (FigurePoint point : series.points) {
    if (!std::isfinite(point.y)) continue;
    point.x += kUsed * ((place + .5) / count - .5);  // the middle of the bar
    const double to = frame.Across(point.y);
    const double top = frame.Upward(point.x - .47 * kUsed / count);
    const double bottom = frame.Upward(point.x + .47 * kUsed / count);
    double text_left = std::max(from, to) + kTextGap;
    if (std::isfinite(point.high))
      text_left = std::max(text_left, frame.Across(point.high) + kTextGap);
    absl::StrAppend(&drawn, "<rect class=\"point ", style.colour, "\" x=\"",
                    Pixels(std::min(from, to)), "\" y=\"", Pixels(top), "\" width=\"",
                    Pixels(std::abs(to - from)), "\" height=\"", Pixels(bottom - top), "\"/>",
                    Path("whisker", "ink", WhiskerPath(frame, point)),
                    "<text class=\"strong\" x=\"", Pixels(text_left), "\" y=\"",
                    Pixels((top + bottom) / 2 + 4), "\">", NumberText(point.y, 3), "</text>\n");
  }
  return drawn;
}

std::string DrawLine(const FigureSeries& series, const PlotFrame& frame, const SeriesStyle& style) {
  const std::vector<FigurePoint> points = InOrder(series.points);
  std::string whiskers;
  std::string shapes;
  for (const FigurePoint& point : points) {
    whiskers += WhiskerPath(frame, point);
    if (IsDrawn(point)) shapes += PointPath(style, frame.At(point.x, point.y));
  }
  return absl::StrCat(Path("whisker", style.colour, whiskers),
                      StyledLine(style, LinePath(points, frame)), Points(style, shapes));
}

// Over categories a line reaches the edges.
std::string DrawReference(const FigureSeries& series, const PlotFrame& frame,
                          const SeriesStyle& style) {
  std::vector<FigurePoint> points = InOrder(series.curve.empty() ? series.points : series.curve);
  if (IsLevel(series)) {
    const double level = series.points[0].y;
    if (!std::isfinite(level)) return "";
    return StyledLine(style, frame.scales.categories
                                 ? absl::StrCat("M", Pixels(Spot{frame.Across(level), frame.top}),
                                                "V", Pixels(frame.bottom()))
                                 : absl::StrCat("M", Pixels(Spot{frame.left, frame.Upward(level)}),
                                                "H", Pixels(frame.right())));
  }
  if (frame.scales.categories && !points.empty()) {
    points.insert(points.begin(), points.front());
    points.push_back(points.back());
    points.front().x -= 0.5;
    points.back().x += 0.5;
  }
  return StyledLine(style, LinePath(points, frame));
}

std::string DrawCloud(const FigureSeries& series, const PlotFrame& frame, const SeriesStyle& style,
                      const std::map<int32_t, SeriesStyle>& groups) {
  std::map<int32_t, std::string> paths;
  for (const FigurePoint& point : series.points) {
    if (!IsDrawn(point)) continue;
    SeriesStyle of_point = groups.at(point.group);
    of_point.size = style.size;
    paths[point.group] += PointPath(of_point, frame.At(point.x, point.y));
  }
  std::string drawn;
  for (const auto& [group, path] : paths) {
    SeriesStyle of_group = groups.at(group);
    of_group.hollow = of_group.hollow != style.hollow;
    drawn += Points(of_group, path);
  }
  return drawn;
}

}  // namespace

std::vector<SeriesStyle> StylesOf(const Figure& figure) {
  std::vector<SeriesStyle> styles;
  std::array<int, 4> seen = {};  // of each mark
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      const bool known = std::any_of(styles.begin(), styles.end(),
                                     [&](const SeriesStyle& style) { return Fits(style, series); });
      if (!known) styles.push_back(NewStyle(series, seen.at(static_cast<size_t>(series.mark))++));
    }
  }
  return styles;
}

std::map<int32_t, SeriesStyle> GroupStylesOf(const Figure& figure) {
  std::map<int32_t, SeriesStyle> styles;
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      if (series.mark != Mark::kScatter) continue;
      for (const FigurePoint& point : series.points) styles[point.group] = {};
    }
  }
  int rank = 0;
  for (auto& [group, style] : styles) {
    const auto name = figure.class_names.find(group);
    style = NthStyle(rank++);
    style.name = name == figure.class_names.end() ? absl::StrCat("class ", group) : name->second;
    style.mark = Mark::kScatter;
  }
  return styles;
}

std::string DrawSample(const SeriesStyle& style, Spot left) {
  const std::string line = absl::StrCat("M", Pixels(left), "h", kSampleWidth);
  const std::string point = PointPath(style, {left.x + kSampleWidth / 2, left.y});
  switch (style.mark) {
    case Mark::kLine:
      return StyledLine(style, line) + Points(style, point);
    case Mark::kReference:
      return StyledLine(style, line);
    case Mark::kBars:
      return Path("point", style.colour,
                  absl::StrCat(line, "v6h-", kSampleWidth, "v-12h", kSampleWidth, "z"));
    case Mark::kScatter:
      return Points(style, point);
  }
  return "";
}

std::string DrawMarks(const FigurePanel& panel, const PlotFrame& frame,
                      const std::vector<SeriesStyle>& styles,
                      const std::map<int32_t, SeriesStyle>& groups) {
  const auto bars = std::count_if(panel.series.begin(), panel.series.end(),
                                  [](const auto& series) { return series.mark == Mark::kBars; });
  int bar = 0;
  std::string drawn;
  for (const Mark mark : {Mark::kBars, Mark::kReference, Mark::kScatter, Mark::kLine}) {
    for (const FigureSeries& series : panel.series) {
      if (series.mark != mark) continue;
      const SeriesStyle& style = StyleOf(styles, series);
      if (mark == Mark::kBars) {
        drawn += DrawBars(series, frame, style, bar++, static_cast<double>(bars));
      }
      if (mark == Mark::kReference) drawn += DrawReference(series, frame, style);
      if (mark == Mark::kScatter) drawn += DrawCloud(series, frame, style, groups);
      if (mark == Mark::kLine) drawn += DrawLine(series, frame, style);
    }
  }
  return drawn;
}

absl::string_view PlotStyleSheet() {
  return R"css(.plot{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;font-size:13px}
.plot text{fill:#3c434d}.plot .strong{fill:#14181d;font-weight:600}
.plot .end{text-anchor:end}.plot .middle{text-anchor:middle}
.plot .paper{fill:#fff}.plot .grid{stroke:#e6e9ed;fill:none}.plot .axis{stroke:#8a939f;fill:none}
.plot .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}
.plot .whisker{fill:none;stroke:currentColor;stroke-width:1.3;opacity:.6}
.plot .point{fill:currentColor}.plot .hollow{fill:none;stroke:currentColor;stroke-width:1.5}
.plot .c0{color:#0072b2}.plot .c1{color:#d55e00}.plot .c2{color:#009e73}.plot .c3{color:#cc79a7}
.plot .c4{color:#e69f00}.plot .c5{color:#000}.plot .c6{color:#56b4e9}.plot .quiet{color:#59616c}.plot .ink{color:#14181d}
@media screen and (prefers-color-scheme:dark){
.plot text{fill:#b9c0ca}.plot .strong{fill:#f0f2f5}.plot .paper{fill:#15181d}
.plot .grid{stroke:#2a2f37}.plot .axis{stroke:#707985}
.plot .c0{color:#3f9fdc}.plot .c5{color:#f0f2f5}.plot .quiet{color:#98a1ad}.plot .ink{color:#f0f2f5}}
)css";
}

}  // namespace privatemail::client
