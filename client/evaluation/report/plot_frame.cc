#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/evaluation/report/plot.h"
#include "common/base/printable.h"

namespace privatemail::client {
namespace {

constexpr double kNarrowest = 1e-9;         // of the values' size: less would be rounding errors
constexpr double kSmallestLength = 1e-290;  // above where doubles lose digits
constexpr double kHair = 1e-9;              // of a step, for what is computed and not given
constexpr absl::string_view kMinus = "\u2212";

// -infinity for what is not above 0 on a logarithmic axis.
double OnLine(double value, bool logarithmic) {
  return logarithmic ? std::log10(std::max(value, 0.0)) : value;
}

double PlaceOn(const AxisRange& range, double value) {
  const double place = (OnLine(value, range.logarithmic) - range.low) / (range.high - range.low);
  return std::clamp(place, 0.0, 1.0);
}

std::string PowerOfTen(int exponent) {
  const std::string digits = absl::StrReplaceAll(absl::StrCat(exponent), {{"-", "\u207b"},
                                                                          {"0", "\u2070"},
                                                                          {"1", "\u00b9"},
                                                                          {"2", "\u00b2"},
                                                                          {"3", "\u00b3"},
                                                                          {"4", "\u2074"},
                                                                          {"5", "\u2075"},
                                                                          {"6", "\u2076"},
                                                                          {"7", "\u2077"},
                                                                          {"8", "\u2078"},
                                                                          {"9", "\u2079"}});
  return absl::StrCat("10", digits);
}

// The smallest of 1, 2 and 5 times a power of ten that divides the range into `most` parts or less.
double RoundStep(double length, int most) {
  const double power = std::pow(10, std::floor(std::log10(length / most)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (length <= most * factor * power * (1 + kHair)) return factor * power;
  }
  return 10 * power;
}

AxisTick TickAt(double value) { return {value, NumberText(value, 6)}; }

std::vector<AxisTick> LinearTicks(double low, double high, int most) {
  const double step = RoundStep(high - low, most);
  // At most some 1e9 in size: no range is narrower than kNarrowest of its values.
  const auto first = static_cast<int64_t>(std::ceil(low / step - kHair));
  const auto last = static_cast<int64_t>(std::floor(high / step + kHair));
  std::vector<AxisTick> ticks;
  for (int64_t i = first; i <= last; ++i) ticks.push_back(TickAt(static_cast<double>(i) * step));
  return ticks;
}

// 1, 2, 5, 10, ... where there is room, or every so many decades.
std::vector<AxisTick> DecadeTicks(const AxisRange& range, int most) {
  const double decades = range.high - range.low;
  const int step = std::max(1, static_cast<int>(std::ceil(decades / most)));
  std::vector<double> factors = {1};
  if (3 * decades <= most) factors = {1, 2, 5};
  std::vector<AxisTick> ticks;
  for (int exponent = static_cast<int>(std::floor(range.low)); exponent <= range.high + kHair;
       ++exponent) {
    if (exponent % step != 0) continue;
    for (const double factor : factors) {
      const double place = exponent + std::log10(factor);
      if (place < range.low - kHair || place > range.high + kHair) continue;
      ticks.push_back(TickAt(factor * std::pow(10, exponent)));
    }
  }
  return ticks;
}

// padding: beyond the values, in lengths of the axis.
AxisRange FitRange(const FigureAxis& axis, const std::vector<double>& values, double padding) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : values) {
    const double place = OnLine(value, axis.logarithmic);
    if (!std::isfinite(place)) continue;
    low = std::min(low, place);
    high = std::max(high, place);
  }
  if (low > high) {  // no values
    low = 0;
    high = 1;
  }
  const double beyond = padding * (high - low);
  low = std::isnan(axis.low) ? low - beyond : OnLine(axis.low, axis.logarithmic);
  high = std::isnan(axis.high) ? high + beyond : OnLine(axis.high, axis.logarithmic);
  // Points that all lie beyond an end that is given do not decide about the other.
  if (low > high) (std::isnan(axis.low) ? low : high) = std::isnan(axis.low) ? high : low;
  const double size = std::max(std::abs(low), std::abs(high));
  if (high - low <= std::max(kNarrowest * size, kSmallestLength)) {
    const double half = size > kSmallestLength ? size / 2 : 1;
    low -= half;
    high += half;
  }
  return {low, high, axis.logarithmic};
}

std::string ValidUtf8(absl::string_view text) {
  const nlohmann::json quoted = std::string(text);
  const auto replace = nlohmann::json::error_handler_t::replace;
  return nlohmann::json::parse(quoted.dump(-1, ' ', false, replace)).get<std::string>();
}

}  // namespace

std::vector<AxisTick> AxisTicks(const AxisRange& range, int most) {
  most = std::max(most, 3);
  if (!range.logarithmic) return LinearTicks(range.low, range.high, most);
  std::vector<AxisTick> ticks = DecadeTicks(range, most);
  if (ticks.size() > 1) return ticks;
  return LinearTicks(std::pow(10, range.low), std::pow(10, range.high), most);
}

bool IsLevel(const FigureSeries& series) {
  return series.mark == FigureSeries::Mark::kReference && series.points.size() == 1;
}

PlotScales FitScales(const Figure& figure) {
  std::vector<double> x;
  std::vector<double> y;
  bool scatter = false;
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      scatter |= series.mark == FigureSeries::Mark::kScatter;
      if (series.mark == FigureSeries::Mark::kBars) y.push_back(0);
      for (const FigurePoint& point : series.points) {
        if (!IsLevel(series)) x.push_back(point.x);
        y.insert(y.end(), {point.y, point.low, point.high});
      }
    }
  }
  constexpr double kPadding = .05;
  PlotScales scales;
  scales.categories = !figure.x.categories.empty();
  scales.x = FitRange(figure.x, x, scatter ? kPadding : 0);
  scales.y = FitRange(figure.y, y, kPadding);
  if (scales.categories) {
    scales.x = {-0.5, static_cast<double>(figure.x.categories.size()) - 0.5, false};
  }
  return scales;
}

double PlotFrame::Across(double value) const {
  return left + width * PlaceOn(scales.across(), value);
}

double PlotFrame::Upward(double value) const {
  const double place = PlaceOn(scales.upward(), value);
  return top + height * (scales.categories ? place : 1 - place);
}

Spot PlotFrame::At(double x, double y) const {
  if (scales.categories) return {Across(y), Upward(x)};
  return {Across(x), Upward(y)};
}

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(Printable(ValidUtf8(text)), {{"&", "&amp;"},
                                                          {"<", "&lt;"},
                                                          {">", "&gt;"},
                                                          {"\"", "&quot;"},
                                                          {"'", "&#39;"},
                                                          {"\uFFFE", "\uFFFD"},
                                                          {"\uFFFF", "\uFFFD"}});
}

std::string Pixels(double value) { return absl::StrCat(std::round(10 * value) / 10); }

std::string Pixels(Spot spot) { return absl::StrCat(Pixels(spot.x), " ", Pixels(spot.y)); }

std::string NumberText(double value, int digits) {
  if (std::isnan(value)) return "\u2013";
  if (std::isinf(value)) return absl::StrCat(value < 0 ? kMinus : "", "\u221e");
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(absl::StrFormat("%.*g", digits, value), 'e');
  const std::string number = absl::StrReplaceAll(parts.first, {{"-", kMinus}});
  int exponent = 0;
  if (!absl::SimpleAtoi(parts.second, &exponent)) return number;
  if (number == "1") return PowerOfTen(exponent);
  return absl::StrCat(number, "\u00d7", PowerOfTen(exponent));
}

double TextWidth(absl::string_view text) {
  constexpr double kMeanCharacter = 0.6;  // of the font size
  const auto characters = std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
  });
  return kMeanCharacter * kFontSize * static_cast<double>(characters);
}

std::vector<std::string> Wrapped(absl::string_view text, double width) {
  std::vector<std::string> lines;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!lines.empty() && TextWidth(absl::StrCat(lines.back(), " ", word)) <= width) {
      absl::StrAppend(&lines.back(), " ", word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

}  // namespace privatemail::client
