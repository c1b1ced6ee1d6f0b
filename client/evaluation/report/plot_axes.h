// What surrounds the series of a panel: grid, axes, ticks and their labels.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_AXES_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_AXES_H_

#include <string>

#include "client/evaluation/report/plot_layout.h"

namespace privatemail::client {

// To be drawn before the series, which lie over it.
std::string DrawGrid(const PanelPlace& place);
std::string DrawAxes(const PanelPlace& place);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_AXES_H_
