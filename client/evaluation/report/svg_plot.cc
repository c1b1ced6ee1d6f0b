#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/evaluation/report/plot.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

inline constexpr double kPlotFontSize = 13;
inline constexpr double kPlotLine = 18;  // from one line of text to the next
inline constexpr double kHeadGap = 14;   // between the text above a plot and the plot
inline constexpr double kTitleFontSize = 17;
inline constexpr double kTitleLine = 24;

struct PanelPlace {
  PlotFrame frame;
  double left = 0;  // of the panel's title, and of the label of its vertical axis
  double top = 0;
  double width = 0;
  std::vector<AxisTick> across;
  std::vector<AxisTick> upward;                 // empty with categories
  std::vector<std::vector<std::string>> names;  // of categories, wrapped
  std::vector<std::string> title;               // wrapped
  std::vector<std::string> upward_label;
  std::vector<std::string> across_label;
};

struct PlotLayout {
  double width = 0;
  double height = 0;
  std::vector<std::string> title;  // empty where the page has it
  std::vector<PanelPlace> panels;  // as many as the figure has
  std::vector<LegendEntry> legend;
  bool legend_beside = false;
};

using Mark = FigureSeries::Mark;

constexpr double kNarrowestPanel = 280;
constexpr double kGap = 32;             // between panels
constexpr double kBesideWidth = 292;    // of a legend beside the plot
constexpr double kRoomForBeside = 640;  // of the page
constexpr double kTickLength = 14;      // from a tick's text to the plot
constexpr double kTickHeight = 26;      // of ticks' text below the plot
constexpr double kValueWidth = 52;      // of the number at a bar's end

bool Has(const Figure& figure, Mark mark) {
  return std::any_of(figure.panels.begin(), figure.panels.end(), [&](const FigurePanel& panel) {
    return std::any_of(panel.series.begin(), panel.series.end(),
                       [&](const FigureSeries& series) { return series.mark == mark; });
  });
}

double WidestText(const std::vector<AxisTick>& ticks) {
  double widest = 0;
  for (const AxisTick& tick : ticks) widest = std::max(widest, TextWidth(tick.text, 12));
  return widest;
}

int Columns(size_t panels, double width) {
  const auto count = std::max(1, static_cast<int>(panels));
  const int fitting = std::max(1, static_cast<int>((width + kGap) / (kNarrowestPanel + kGap)));
  const int rows = (count + fitting - 1) / fitting;
  return (count + rows - 1) / rows;  // four are better as 2 + 2 than as 3 + 1
}

int BarSeries(const Figure& figure) {
  size_t most = 0;
  for (const FigurePanel& panel : figure.panels) {
    const auto bars = static_cast<size_t>(
        std::count_if(panel.series.begin(), panel.series.end(),
                      [](const FigureSeries& series) { return series.mark == Mark::kBars; }));
    most = std::max(most, bars);
  }
  return static_cast<int>(most);
}

struct PanelLayout {
  double width = 0;
  double left_margin = 0;
  double right_margin = 0;
  double plot_height = 0;
  double head = 0;  // title and label above the plot
  double foot = 0;  // ticks and label below it
  PanelPlace texts;

  double plot_width() const { return width - left_margin - right_margin; }
  double height() const { return head + plot_height + foot; }
};

void PlaceNames(const Figure& figure, PanelLayout* cell) {
  constexpr double kShare = 0.4;  // of a panel, at most
  constexpr double kSlotPadding = 14;
  constexpr double kBar = 20;
  double widest = 0;
  for (const std::string& name : figure.x.categories) {
    widest = std::max(widest, TextWidth(name, kPlotFontSize));
  }
  const double width = std::min(widest, kShare * cell->width);
  double slot = kBar * std::max(1, BarSeries(figure)) + kSlotPadding;
  for (const std::string& name : figure.x.categories) {
    cell->texts.names.push_back(Wrapped(name, kPlotFontSize, width));
    const auto lines = static_cast<double>(cell->texts.names.back().size());
    slot = std::max(slot, lines * (kPlotLine - 2) + kSlotPadding);
  }
  cell->left_margin = width + kTickLength;
  cell->plot_height = slot * static_cast<double>(figure.x.categories.size());
}

double PlotHeight(const Figure& figure, const PanelLayout& cell) {
  constexpr double kHighest = 380;
  constexpr double kRatio = 0.72;
  if (Has(figure, Mark::kScatter)) return cell.plot_width();
  return std::min(kHighest, std::max(kRatio * cell.plot_width(), 200.0));
}

void PlaceTicks(const PlotScales& scales, PanelLayout* cell) {
  constexpr double kHighestTick = 44;
  constexpr double kTickGap = 22;
  if (!scales.categories) {
    cell->texts.upward =
        AxisTicks(scales.upward(), static_cast<int>(cell->plot_height / kHighestTick));
    cell->left_margin = WidestText(cell->texts.upward) + kTickLength;
  }
  for (int most = 10; most >= 3; --most) {
    cell->texts.across = AxisTicks(scales.across(), most);
    const double width = WidestText(cell->texts.across) + kTickGap;
    const auto named = std::count_if(cell->texts.across.begin(), cell->texts.across.end(),
                                     [](const AxisTick& tick) { return !tick.text.empty(); });
    if (width * static_cast<double>(named) <= cell->plot_width()) break;
  }
  cell->right_margin = std::max(cell->right_margin, WidestText(cell->texts.across) / 2 + 2);
}

double Lines(const std::vector<std::string>& lines) {
  return kPlotLine * static_cast<double>(lines.size());
}

std::vector<std::string> WrappedLabel(const std::string& label, double width) {
  if (label.empty()) return {};
  return Wrapped(label, kPlotFontSize, width);
}

PanelLayout MakeCell(const Figure& figure, const PlotScales& scales, double width, double beside) {
  PanelLayout cell;
  cell.width = width - beside;
  cell.right_margin = Has(figure, Mark::kBars) ? kValueWidth : 0;
  if (scales.categories) {
    PlaceNames(figure, &cell);
  } else {
    cell.left_margin = 40;
    cell.plot_height = PlotHeight(figure, cell);
  }
  PlaceTicks(scales, &cell);
  if (Has(figure, Mark::kScatter) && !scales.categories) cell.plot_height = cell.plot_width();
  const std::string& upward = scales.categories ? figure.x.label : figure.y.label;
  const std::string& across = scales.categories ? figure.y.label : figure.x.label;
  cell.texts.upward_label = WrappedLabel(upward, cell.width);
  cell.texts.across_label = WrappedLabel(across, cell.width);
  size_t title_lines = 0;
  for (const FigurePanel& panel : figure.panels) {
    title_lines = std::max(title_lines, WrappedLabel(panel.title, cell.width).size());
  }
  cell.head =
      kPlotLine * static_cast<double>(title_lines) + Lines(cell.texts.upward_label) + kHeadGap;
  cell.foot = kTickHeight + Lines(cell.texts.across_label);
  return cell;
}

PanelPlace PlacePanel(const FigurePanel& panel, const PanelLayout& cell, const PlotScales& scales,
                      double left, double top) {
  PanelPlace place = cell.texts;
  place.left = left;
  place.top = top;
  place.width = cell.width;
  place.title = WrappedLabel(panel.title, cell.width);
  place.frame.scales = scales;
  place.frame.box = {left + cell.left_margin, top + cell.head, cell.plot_width(), cell.plot_height};
  return place;
}

PlotLayout LayOut(const Figure& figure, const std::vector<SeriesStyle>& styles, double width,
                  bool with_title) {
  constexpr double kEdge = 4;
  constexpr double kRowGap = 18;
  const PlotScales scales = FitScales(figure);
  const int columns = Columns(figure.panels.size(), width);
  PlotLayout layout;
  layout.width = width;
  if (with_title) layout.title = Wrapped(figure.title, kTitleFontSize, width);
  layout.legend_beside = figure.panels.size() == 1 && width >= kRoomForBeside &&
                         !scales.categories && !Has(figure, Mark::kScatter);
  layout.legend = LegendOf(figure, styles, layout.legend_beside ? kBesideWidth - 44 : width);
  layout.legend_beside &= !layout.legend.empty();
  PanelLayout cell = MakeCell(figure, scales, (width - kGap * (columns - 1)) / columns,
                              layout.legend_beside ? kBesideWidth : 0);
  if (layout.legend_beside) {
    cell.plot_height = std::max(cell.plot_height, StackHeight(layout.legend));
  }
  double top = kEdge + kTitleLine * static_cast<double>(layout.title.size());
  for (size_t i = 0; i < figure.panels.size(); ++i) {
    const auto column = static_cast<int>(i) % columns;
    if (column == 0 && i > 0) top += cell.height() + kRowGap;
    layout.panels.push_back(
        PlacePanel(figure.panels[i], cell, scales, column * (cell.width + kGap), top));
  }
  layout.height = top + (figure.panels.empty() ? 0 : cell.height());
  if (layout.legend_beside) {
    const PlotFrame& frame = layout.panels[0].frame;
    StackBeside(figure.panels[0], frame, frame.box.right() + 44, &layout.legend);
  } else if (!layout.legend.empty()) {
    layout.height += kRowGap;
    layout.height += FlowBelow({0, layout.height, width, 0}, &layout.legend);
  }
  layout.height += kEdge;
  return layout;
}

constexpr double kMinorTick = 4;

std::string Text(double x, double y, absl::string_view style_class, absl::string_view text) {
  return absl::StrCat("<text class=\"", style_class, "\" x=\"", Pixels(x), "\" y=\"", Pixels(y),
                      "\">", Escaped(text), "</text>");
}

std::string Lines(double x, double y, double line_height, absl::string_view style_class,
                  const std::vector<std::string>& lines) {
  std::string drawn;
  for (const std::string& line : lines) {
    drawn += Text(x, y, style_class, line);
    y += line_height;
  }
  return drawn;
}

// Below the middle of the plot, unless the label is wider and would leave the panel.
double MiddleOfLabel(const PanelPlace& place) {
  double half = 0;
  for (const std::string& line : place.across_label) {
    half = std::max(half, TextWidth(line, kPlotFontSize) / 2);
  }
  const Box& box = place.frame.box;
  const double rightmost = place.left + place.width - half;
  return std::max(place.left + half, std::min(box.left + box.width / 2, rightmost));
}

std::string DrawNames(const PanelPlace& place) {
  constexpr double kNameLine = kPlotLine - 2;
  constexpr double kBelowMiddle = 4.5;  // from the middle of a line to its baseline
  const Box& box = place.frame.box;
  std::string drawn;
  for (size_t i = 0; i < place.names.size(); ++i) {
    const double middle = place.frame.Upward(static_cast<double>(i));
    const double above = kNameLine * static_cast<double>(place.names[i].size() - 1) / 2;
    drawn += Lines(box.left - 10, middle - above + kBelowMiddle, kNameLine, "end", place.names[i]);
  }
  return drawn;
}

std::string DrawGrid(const PanelPlace& place) {
  const Box& box = place.frame.box;
  std::string path;
  for (const AxisTick& tick : place.across) {
    if (tick.text.empty()) continue;
    absl::StrAppend(&path, "M", Pixels(place.frame.Across(tick.value)), " ", Pixels(box.top), "v",
                    Pixels(box.height));
  }
  for (const AxisTick& tick : place.upward) {
    if (tick.text.empty()) continue;
    absl::StrAppend(&path, "M", Pixels(box.left), " ", Pixels(place.frame.Upward(tick.value)), "h",
                    Pixels(box.width));
  }
  return absl::StrCat("<path class=\"grid\" d=\"", path, "\"/>\n");
}

std::string DrawAxes(const PanelPlace& place) {
  const Box& box = place.frame.box;
  std::string lines = absl::StrCat("M", Pixels(box.left), " ", Pixels(box.top), "v",
                                   Pixels(box.height), "h", Pixels(box.width));
  std::string texts;
  for (const AxisTick& tick : place.across) {
    const double x = place.frame.Across(tick.value);
    if (tick.text.empty()) {
      absl::StrAppend(&lines, "M", Pixels(x), " ", Pixels(box.bottom()), "v", Pixels(-kMinorTick));
    } else {
      texts += Text(x, box.bottom() + 18, "middle small", tick.text);
    }
  }
  for (const AxisTick& tick : place.upward) {
    const double y = place.frame.Upward(tick.value);
    if (tick.text.empty()) {
      absl::StrAppend(&lines, "M", Pixels(box.left), " ", Pixels(y), "h", Pixels(kMinorTick));
    } else {
      texts += Text(box.left - 8, y + 4, "end small", tick.text);
    }
  }
  texts += DrawNames(place);
  double y = place.top + 13;
  texts += Lines(place.left, y, kPlotLine, "strong", place.title);
  // Panels of a row have their plots at one height, whether their titles take one line or two.
  y = box.top - kHeadGap - kPlotLine * static_cast<double>(place.upward_label.size()) + 14;
  texts += Lines(place.left, y, kPlotLine, "label", place.upward_label);
  texts += Lines(MiddleOfLabel(place), box.bottom() + 40, kPlotLine, "middle", place.across_label);
  return absl::StrCat("<path class=\"axis\" d=\"", lines, "\"/>\n", texts, "\n");
}

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
