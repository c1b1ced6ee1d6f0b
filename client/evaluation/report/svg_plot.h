// Figures as SVG.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_SVG_PLOT_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_SVG_PLOT_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/evaluation/report/figure.h"

namespace privatemail::client {

// Pixels. A plot is drawn for a width and is not just scaled to it, so that its text has one size.
inline constexpr double kPageWidth = 920;
inline constexpr double kPhoneWidth = 358;

// An SVG document with title, background and style, for kPageWidth: a file of its own. References
// of a single point are drawn across the whole plot. Colours follow the reader's preference for
// light or dark. What is refused: see CheckFigure.
absl::StatusOr<std::string> StandAloneSvg(const Figure& figure);

// An <svg> element for a page of HTML that has the title and PlotStyleSheet() itself. `width`: more
// than 200. Its ids begin with "plot-", the figure's and the width.
absl::StatusOr<std::string> InlineSvg(const Figure& figure, double width);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_SVG_PLOT_H_
