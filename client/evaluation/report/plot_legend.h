// Which mark is which series.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_LEGEND_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_LEGEND_H_

#include <string>
#include <vector>

#include "client/evaluation/figure.h"
#include "client/evaluation/report/plot_frame.h"
#include "client/evaluation/report/series_style.h"

namespace privatemail::client {

inline constexpr double kLegendFontSize = 13;
inline constexpr double kLegendLine = 17;    // from one line of text to the next
inline constexpr double kLegendSample = 42;  // from a sample of the mark to its text

struct LegendEntry {
  SeriesStyle style;
  bool sample = true;              // false: text alone
  std::vector<std::string> lines;  // wrapped
  Box box;
};

// What has a name, wrapped to `width`: the series, with the highest end of a line first when there
// is one panel, and the groups of scatters.
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
