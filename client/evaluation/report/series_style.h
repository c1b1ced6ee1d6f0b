// What tells one series from another: never the colour alone.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_SERIES_STYLE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_SERIES_STYLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/evaluation/figure.h"
#include "client/evaluation/report/plot_frame.h"

namespace privatemail::client {

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

// What hatched bars of `styles` refer to. `id_prefix` keeps one plot's apart from another's.
std::string HatchDefinitions(absl::string_view id_prefix, const std::vector<SeriesStyle>& styles);
std::string HatchFill(absl::string_view id_prefix, const SeriesStyle& style);

// CSS for everything of class "plot", light and dark.
absl::string_view PlotStyleSheet();

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_SERIES_STYLE_H_
