#include "client/evaluation/report/series_style.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/evaluation/report/plot_text.h"

namespace privatemail::client {
namespace {

using Mark = FigureSeries::Mark;

constexpr int kHatches = 4;
// Numbers of patterns and of shapes are coprime to that of colours: combinations occur late again.
constexpr std::array<absl::string_view, 5> kLineDashes = {"", "10 3", "16 3 3 3", "6 2.5", "22 4"};
// Each as a rhythm of short, middle and long that a sample in the legend has room for.
constexpr std::array<absl::string_view, 12> kReferenceDashes = {
    "1.5 3.5", "7 4",      "14 3 1.5 3", "1.5 2 1.5 6",      "18 5",    "7 3 1.5 3 1.5 3",
    "4 3",     "14 3 5 3", "7 3 1.5 3",  "14 3 1.5 3 1.5 3", "7 2 7 8", "7 3 1.5 3 1.5 3 1.5 3"};

// Corners on a circle; every second one nearer to the centre when `inner` is less than 1.
struct Shape {
  int corners;
  double first_degrees;
  double inner;
  double size;  // so that all look equally large
};
constexpr std::array<Shape, 8> kShapes = {{{0, 0, 1, 1},
                                           {4, 45, 1, 1.2},
                                           {3, -90, 1, 1.35},
                                           {4, 0, 1, 1.3},
                                           {3, 90, 1, 1.35},
                                           {8, 0, 0.36, 1.5},
                                           {8, 45, 0.36, 1.5},
                                           {10, -90, 0.45, 1.4}}};
static_assert(kGroupStyles == 2 * kPlotColours * kShapes.size());

SeriesStyle NewStyle(const FigureSeries& series, int index) {
  SeriesStyle style;
  style.name = series.name;
  style.mark = series.mark;
  style.colour = absl::StrCat("c", index % kPlotColours);
  style.shape = index % static_cast<int>(kShapes.size());
  style.hollow = index / static_cast<int>(kShapes.size()) % 2 == 1;
  style.hatch = index % kHatches;
  if (series.mark == Mark::kLine) style.dash = std::string(kLineDashes[index % 5]);
  if (series.mark == Mark::kScatter) {
    // Colours and shapes are the groups'. Dots, then larger ones with a hole, then rings around.
    constexpr std::array<double, 3> kSizes = {1, 1.7, 3};
    style.shape = 0;
    style.hollow = index % 3 > 0;
    style.size = kSizes.at(static_cast<size_t>(index % 3));
  }
  if (series.mark == Mark::kReference) {
    constexpr int kRhythms = static_cast<int>(kReferenceDashes.size());
    style.dash = std::string(kReferenceDashes.at(static_cast<size_t>(index % kRhythms)));
    style.heavy = index / kRhythms % 2 == 1;
    style.colour = index % 2 == 0 ? "quiet" : "ink";  // no colour of a line's
  }
  return style;
}

bool Fits(const SeriesStyle& style, const FigureSeries& series) {
  return style.mark == series.mark && style.name == series.name;
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

const SeriesStyle& StyleOf(const std::vector<SeriesStyle>& styles, const FigureSeries& series) {
  return *std::find_if(styles.begin(), styles.end(),
                       [&](const SeriesStyle& style) { return Fits(style, series); });
}

GroupRanks RanksOf(const Figure& figure) {
  GroupRanks ranks;
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      if (series.mark != Mark::kScatter) continue;
      for (const FigurePoint& point : series.points) ranks[point.group] = 0;
    }
  }
  int rank = 0;
  for (auto& [group, its_rank] : ranks) its_rank = rank++;
  return ranks;
}

SeriesStyle GroupStyle(int rank, const SeriesStyle& scatter) {
  constexpr int kShapeCount = static_cast<int>(kShapes.size());
  const int index = rank % kGroupStyles;
  SeriesStyle style;
  style.mark = Mark::kScatter;
  style.colour = absl::StrCat("c", index % kPlotColours);
  style.shape = index / kPlotColours % kShapeCount;
  style.hollow = (index / (kPlotColours * kShapeCount) % 2 == 1) != scatter.hollow;
  style.size = scatter.size;
  return style;
}

std::string PointPath(int shape, Spot centre, double radius) {
  const Shape& form = kShapes.at(static_cast<size_t>(shape));
  radius *= form.size;
  if (form.corners == 0) {
    const std::string size = Pixels(radius);
    const std::string arc = absl::StrCat("a", size, " ", size, " 0 1 0 ");
    return absl::StrCat("M", Pixels(centre.x - radius), " ", Pixels(centre.y), arc,
                        Pixels(2 * radius), " 0", arc, Pixels(-2 * radius), " 0z");
  }
  std::string path;
  Spot former = {0, 0};
  for (int i = 0; i < form.corners; ++i) {
    const double angle = (form.first_degrees + 360.0 * i / form.corners) * M_PI / 180;
    const double reach = i % 2 == 1 ? radius * form.inner : radius;
    const Spot corner = {centre.x + reach * std::cos(angle), centre.y + reach * std::sin(angle)};
    // Differences are short, which counts where there are thousands of points.
    absl::StrAppend(&path, i == 0 ? "M" : "l", Pixels(corner.x - former.x), " ",
                    Pixels(corner.y - former.y));
    former = corner;
  }
  return path + "z";
}

std::string HatchDefinitions(absl::string_view id_prefix, const std::vector<SeriesStyle>& styles) {
  constexpr std::array<absl::string_view, kHatches> kLines = {"", "M0 8L8 0M-2 2L2 -2M6 10L10 6",
                                                              "M4 0V8", "M0 0L8 8M0 8L8 0"};
  std::string definitions;
  for (const SeriesStyle& style : styles) {
    if (style.mark != Mark::kBars || style.hatch == 0) continue;
    absl::StrAppend(&definitions, "<pattern id=\"", id_prefix, "-", style.colour, "-", style.hatch,
                    "\" class=\"", style.colour,
                    "\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">"
                    "<rect width=\"8\" height=\"8\" class=\"pale\"/><path class=\"hatch\" d=\"",
                    kLines.at(static_cast<size_t>(style.hatch)), "\"/></pattern>");
  }
  return definitions.empty() ? "" : absl::StrCat("<defs>", definitions, "</defs>\n");
}

std::string HatchFill(absl::string_view id_prefix, const SeriesStyle& style) {
  if (style.hatch == 0) return "";
  return absl::StrCat(" style=\"fill:url(#", id_prefix, "-", style.colour, "-", style.hatch, ")\"");
}

absl::string_view PlotStyleSheet() {
  return R"css(.plot{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;font-size:13px}
.plot text{fill:#3c434d}.plot .strong{fill:#14181d;font-weight:600}.plot .title{font-size:17px}
.plot .end{text-anchor:end}.plot .middle{text-anchor:middle}.plot .small{font-size:12px}
.plot .paper{fill:#fff}.plot .grid{stroke:#e6e9ed;fill:none}.plot .axis{stroke:#8a939f;fill:none}
.plot .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}
.plot .reference{fill:none;stroke:currentColor;stroke-width:1.6}.plot .heavy{stroke-width:3.2}
.plot .halo{fill:none;stroke:#fff;stroke-width:4;opacity:.75}
.plot .leader{fill:none;stroke:currentColor;opacity:.45}
.plot .band{fill:currentColor;opacity:.13}.plot .faint{opacity:.05}.plot .whisker{fill:none;stroke:#14181d;stroke-width:1.3}
.plot .point{fill:currentColor}.plot .hollow{fill:#fff;stroke:currentColor;stroke-width:1.5}
.plot .cloud{opacity:.85}.plot .cloud.hollow{fill:none;stroke-width:1.2}
.plot .bar{fill:currentColor;stroke:currentColor}.plot .pale{fill:currentColor;opacity:.22}
.plot .hatch{stroke:currentColor;stroke-width:1.6;fill:none}
.plot .c0{color:#0072b2}.plot .c1{color:#d55e00}.plot .c2{color:#009e73}.plot .c3{color:#cc79a7}
.plot .c4{color:#e69f00}.plot .c5{color:#000}.plot .c6{color:#56b4e9}.plot .quiet{color:#59616c}.plot .ink{color:#14181d}
@media screen and (prefers-color-scheme:dark){
.plot text{fill:#b9c0ca}.plot .strong{fill:#f0f2f5}.plot .paper{fill:#15181d}
.plot .grid{stroke:#2a2f37}.plot .axis{stroke:#707985}.plot .whisker{stroke:#f0f2f5}
.plot .hollow{fill:#15181d}.plot .halo{stroke:#15181d}.plot .band{opacity:.2}.plot .faint{opacity:.08}
.plot .c0{color:#3f9fdc}.plot .c5{color:#f0f2f5}.plot .quiet{color:#98a1ad}.plot .ink{color:#f0f2f5}}
)css";
}

}  // namespace privatemail::client
