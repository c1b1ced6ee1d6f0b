// Bars over categories as SVG elements.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_BARS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_BARS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/evaluation/figure.h"
#include "client/evaluation/report/plot_frame.h"
#include "client/evaluation/report/series_style.h"

namespace privatemail::client {

// Below each other in each category, with their bands as whiskers and their values in digits at
// their ends. They begin at 0, or at the low end of an axis that does not reach 0.
std::string DrawBars(const FigurePanel& panel, const PlotFrame& frame,
                     const std::vector<SeriesStyle>& styles, absl::string_view id_prefix);

// From one end of a point's band to the other; a path. Requires that both are finite.
std::string WhiskerPath(const PlotFrame& frame, const FigurePoint& point);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_BARS_H_
