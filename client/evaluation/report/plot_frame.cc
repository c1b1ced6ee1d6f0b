#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/evaluation/report/plot.h"
#include "common/base/printable.h"

namespace privatemail::client {
namespace {

constexpr int kRoundedTo = 6;               // ticks that decide what is a round number
constexpr double kNarrowest = 1e-9;         // of the values' size: less would be rounding errors
constexpr double kSmallestLength = 1e-290;  // above where doubles lose digits
constexpr double kHair = 1e-9;              // of a step, for what is computed and not given

double PlaceOn(const AxisRange& range, double value) {
  if (!range.logarithmic) return (value - range.low) / (range.high - range.low);
  // Logarithms and not one of a quotient, which may be too large.
  return (std::log(value) - std::log(range.low)) / (std::log(range.high) - std::log(range.low));
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

void Widen(AxisRange* range) {
  if (range->logarithmic) {
    if (range->high > range->low * (1 + kNarrowest)) return;
    const double middle = range->low;
    range->low = middle / 2;
    range->high = middle * 2;
    return;
  }
  const double size = std::max(std::abs(range->low), std::abs(range->high));
  if (range->high - range->low > std::max(kNarrowest * size, kSmallestLength)) return;
  const double half = size > kSmallestLength ? size / 2 : 1;
  range->low -= half;
  range->high += half;
}

AxisRange Unrolled(const AxisRange& range) {
  if (!range.logarithmic) return range;
  return {std::log10(range.low), std::log10(range.high), false};
}

AxisRange Rolled(const AxisRange& exponents, bool logarithmic) {
  if (!logarithmic) return exponents;
  return {std::pow(10, exponents.low), std::pow(10, exponents.high), true};
}

AxisRange Rounded(const AxisRange& range) {
  if (range.logarithmic) {
    AxisRange decades = Unrolled(range);
    decades.low = std::floor(decades.low + kHair);
    decades.high = std::ceil(decades.high - kHair);
    return Rolled(decades, true);
  }
  const double step = RoundStep(range.high - range.low, kRoundedTo);
  return {std::floor(range.low / step + kHair) * step, std::ceil(range.high / step - kHair) * step,
          false};
}

AxisRange Padded(const AxisRange& range) {
  AxisRange linear = Unrolled(range);
  const double padding = (linear.high - linear.low) / 20;
  linear.low -= padding;
  linear.high += padding;
  return Rolled(linear, range.logarithmic);
}

std::string TickText(double value, double step, double largest) {
  constexpr double kLargestPlain = 1e6;
  constexpr double kSmallestPlain = 1e-5;
  const int exponent = static_cast<int>(std::floor(std::log10(step) + kHair));
  if (largest < kLargestPlain && step >= kSmallestPlain) {
    return FixedText(value, std::max(0, -exponent));
  }
  if (value == 0) return "0";
  const int digits = static_cast<int>(std::floor(std::log10(std::abs(value)) + kHair)) - exponent;
  return NumberText(value, std::max(1, digits + 1));
}

std::vector<AxisTick> LinearTicks(const AxisRange& range, int most) {
  const double step = RoundStep(range.high - range.low, most);
  // At most some 1e9 in size: no range is narrower than kNarrowest of its values.
  const auto first = static_cast<int64_t>(std::ceil(range.low / step - kHair));
  const auto last = static_cast<int64_t>(std::floor(range.high / step + kHair));
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  std::vector<AxisTick> ticks;
  for (int64_t i = first; i <= last; ++i) {
    const double value = static_cast<double>(i) * step;
    ticks.push_back({value, TickText(value, step, largest)});
  }
  return ticks;
}

std::string DecadeText(int factor, int exponent) {
  constexpr int kLargestPlain = 4;
  constexpr int kSmallestPlain = -3;
  const double value = factor * std::pow(10, exponent);
  if (exponent <= kLargestPlain && exponent >= kSmallestPlain) {
    return FixedText(value, std::max(0, -exponent));
  }
  return factor == 1 ? PowerOfTen(exponent) : NumberText(value, 1);
}

// 1, 2, 5, 10, ... or 1, 10, 100, ... or every so many decades, with what lies between.
std::vector<AxisTick> DecadeTicks(const AxisRange& range, bool with_2_and_5, int decades_a_tick) {
  constexpr double kWidestWithMinor = 1e7;
  const AxisRange decades = Unrolled(range);
  const int first = static_cast<int>(std::floor(decades.low + kHair));
  const int last = static_cast<int>(std::floor(decades.high + kHair));
  std::vector<AxisTick> ticks;
  for (int exponent = first; exponent <= last; ++exponent) {
    for (int factor = 1; factor < 10; ++factor) {
      const double value = factor * std::pow(10, exponent);
      if (value < range.low * (1 - kHair) || value > range.high * (1 + kHair)) continue;
      const bool named = with_2_and_5 ? factor == 1 || factor == 2 || factor == 5
                                      : factor == 1 && exponent % decades_a_tick == 0;
      if (named) {
        ticks.push_back({value, DecadeText(factor, exponent)});
      } else if (decades_a_tick == 1 && range.high / range.low <= kWidestWithMinor) {
        ticks.push_back({value, ""});
      }
    }
  }
  return ticks;
}

int Named(const std::vector<AxisTick>& ticks) {
  return static_cast<int>(std::count_if(ticks.begin(), ticks.end(),
                                        [](const AxisTick& tick) { return !tick.text.empty(); }));
}

using Mark = FigureSeries::Mark;

struct Needs {
  std::vector<double> x;
  std::vector<double> y;
  bool bars = false;
  bool scatter = false;
};

Needs Collect(const Figure& figure) {
  Needs needs;
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      needs.bars |= series.mark == Mark::kBars;
      needs.scatter |= series.mark == Mark::kScatter;
      // One point of a reference is a level: it lies nowhere along x.
      const bool level = series.mark == Mark::kReference && series.points.size() == 1;
      for (const FigurePoint& point : series.points) {
        if (!level) needs.x.push_back(point.x);
        needs.y.insert(needs.y.end(), {point.y, point.low, point.high});
      }
    }
  }
  return needs;
}

// Far beyond an end that is given a coordinate would be no number that SVG knows.
double NearPlace(const AxisRange& range, double value) {
  constexpr double kFar = 100;  // plots
  return std::clamp(PlaceOn(range, value), -kFar, kFar);
}

constexpr absl::string_view kMinus = "\u2212";

std::string ValidUtf8(absl::string_view text) {
  const nlohmann::json quoted = std::string(text);
  const auto replace = nlohmann::json::error_handler_t::replace;
  return nlohmann::json::parse(quoted.dump(-1, ' ', false, replace)).get<std::string>();
}

bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

size_t Characters(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), BeginsCharacter));
}

size_t BytesOf(absl::string_view text, size_t count) {
  size_t at = 0;
  while (at < text.size() && (count > 0 || !BeginsCharacter(text[at]))) {
    if (BeginsCharacter(text[at])) --count;
    ++at;
    while (at < text.size() && !BeginsCharacter(text[at])) ++at;
  }
  return at;
}

std::string Formatted(double value, std::chars_format format, int precision) {
  char text[400];  // 1e250 has 251 digits before the point
  return std::string(text, std::to_chars(text, text + sizeof(text), value, format, precision).ptr);
}

std::string WithMinus(absl::string_view number) {
  return absl::StrReplaceAll(number, {{"-", kMinus}});
}

// How far an axis reaches beyond the values on it.
enum class AxisFit {
  kTight,    // not at all
  kRounded,  // to the next round numbers
  kPadded,   // by a twentieth of its length
};

AxisRange FitRange(const FigureAxis& axis, const std::vector<double>& values, AxisFit fit) {
  AxisRange range = {axis.logarithmic ? 1.0 : 0.0, axis.logarithmic ? 10.0 : 1.0, axis.logarithmic};
  bool any = false;
  for (const double value : values) {
    if (!std::isfinite(value) || (axis.logarithmic && !(value >= kSmallestLogarithmic))) continue;
    range.low = any ? std::min(range.low, value) : value;
    range.high = any ? std::max(range.high, value) : value;
    any = true;
  }
  Widen(&range);
  if (fit == AxisFit::kRounded) range = Rounded(range);
  if (fit == AxisFit::kPadded) range = Padded(range);
  if (!std::isnan(axis.low)) range.low = axis.low;
  if (!std::isnan(axis.high)) range.high = axis.high;
  // Points that all lie beyond an end that is given do not decide about the other.
  if (!(range.low < range.high)) {
    (std::isnan(axis.low) ? range.low : range.high) = std::isnan(axis.low) ? axis.high : axis.low;
  }
  Widen(&range);
  return range;
}

}  // namespace

std::vector<AxisTick> AxisTicks(const AxisRange& range, int most) {
  most = std::max(most, 3);
  if (!range.logarithmic) return LinearTicks(range, most);
  std::vector<AxisTick> fine = DecadeTicks(range, true, 1);
  std::vector<AxisTick> coarse = DecadeTicks(range, false, 1);
  if (Named(fine) < 2) return LinearTicks({range.low, range.high, false}, most);
  if (Named(fine) <= most || Named(coarse) < 2) return fine;
  if (Named(coarse) <= most) return coarse;
  return DecadeTicks(range, false, (Named(coarse) + most - 1) / most);
}

PlotScales FitScales(const Figure& figure) {
  Needs needs = Collect(figure);
  if (needs.bars && !figure.y.logarithmic) needs.y.push_back(0);
  PlotScales scales;
  scales.categories = !figure.x.categories.empty();
  scales.x = scales.categories
                 ? AxisRange{-0.5, static_cast<double>(figure.x.categories.size()) - 0.5, false}
                 : FitRange(figure.x, needs.x, needs.scatter ? AxisFit::kPadded : AxisFit::kTight);
  scales.y = FitRange(figure.y, needs.y, needs.scatter ? AxisFit::kPadded : AxisFit::kRounded);
  return scales;
}

double PlotFrame::Across(double value) const {
  return box.left + box.width * NearPlace(scales.across(), value);
}

double PlotFrame::Upward(double value) const {
  const double place = NearPlace(scales.upward(), value);
  return box.top + box.height * (scales.categories ? place : 1 - place);
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

std::string Pixels(double value) {
  std::string text = Formatted(value, std::chars_format::fixed, 1);
  if (text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string NumberText(double value, int digits) {
  if (std::isnan(value)) return "\u2013";
  if (std::isinf(value)) return absl::StrCat(value < 0 ? kMinus : "", "\u221e");
  const std::string general = Formatted(value, std::chars_format::general, digits);
  const std::pair<std::string, std::string> parts = absl::StrSplit(general, 'e');
  if (parts.second.empty()) return WithMinus(general);
  int exponent = 0;
  if (!absl::SimpleAtoi(parts.second, &exponent)) return WithMinus(general);
  if (parts.first == "1") return PowerOfTen(exponent);
  return absl::StrCat(WithMinus(parts.first), "\u00d7", PowerOfTen(exponent));
}

std::string FixedText(double value, int decimals) {
  std::string text = Formatted(value, std::chars_format::fixed, decimals);
  if (text.find_first_not_of("-0.") == std::string::npos && text[0] == '-') text.erase(0, 1);
  return WithMinus(text);
}

double TextWidth(absl::string_view text, double font_size) {
  constexpr double kMeanCharacter = 0.6;  // of the font size
  return kMeanCharacter * font_size * static_cast<double>(Characters(text));
}

std::vector<std::string> Wrapped(absl::string_view text, double font_size, double width) {
  const double fitting = width / TextWidth("x", font_size);
  const auto most = static_cast<size_t>(std::max(1.0, std::floor(fitting)));
  std::vector<std::string> lines;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!lines.empty() && Characters(lines.back()) + 1 + Characters(word) <= most) {
      absl::StrAppend(&lines.back(), " ", word);
      continue;
    }
    while (Characters(word) > most) {
      const size_t bytes = BytesOf(word, most);
      lines.emplace_back(word.substr(0, bytes));
      word.remove_prefix(bytes);
    }
    lines.emplace_back(word);
  }
  if (lines.empty()) lines.emplace_back();
  return lines;
}

}  // namespace privatemail::client
