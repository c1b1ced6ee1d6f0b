// Coordinates of a plot, and text and numbers as SVG and HTML.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_FRAME_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_FRAME_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/evaluation/report/figure.h"

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

// Ranges that all panels of a figure share. Categories run from top to bottom: x is then the
// vertical axis.
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

// `text` as the content of an element or of a quoted attribute, in HTML and in XML: markup is
// escaped, control characters are shown ("\x1b"), and what is not UTF-8 or no character of XML 1.0
// becomes U+FFFD.
std::string Escaped(absl::string_view text);

// A coordinate, to a tenth of a pixel.
std::string Pixels(double value);

// "0.25", "-1.5", "2.5 x 10^-7" with typographic signs: `digits` significant ones without zeros at
// the end. NaN is a dash.
std::string NumberText(double value, int digits);

// The same with `decimals` digits behind the point, for numbers that stand in a column or a row.
std::string FixedText(double value, int decimals);

// 10^exponent, in superscript digits.
std::string PowerOfTen(int exponent);

// About how wide a text is, in the widest of the usual sans-serif fonts.
double TextWidth(absl::string_view text, double font_size);

// At spaces where there are any, so that no line is wider than `width`.
std::vector<std::string> Wrapped(absl::string_view text, double font_size, double width);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_FRAME_H_
