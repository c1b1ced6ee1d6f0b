#include "client/evaluation/report/plot_bars.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/evaluation/report/plot_text.h"

namespace privatemail::client {
namespace {

// Of one bar, from top to bottom, in units of a category.
struct Strip {
  double first = 0;
  double last = 0;
  double middle() const { return (first + last) / 2; }
};

Strip StripOf(size_t series, size_t count) {
  constexpr double kUsed = 0.72;  // of a category
  const double width = kUsed / static_cast<double>(count);
  const double first = -kUsed / 2 + width * static_cast<double>(series);
  constexpr double kBetween = 0.03;
  return {first + kBetween / 2, first + width - kBetween / 2};
}

// Three digits of the longest bar, and as many behind the point for all, as in a column.
std::string ValueText(double value, const AxisRange& range) {
  constexpr int kMostDecimals = 6;
  constexpr int kMostZeros = 3;
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  const int decimals = 2 - static_cast<int>(std::floor(std::log10(largest)));
  if (decimals < -kMostZeros || decimals > kMostDecimals) return NumberText(value, 3);
  return FixedText(value, std::max(0, decimals));
}

std::string DrawBar(const FigurePoint& point, const Strip& strip, const PlotFrame& frame,
                    const SeriesStyle& style, absl::string_view id_prefix) {
  constexpr double kTextGap = 7;
  const AxisRange& y = frame.scales.y;
  const double from = frame.Across(std::clamp(0.0, y.low, y.high));
  const double to = frame.Across(std::clamp(point.y, y.low, y.high));
  const double top = frame.Upward(point.x + strip.first);
  const double bottom = frame.Upward(point.x + strip.last);
  std::string drawn =
      absl::StrCat("<rect class=\"bar ", style.colour, "\"", HatchFill(id_prefix, style), " x=\"",
                   Pixels(std::min(from, to)), "\" y=\"", Pixels(top), "\" width=\"",
                   Pixels(std::abs(to - from)), "\" height=\"", Pixels(bottom - top), "\"/>");
  double text_left = std::max(from, to) + kTextGap;
  if (std::isfinite(point.low) && std::isfinite(point.high)) {
    FigurePoint shifted = point;
    shifted.x += strip.middle();
    absl::StrAppend(&drawn, "<path class=\"whisker\" d=\"", WhiskerPath(frame, shifted), "\"/>");
    text_left = std::max(text_left, frame.Across(std::min(point.high, y.high)) + kTextGap);
  }
  absl::StrAppend(&drawn, "<text class=\"small strong\" x=\"", Pixels(text_left), "\" y=\"",
                  Pixels((top + bottom) / 2 + 4), "\">", ValueText(point.y, y), "</text>\n");
  return drawn;
}

}  // namespace

std::string WhiskerPath(const PlotFrame& frame, const FigurePoint& point) {
  constexpr double kCap = 3.5;
  const AxisRange& y = frame.scales.y;
  const bool lying = frame.scales.categories;
  std::string path;
  Spot ends[2] = {frame.At(point.x, std::clamp(point.low, y.low, y.high)),
                  frame.At(point.x, std::clamp(point.high, y.low, y.high))};
  for (const Spot& end : ends) {
    absl::StrAppend(&path, "M", Pixels(end.x - (lying ? 0 : kCap)), " ",
                    Pixels(end.y - (lying ? kCap : 0)), lying ? "v" : "h", Pixels(2 * kCap));
  }
  return absl::StrCat(path, "M", Pixels(ends[0].x), " ", Pixels(ends[0].y), "L", Pixels(ends[1].x),
                      " ", Pixels(ends[1].y));
}

std::string DrawBars(const FigurePanel& panel, const PlotFrame& frame,
                     const std::vector<SeriesStyle>& styles, absl::string_view id_prefix) {
  std::vector<const FigureSeries*> bars;
  for (const FigureSeries& series : panel.series) {
    if (series.mark == FigureSeries::Mark::kBars) bars.push_back(&series);
  }
  std::string drawn;
  for (size_t i = 0; i < bars.size(); ++i) {
    const SeriesStyle& style = StyleOf(styles, *bars[i]);
    for (const FigurePoint& point : bars[i]->points) {
      if (!std::isfinite(point.y)) continue;
      drawn += DrawBar(point, StripOf(i, bars.size()), frame, style, id_prefix);
    }
  }
  return drawn;
}

}  // namespace privatemail::client
