// Styles that distinguish series without relying on colour alone, and the legend of a plot.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_LEGEND_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_LEGEND_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/evaluation/report/figure.h"
#include "client/evaluation/report/plot_frame.h"

namespace privatemail::client {

// Colours are Okabe and Ito's (Color Universal Design, 2008) without yellow, which paper swallows.
inline constexpr int kPlotColours = 7;

struct SeriesStyle {
  std::string name;
  FigureSeries::Mark mark = FigureSeries::Mark::kLine;
  std::string colour;  // a class of PlotStyleSheet
  std::string dash;    // of a line; empty: none
  int shape = 0;       // of points
  bool hollow = false;
  double size = 1;     // of points
  int hatch = 0;       // of bars; 0: none
  bool heavy = false;  // of a reference: when all rhythms of dashes are used up
};

// One a name and mark, in the order of appearance: a series has the same style in every panel.
std::vector<SeriesStyle> StylesOf(const Figure& figure);
// Requires that the series is of the figure that the styles were made of.
const SeriesStyle& StyleOf(const std::vector<SeriesStyle>& styles, const FigureSeries& series);

// The groups of a figure's scatters in ascending order, counted from 0.
using GroupRanks = std::map<int32_t, int>;
GroupRanks RanksOf(const Figure& figure);

// Of a scatter's group by its rank: colours and shapes go round, 112 pairs before one occurs again.
// Scatters of one panel differ by SeriesStyle::hollow and size.
SeriesStyle GroupStyle(int rank, const SeriesStyle& scatter);
inline constexpr int kGroupStyles = 112;

// Commands of an SVG path that draw a point.
std::string PointPath(int shape, Spot centre, double radius);

// Hatch patterns of `styles`; `id_prefix` separates the plots of one page.
std::string HatchDefinitions(absl::string_view id_prefix, const std::vector<SeriesStyle>& styles);
std::string HatchFill(absl::string_view id_prefix, const SeriesStyle& style);

// CSS for everything of class "plot", light and dark.
absl::string_view PlotStyleSheet();

inline constexpr double kLegendFontSize = 13;
inline constexpr double kLegendLine = 17;    // from one line of text to the next
inline constexpr double kLegendSample = 42;  // from a sample of the mark to its text

struct LegendEntry {
  SeriesStyle style;
  bool sample = true;              // false: text alone
  std::vector<std::string> lines;  // wrapped
  Box box;
};

// The named series, the highest end of a line first when there is one panel, and the groups of
// scatters, wrapped to `width`.
std::vector<LegendEntry> LegendOf(const Figure& figure, const std::vector<SeriesStyle>& styles,
                                  double width);

// Shares them out over rows below a plot. Returns the height that they take.
double FlowBelow(Box place, std::vector<LegendEntry>* entries);

// Stacks them beside a plot so that each is as near to the end of its line as the others allow;
// those without an end come last. Requires that `frame` is as high as they are together.
void StackBeside(const FigurePanel& panel, const PlotFrame& frame, double left,
                 std::vector<LegendEntry>* entries);
double StackHeight(const std::vector<LegendEntry>& entries);

std::string DrawLegend(absl::string_view id_prefix, const std::vector<LegendEntry>& entries);
// Thin lines from the ends of lines to entries beside them.
std::string DrawLeaders(const FigurePanel& panel, const PlotFrame& frame,
                        const std::vector<LegendEntry>& entries);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_LEGEND_H_
