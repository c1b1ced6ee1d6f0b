#include "client/evaluation/report/plot_legend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/evaluation/report/plot_text.h"

namespace privatemail::client {
namespace {

using Mark = FigureSeries::Mark;

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

// The point with the largest x that can be drawn.
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

// Entries that touch each other.
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
