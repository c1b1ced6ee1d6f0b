// What an axis spans, where a value lies on it and where its ticks are.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_AXIS_SCALE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_AXIS_SCALE_H_

#include <string>
#include <vector>

#include "client/evaluation/figure.h"

namespace privatemail::client {

struct AxisRange {
  double low = 0;
  double high = 1;  // above low
  bool logarithmic = false;
};

// How far an axis reaches beyond the values on it.
enum class AxisFit {
  kTight,    // not at all
  kRounded,  // to the next round numbers
  kPadded,   // by a twentieth of its length
};

// The range of finite `values`, at most kLargestDrawn in size, and on a logarithmic axis of those
// from kSmallestLogarithmic on, unless the axis says its ends itself. Never empty: around a single
// value, or without any, there is an axis, too.
AxisRange FitRange(const FigureAxis& axis, const std::vector<double>& values, AxisFit fit);

// 0 at the low end, 1 at the high end, beyond them outside.
double PlaceOn(const AxisRange& range, double value);

struct AxisTick {
  double value = 0;
  std::string text;  // empty: between those with text, on a logarithmic axis
};

// In ascending order, within the range; about `most` of them with text, three or more.
std::vector<AxisTick> AxisTicks(const AxisRange& range, int most);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_AXIS_SCALE_H_
