// Plots of figures as SVG: coordinates, text, styles and marks.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/evaluation/report/figure.h"

namespace privatemail::client {

// Exponents of ten if logarithmic.
struct AxisRange {
  double low = 0;
  double high = 1;  // above low
  bool logarithmic = false;
};

struct AxisTick {
  double value = 0;
  std::string text;
};

// In ascending order, within the range; about `most` of them, two or more.
std::vector<AxisTick> AxisTicks(const AxisRange& range, int most);

// In pixels, y downwards.
struct Spot {
  double x = 0;
  double y = 0;
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

// In pixels, and the scales on its edges. Values beyond these are drawn on the nearest edge.
struct PlotFrame {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
  PlotScales scales = {};

  double right() const { return left + width; }
  double bottom() const { return top + height; }
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
std::string Pixels(Spot spot);  // "x y"

// "0.25", "-1.5", "2.5 x 10^-7" with typographic signs: `digits` significant ones without zeros at
// the end. NaN is a dash.
std::string NumberText(double value, int digits);

inline constexpr double kFontSize = 13;
inline constexpr double kTextLine = 18;  // from one line of text to the next

// About how wide a text is, in the widest of the usual sans-serif fonts.
double TextWidth(absl::string_view text);

// At spaces, so that no line of several words is wider than `width`; no line for an empty text.
std::vector<std::string> Wrapped(absl::string_view text, double width);

// Whether one point of a reference gives its height for every x.
bool IsLevel(const FigureSeries& series);

struct SeriesStyle {
  std::string name;
  FigureSeries::Mark mark = FigureSeries::Mark::kLine;
  std::string colour;  // a class of PlotStyleSheet
  std::string dash;    // of a line; empty: none
  int shape = 0;       // of points
  bool hollow = false;
  double size = 1;  // of points
};

// One a name and mark, in the order of appearance: a series has the same style in every panel.
std::vector<SeriesStyle> StylesOf(const Figure& figure);

// The styles of a figure's scatter groups in ascending order, named after their classes. Scatters
// of one panel differ by SeriesStyle::hollow and size.
std::map<int32_t, SeriesStyle> GroupStylesOf(const Figure& figure);

inline constexpr double kSampleWidth = 34;

// The mark of a series in a legend. left: the middle of its left edge.
std::string DrawSample(const SeriesStyle& style, Spot left);

// Wide marks first; points that are not finite are left out.
std::string DrawMarks(const FigurePanel& panel, const PlotFrame& frame,
                      const std::vector<SeriesStyle>& styles,
                      const std::map<int32_t, SeriesStyle>& groups);

// CSS for everything of class "plot", light and dark.
absl::string_view PlotStyleSheet();

// Pixels. A plot is drawn for a width and is not just scaled to it, so that its text has one size.
inline constexpr double kPageWidth = 920;
inline constexpr double kPhoneWidth = 358;

// An SVG document of its own for kPageWidth, with title, background and style. Errors: CheckFigure.
absl::StatusOr<std::string> StandAloneSvg(const Figure& figure);

// An <svg> element for a page of HTML that has the title and PlotStyleSheet() itself. `width`: more
// than 200. Its ids begin with "plot-", the figure's and the width.
absl::StatusOr<std::string> InlineSvg(const Figure& figure, double width);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_H_
