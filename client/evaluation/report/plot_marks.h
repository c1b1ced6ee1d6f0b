// The series of a panel as SVG elements.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_MARKS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_MARKS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/evaluation/report/figure.h"
#include "client/evaluation/report/plot_frame.h"
#include "client/evaluation/report/plot_legend.h"

namespace privatemail::client {

// Wide things first, so that nothing thin lies under them. Points that are not finite are left out:
// a line has a gap there. `id_prefix`: as the HatchDefinitions of the plot; the clip path
// "<id_prefix>-clip<panel_index>" cuts off what lies beyond an axis's end. ranks: of the figure.
std::string DrawMarks(const FigurePanel& panel, const PlotFrame& frame,
                      const std::vector<SeriesStyle>& styles, const GroupRanks& ranks,
                      absl::string_view id_prefix, size_t panel_index);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_MARKS_H_
