// How a figure's panels and legend share a page.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_LAYOUT_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_LAYOUT_H_

#include <string>
#include <vector>

#include "client/evaluation/figure.h"
#include "client/evaluation/report/plot_frame.h"
#include "client/evaluation/report/plot_legend.h"
#include "client/evaluation/report/series_style.h"

namespace privatemail::client {

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

// Pixels at the size at which the plot is meant to be seen. The figure must have passed
// CheckFigure.
PlotLayout LayOut(const Figure& figure, const std::vector<SeriesStyle>& styles, double width,
                  bool with_title);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_LAYOUT_H_
