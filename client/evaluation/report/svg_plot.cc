#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/evaluation/report/plot.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

constexpr double kEdge = 4;
constexpr double kGap = 32;          // between panels, and between entries of the legend
constexpr double kRightMargin = 52;  // for half a tick's text, or the number at a bar's end
constexpr double kTickLength = 14;   // from a tick's text to the plot
constexpr double kNameShare = .4;    // of a panel, for names of categories, at most

using Lines = std::vector<std::string>;

double HeightOf(const Lines& lines) { return kTextLine * static_cast<double>(lines.size()); }

// y: the top of the first line.
std::string Text(double x, double y, absl::string_view style_class, const Lines& lines) {
  std::string drawn;
  for (const std::string& line : lines) {
    absl::StrAppend(&drawn, "<text class=\"", style_class, "\" x=\"", Pixels(x), "\" y=\"",
                    Pixels(y + 13), "\">", Escaped(line), "</text>");
    y += kTextLine;
  }
  return drawn;
}

int Columns(size_t panels, double width) {
  constexpr double kNarrowestPanel = 280;
  const auto count = std::max(1, static_cast<int>(panels));
  const int fitting = std::max(1, static_cast<int>((width + kGap) / (kNarrowestPanel + kGap)));
  const int rows = (count + fitting - 1) / fitting;
  return (count + rows - 1) / rows;  // four are better as 2 + 2 than as 3 + 1
}

// The layout that all panels of a figure share, in pixels from a panel's corner.
struct PanelLayout {
  double width = 0;
  double height = 0;
  Lines across_label;
  Lines upward_label;
  PlotFrame frame;
  std::vector<AxisTick> across;
  std::vector<AxisTick> upward;  // or categories
};

// High enough for the bars of a category, or for the lines of its name.
double CategoryHeight(const Figure& figure, double name_width) {
  constexpr double kBar = 20;
  constexpr double kPadding = 14;
  double height = 0;
  for (const FigurePanel& panel : figure.panels) {
    const auto bars = std::count_if(
        panel.series.begin(), panel.series.end(),
        [](const FigureSeries& series) { return series.mark == FigureSeries::Mark::kBars; });
    height = std::max(height, kBar * static_cast<double>(bars));
  }
  for (const std::string& name : figure.x.categories) {
    height = std::max(height, HeightOf(Wrapped(name, name_width)));
  }
  return height + kPadding;
}

PanelLayout LayOut(const Figure& figure, double width) {
  constexpr double kHeadGap = 14;     // between the text above a plot and the plot
  constexpr double kTickHeight = 26;  // of ticks' text below the plot
  const PlotScales scales = FitScales(figure);
  const double name_width = kNameShare * width;
  PanelLayout layout;
  layout.width = width;
  layout.across_label = Wrapped(scales.categories ? figure.y.label : figure.x.label, width);
  layout.upward_label = Wrapped(scales.categories ? figure.x.label : figure.y.label, width);
  double title = 0;
  for (const FigurePanel& panel : figure.panels) {
    title = std::max(title, HeightOf(Wrapped(panel.title, width)));
  }
  PlotFrame& frame = layout.frame;
  frame.scales = scales;
  frame.top = title + HeightOf(layout.upward_label) + kHeadGap;
  if (scales.categories) {
    for (const std::string& name : figure.x.categories) {
      layout.upward.push_back({static_cast<double>(layout.upward.size()), name});
    }
    frame.height = CategoryHeight(figure, name_width) * static_cast<double>(layout.upward.size());
  } else {
    frame.height = std::min(.72 * width, 380.0);
    layout.upward = AxisTicks(scales.upward(), static_cast<int>(frame.height / 44));
  }
  for (const AxisTick& tick : layout.upward) {
    for (const std::string& line : Wrapped(tick.text, name_width)) {
      frame.left = std::max(frame.left, TextWidth(line) + kTickLength);
    }
  }
  frame.width = width - frame.left - kRightMargin;
  layout.across = AxisTicks(scales.across(), static_cast<int>(frame.width / 70));
  layout.height = frame.bottom() + kTickHeight + HeightOf(layout.across_label);
  return layout;
}

std::string DrawAxes(const PanelLayout& layout, const PlotFrame& frame) {
  std::string grid;
  std::string texts;
  for (const AxisTick& tick : layout.across) {
    const double x = frame.Across(tick.value);
    absl::StrAppend(&grid, "M", Pixels(Spot{x, frame.top}), "v", Pixels(frame.height));
    texts += Text(x, frame.bottom() + 5, "middle", {tick.text});
  }
  for (const AxisTick& tick : layout.upward) {
    const double y = frame.Upward(tick.value);
    const Lines lines = Wrapped(tick.text, kNameShare * layout.width);
    if (!frame.scales.categories) {
      absl::StrAppend(&grid, "M", Pixels(Spot{frame.left, y}), "h", Pixels(frame.width));
    }
    texts += Text(frame.left - 8, y - HeightOf(lines) / 2, "end", lines);
  }
  return absl::StrCat("<path class=\"grid\" d=\"", grid, "\"/>\n<path class=\"axis\" d=\"M",
                      Pixels(Spot{frame.left, frame.top}), "v", Pixels(frame.height), "h",
                      Pixels(frame.width), "\"/>\n", texts, "\n");
}

bool HasValues(const FigurePanel& panel) {
  return std::any_of(panel.series.begin(), panel.series.end(), [](const FigureSeries& series) {
    return std::any_of(series.points.begin(), series.points.end(),
                       [](const FigurePoint& point) { return std::isfinite(point.y); });
  });
}

std::string DrawPanel(const FigurePanel& panel, const PanelLayout& layout, Spot corner,
                      const std::vector<SeriesStyle>& styles,
                      const std::map<int32_t, SeriesStyle>& groups) {
  PlotFrame frame = layout.frame;
  frame.left += corner.x;
  frame.top += corner.y;
  std::string drawn = Text(corner.x, corner.y, "strong", Wrapped(panel.title, layout.width));
  absl::StrAppend(
      &drawn,
      Text(corner.x, frame.top - 12 - HeightOf(layout.upward_label), "", layout.upward_label),
      Text(corner.x + layout.width / 2, frame.bottom() + 26, "middle", layout.across_label),
      DrawAxes(layout, frame), DrawMarks(panel, frame, styles, groups));
  if (!HasValues(panel)) {
    drawn +=
        Text(frame.left + frame.width / 2, frame.top + frame.height / 2, "middle", {"no values"});
  }
  return drawn;
}

// Draws entries in rows from *bottom downwards, and moves it below them.
std::string DrawLegend(const std::vector<SeriesStyle>& entries, double width, double* bottom) {
  constexpr double kText = kSampleWidth + 8;  // from a sample to its text
  std::string drawn;
  double left = 0;
  double row_height = 0;
  for (const SeriesStyle& entry : entries) {
    const Lines lines = Wrapped(entry.name, width - kText);
    double text_width = 0;
    for (const std::string& line : lines) text_width = std::max(text_width, TextWidth(line));
    if (left > 0 && left + kText + text_width > width) {
      left = 0;
      *bottom += row_height;
      row_height = 0;
    }
    absl::StrAppend(&drawn, DrawSample(entry, {left, *bottom + kTextLine / 2}),
                    Text(left + kText, *bottom, "", lines), "\n");
    left += kText + text_width + kGap;
    row_height = std::max(row_height, HeightOf(lines) + 4);
  }
  *bottom += row_height;
  return drawn;
}

std::vector<SeriesStyle> LegendOf(const std::vector<SeriesStyle>& styles,
                                  const std::map<int32_t, SeriesStyle>& groups) {
  std::vector<SeriesStyle> entries;
  for (const SeriesStyle& style : styles) {
    if (style.name.empty()) continue;
    if (styles.size() > 1 || style.mark == FigureSeries::Mark::kLine) entries.push_back(style);
  }
  if (groups.size() < 2) return entries;
  for (const auto& [group, style] : groups) entries.push_back(style);
  return entries;
}

// stands_alone: with a title, background and style sheet of its own.
std::string Draw(const Figure& figure, double width, const std::string& id_prefix,
                 bool stands_alone) {
  const std::vector<SeriesStyle> styles = StylesOf(figure);
  const std::map<int32_t, SeriesStyle> groups = GroupStylesOf(figure);
  const int columns = Columns(figure.panels.size(), width);
  const PanelLayout layout = LayOut(figure, (width - kGap * (columns - 1)) / columns);
  double bottom = kEdge;
  std::string drawn;
  if (stands_alone) {
    const Lines title = Wrapped(figure.title, width);
    drawn = Text(0, bottom, "strong", title);
    bottom += HeightOf(title) + kTextLine;
  }
  for (size_t i = 0; i < figure.panels.size(); ++i) {
    const int column = static_cast<int>(i) % columns;
    drawn += DrawPanel(figure.panels[i], layout, {column * (layout.width + kGap), bottom}, styles,
                       groups);
    if (column + 1 == columns || i + 1 == figure.panels.size()) bottom += layout.height + kTextLine;
  }
  drawn += DrawLegend(LegendOf(styles, groups), width, &bottom);
  const std::string size =
      absl::StrCat("width=\"", width, "\" height=\"", Pixels(bottom + kEdge), "\"");
  return absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 ",
                      width, " ", Pixels(bottom + kEdge), "\" ", size,
                      " role=\"img\" aria-labelledby=\"", id_prefix, "-title ", id_prefix,
                      "-desc\">\n<title id=\"", id_prefix, "-title\">", Escaped(figure.title),
                      "</title>\n<desc id=\"", id_prefix, "-desc\">",
                      Escaped(absl::StrJoin(figure.words, " ")), "</desc>\n",
                      stands_alone ? absl::StrCat("<style>", PlotStyleSheet(),
                                                  "</style>\n<rect class=\"paper\" ", size, "/>\n")
                                   : "",
                      drawn, "</svg>\n");
}

}  // namespace

absl::StatusOr<std::string> StandAloneSvg(const Figure& figure) {
  PM_RETURN_IF_ERROR(CheckFigure(figure));
  return absl::StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
                      Draw(figure, kPageWidth, figure.id, /*stands_alone=*/true));
}

absl::StatusOr<std::string> InlineSvg(const Figure& figure, double width) {
  PM_RETURN_IF_ERROR(CheckFigure(figure));
  return Draw(figure, width, absl::StrCat("plot-", figure.id, "-", width), /*stands_alone=*/false);
}

}  // namespace privatemail::client
