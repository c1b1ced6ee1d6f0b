// Where the points of lines are drawn, so that lines that coincide can be told apart.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_POINTS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_POINTS_H_

#include <vector>

#include "client/evaluation/figure.h"
#include "client/evaluation/report/plot_frame.h"

namespace privatemail::client {

bool IsDrawn(const FigurePoint& point);

// By x, without those that have none.
std::vector<FigurePoint> InOrder(std::vector<FigurePoint> points);

// Of every line of the panel, in their order, the places of at most 25 of its points. Where points
// of several lines would cover each other they stand side by side, in the order of the lines and
// each on its own line: the vertices of lines stay where they are.
std::vector<std::vector<Spot>> PlacePoints(const FigurePanel& panel, const PlotFrame& frame);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_POINTS_H_
