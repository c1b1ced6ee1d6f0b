// Plots of figures as SVG: coordinates, text, styles, legends and marks.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/evaluation/report/figure.h"

namespace privatemail::client {

struct AxisRange {
  double low = 0;
  double high = 1;  // above low
  bool logarithmic = false;
};

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

// About how wide a text is, in the widest of the usual sans-serif fonts.
double TextWidth(absl::string_view text, double font_size);

// At spaces where there are any, so that no line is wider than `width`.
std::vector<std::string> Wrapped(absl::string_view text, double font_size, double width);

// Colours are Okabe and Ito's (Color Universal Design, 2008) without yellow, which paper swallows.
inline constexpr int kPlotColours = 7;

struct SeriesStyle {
  std::string name;
  FigureSeries::Mark mark = FigureSeries::Mark::kLine;
  std::string colour;  // a class of PlotStyleSheet
  std::string dash;    // of a line; empty: none
  int shape = 0;       // of points
  bool hollow = false;
  double size = 1;     // of points
  int hatch = 0;       // of bars; 0: none
  bool heavy = false;  // of a reference: when all rhythms of dashes are used up
};

// One a name and mark, in the order of appearance: a series has the same style in every panel.
std::vector<SeriesStyle> StylesOf(const Figure& figure);
// Requires that the series is of the figure that the styles were made of.
const SeriesStyle& StyleOf(const std::vector<SeriesStyle>& styles, const FigureSeries& series);

// The groups of a figure's scatters in ascending order, counted from 0.
using GroupRanks = std::map<int32_t, int>;
GroupRanks RanksOf(const Figure& figure);

// Of a scatter's group by its rank: colours and shapes go round, 112 pairs before one occurs again.
// Scatters of one panel differ by SeriesStyle::hollow and size.
SeriesStyle GroupStyle(int rank, const SeriesStyle& scatter);
inline constexpr int kGroupStyles = 112;

// Commands of an SVG path that draw a point.
std::string PointPath(int shape, Spot centre, double radius);

// Hatch patterns of `styles`; `id_prefix` separates the plots of one page.
std::string HatchDefinitions(absl::string_view id_prefix, const std::vector<SeriesStyle>& styles);
std::string HatchFill(absl::string_view id_prefix, const SeriesStyle& style);

// CSS for everything of class "plot", light and dark.
absl::string_view PlotStyleSheet();

inline constexpr double kLegendFontSize = 13;
inline constexpr double kLegendLine = 17;    // from one line of text to the next
inline constexpr double kLegendSample = 42;  // from a sample of the mark to its text

struct LegendEntry {
  SeriesStyle style;
  bool sample = true;              // false: text alone
  std::vector<std::string> lines;  // wrapped
  Box box;
};

// The named series, the highest end of a line first when there is one panel, and the groups of
// scatters, wrapped to `width`.
std::vector<LegendEntry> LegendOf(const Figure& figure, const std::vector<SeriesStyle>& styles,
                                  double width);

// Shares them out over rows below a plot. Returns the height that they take.
double FlowBelow(Box place, std::vector<LegendEntry>* entries);

// Stacks them beside a plot so that each is as near to the end of its line as the others allow;
// those without an end come last. Requires that `frame` is as high as they are together.
void StackBeside(const FigurePanel& panel, const PlotFrame& frame, double left,
                 std::vector<LegendEntry>* entries);
double StackHeight(const std::vector<LegendEntry>& entries);

std::string DrawLegend(absl::string_view id_prefix, const std::vector<LegendEntry>& entries);
// Thin lines from the ends of lines to entries beside them.
std::string DrawLeaders(const FigurePanel& panel, const PlotFrame& frame,
                        const std::vector<LegendEntry>& entries);

// Wide marks first; points that are not finite are left out. `id_prefix`: of the plot's hatches and
// clip paths. ranks: of the figure.
std::string DrawMarks(const FigurePanel& panel, const PlotFrame& frame,
                      const std::vector<SeriesStyle>& styles, const GroupRanks& ranks,
                      absl::string_view id_prefix, size_t panel_index);

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
