// Where the values of a panel lie on paper.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_FRAME_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_FRAME_H_

#include "client/evaluation/figure.h"
#include "client/evaluation/report/axis_scale.h"

namespace privatemail::client {

// In pixels, y downwards.
struct Spot {
  double x = 0;
  double y = 0;
};

struct Box {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

// What all panels of a figure have in common. Categories run from top to bottom, since their names
// are long and pages narrow: x is then the vertical axis.
struct PlotScales {
  AxisRange x;
  AxisRange y;
  bool categories = false;

  const AxisRange& across() const { return categories ? y : x; }
  const AxisRange& upward() const { return categories ? x : y; }
};

// The ranges that all panels need together. The figure must have passed CheckFigure.
PlotScales FitScales(const Figure& figure);

struct PlotFrame {
  Box box;
  PlotScales scales;

  // Requires finite values.
  Spot At(double x, double y) const;
  // On the horizontal and on the vertical axis of the paper.
  double Across(double value) const;
  double Upward(double value) const;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_FRAME_H_
