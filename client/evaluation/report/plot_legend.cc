#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/evaluation/report/plot.h"

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

constexpr size_t kNamedGroups = 12;  // more would be a page of names
constexpr double kEntryGap = 22;
constexpr double kSampleWidth = 34;

const FigureSeries* SeriesOf(const FigurePanel& panel, const SeriesStyle& style) {
  const auto found =
      std::find_if(panel.series.begin(), panel.series.end(), [&](const FigureSeries& series) {
        return series.mark == style.mark && series.name == style.name;
      });
  return found == panel.series.end() ? nullptr : &*found;
}

std::optional<FigurePoint> LastPoint(const FigurePanel& panel, const SeriesStyle& style) {
  std::optional<FigurePoint> last;
  const FigureSeries* series = SeriesOf(panel, style);
  if (series == nullptr) return last;
  const bool level = style.mark == Mark::kReference && series->points.size() == 1;
  for (const FigurePoint& point : series->points) {
    if (!std::isfinite(point.y) || (!level && !std::isfinite(point.x))) continue;
    if (!last || point.x >= last->x) last = point;
  }
  return last;
}

double LastHeight(const FigurePanel& panel, const SeriesStyle& style) {
  const std::optional<FigurePoint> last = LastPoint(panel, style);
  return last ? last->y : -std::numeric_limits<double>::infinity();
}

std::string NameOfGroup(const Figure& figure, int32_t group) {
  const auto name = figure.class_names.find(group);
  return name == figure.class_names.end() ? absl::StrCat("class ", group) : name->second;
}

void AppendGroups(const Figure& figure, double width, std::vector<LegendEntry>* entries) {
  const GroupRanks ranks = RanksOf(figure);
  if (ranks.size() < 2) return;
  if (ranks.size() > kNamedGroups) {
    const std::string text =
        absl::StrCat(ranks.size(), " classes, told apart by colour and shape",
                     ranks.size() > static_cast<size_t>(kGroupStyles) ? " (some share both)" : "");
    entries->push_back({{}, false, Wrapped(text, kLegendFontSize, width), {}});
    return;
  }
  for (const auto& [group, rank] : ranks) {
    entries->push_back({GroupStyle(rank, {}),
                        true,
                        Wrapped(NameOfGroup(figure, group), kLegendFontSize, width - kLegendSample),
                        {}});
  }
}

double HeightOf(const LegendEntry& entry) {
  return kLegendLine * static_cast<double>(entry.lines.size()) + 3;
}

double WidthOf(const LegendEntry& entry) {
  double width = 0;
  for (const std::string& line : entry.lines) {
    width = std::max(width, TextWidth(line, kLegendFontSize));
  }
  return width + (entry.sample ? kLegendSample : 0);
}

struct Stack {
  double top;
  double height;
  size_t entries;
};

// Moves the last stack between the limits, and as long as it overlaps the one above it makes one of
// both, about the middle between where they wanted to be.
void Merge(double highest, double lowest, std::vector<Stack>* stacks) {
  while (true) {
    Stack& last = stacks->back();
    last.top = std::max(std::min(last.top, lowest - last.height), highest);
    if (stacks->size() == 1) return;
    Stack& above = (*stacks)[stacks->size() - 2];
    if (above.top + above.height <= last.top) return;
    const auto weight = static_cast<double>(above.entries);
    const double wanted =
        (above.top * weight + (last.top - above.height) * static_cast<double>(last.entries)) /
        (weight + static_cast<double>(last.entries));
    above = {wanted, above.height + last.height, above.entries + last.entries};
    stacks->pop_back();
  }
}

std::string DrawSample(const LegendEntry& entry, const std::string& hatch_fill) {
  const double y = entry.box.top + kLegendLine / 2;
  const Spot middle = {entry.box.left + kSampleWidth / 2, y};
  const SeriesStyle& style = entry.style;
  const std::string point =
      absl::StrCat("<path class=\"", style.colour, style.hollow ? " hollow" : " point", "\" d=\"",
                   PointPath(style.shape, middle, std::min(4 * style.size, 8.)), "\"/>");
  if (style.mark == Mark::kScatter) return point;
  if (style.mark == Mark::kBars) {
    return absl::StrCat("<rect class=\"bar ", style.colour, "\"", hatch_fill, " x=\"",
                        Pixels(entry.box.left), "\" y=\"", Pixels(y - 6), "\" width=\"",
                        Pixels(kSampleWidth), "\" height=\"12\"/>");
  }
  const bool reference = style.mark == Mark::kReference;
  std::string line = absl::StrCat("<path class=\"", reference ? "reference " : "line ",
                                  style.heavy ? "heavy " : "", style.colour, "\"");
  if (!style.dash.empty()) absl::StrAppend(&line, " stroke-dasharray=\"", style.dash, "\"");
  absl::StrAppend(&line, " d=\"M", Pixels(entry.box.left), " ", Pixels(y), "h",
                  Pixels(kSampleWidth), "\"/>");
  return reference ? line : line + point;
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

std::vector<LegendEntry> LegendOf(const Figure& figure, const std::vector<SeriesStyle>& styles,
                                  double width) {
  std::vector<LegendEntry> entries;
  const double text_width = width - kLegendSample;
  for (const SeriesStyle& style : styles) {
    const bool scatter = style.mark == Mark::kScatter;
    if (style.name.empty() || (styles.size() == 1 && style.mark != Mark::kLine)) continue;
    entries.push_back({style, true, Wrapped(style.name, kLegendFontSize, text_width), {}});
    if (scatter) entries.back().style.colour = "quiet";  // colours are the groups'
  }
  if (figure.panels.size() == 1 && figure.x.categories.empty()) {
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const LegendEntry& left, const LegendEntry& right) {
                       return LastHeight(figure.panels[0], left.style) >
                              LastHeight(figure.panels[0], right.style);
                     });
  }
  AppendGroups(figure, width, &entries);
  return entries;
}

double FlowBelow(Box place, std::vector<LegendEntry>* entries) {
  double left = place.left;
  double top = place.top;
  double row_height = 0;
  for (LegendEntry& entry : *entries) {
    const double width = WidthOf(entry);
    if (left > place.left && left + width > place.right()) {
      left = place.left;
      top += row_height;
      row_height = 0;
    }
    entry.box = {left, top, width, HeightOf(entry)};
    left += width + kEntryGap;
    row_height = std::max(row_height, entry.box.height + 3);
  }
  return top + row_height - place.top;
}

double StackHeight(const std::vector<LegendEntry>& entries) {
  double height = 0;
  for (const LegendEntry& entry : entries) height += HeightOf(entry);
  return height;
}

void StackBeside(const FigurePanel& panel, const PlotFrame& frame, double left,
                 std::vector<LegendEntry>* entries) {
  constexpr double kAbove = 14;  // the plot, where the label of its axis leaves room
  double top = frame.box.top - kAbove;
  std::vector<Stack> stacks;
  for (const LegendEntry& entry : *entries) {  // from the highest end to the lowest
    const std::optional<FigurePoint> last = LastPoint(panel, entry.style);
    const double end = last ? frame.Upward(last->y) : frame.box.bottom();
    stacks.push_back({end - kLegendLine / 2, HeightOf(entry), 1});
    Merge(top, frame.box.bottom() + kLegendLine / 2, &stacks);
  }
  auto entry = entries->begin();
  for (const Stack& stack : stacks) {
    top = stack.top;
    for (size_t i = 0; i < stack.entries; ++i, ++entry) {
      entry->box = {left, top, WidthOf(*entry), HeightOf(*entry)};
      top = entry->box.bottom();
    }
  }
}

std::string DrawLegend(absl::string_view id_prefix, const std::vector<LegendEntry>& entries) {
  std::string drawn;
  for (const LegendEntry& entry : entries) {
    if (entry.sample) drawn += DrawSample(entry, HatchFill(id_prefix, entry.style));
    double y = entry.box.top + kLegendLine / 2 + 4.5;
    for (const std::string& line : entry.lines) {
      absl::StrAppend(&drawn, "<text x=\"",
                      Pixels(entry.box.left + (entry.sample ? kLegendSample : 0)), "\" y=\"",
                      Pixels(y), "\">", Escaped(line), "</text>");
      y += kLegendLine;
    }
    drawn += "\n";
  }
  return drawn;
}

std::string DrawLeaders(const FigurePanel& panel, const PlotFrame& frame,
                        const std::vector<LegendEntry>& entries) {
  std::string drawn;
  for (const LegendEntry& entry : entries) {
    const std::optional<FigurePoint> last = LastPoint(panel, entry.style);
    if (!last) continue;
    const bool level = !std::isfinite(last->x) || entry.style.mark == Mark::kReference;
    const double start = level ? frame.box.right() : frame.Across(last->x) + 6;
    const double y = std::clamp(frame.Upward(last->y), frame.box.top, frame.box.bottom());
    absl::StrAppend(&drawn, "<path class=\"leader ", entry.style.colour, "\" d=\"M", Pixels(start),
                    " ", Pixels(y), "H", Pixels(frame.box.right() + 8), "L",
                    Pixels(entry.box.left - 4), " ", Pixels(entry.box.top + kLegendLine / 2),
                    "\"/>");
  }
  return drawn.empty() ? "" : drawn + "\n";
}

}  // namespace privatemail::client
