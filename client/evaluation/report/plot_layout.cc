#include "client/evaluation/report/plot_layout.h"

#include <algorithm>
#include <cmath>

#include "client/evaluation/report/plot_text.h"

namespace privatemail::client {
namespace {

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

// What all panels of one figure have alike.
struct Cell {
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

void PlaceNames(const Figure& figure, Cell* cell) {
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

double PlotHeight(const Figure& figure, const Cell& cell) {
  constexpr double kHighest = 380;
  constexpr double kRatio = 0.72;
  if (Has(figure, Mark::kScatter)) return cell.plot_width();
  return std::min(kHighest, std::max(kRatio * cell.plot_width(), 200.0));
}

void PlaceTicks(const PlotScales& scales, Cell* cell) {
  constexpr double kHighestTick = 44;
  constexpr double kTickGap = 22;
  if (!scales.categories) {
    cell->texts.upward =
        AxisTicks(scales.upward(), static_cast<int>(cell->plot_height / kHighestTick));
    cell->left_margin = WidestText(cell->texts.upward) + kTickLength;
  }
  // Fewer ticks until their texts do not touch each other.
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

Cell MakeCell(const Figure& figure, const PlotScales& scales, double width, double beside) {
  Cell cell;
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

PanelPlace PlacePanel(const FigurePanel& panel, const Cell& cell, const PlotScales& scales,
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

}  // namespace

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
  Cell cell = MakeCell(figure, scales, (width - kGap * (columns - 1)) / columns,
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

}  // namespace privatemail::client
