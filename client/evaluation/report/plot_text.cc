#include "client/evaluation/report/plot_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/printable.h"

namespace privatemail::client {
namespace {

constexpr absl::string_view kMinus = "\u2212";

// With what is not UTF-8 replaced, as the writer of JSON does it.
std::string ValidUtf8(absl::string_view text) {
  const nlohmann::json quoted = std::string(text);
  const auto replace = nlohmann::json::error_handler_t::replace;
  return nlohmann::json::parse(quoted.dump(-1, ' ', false, replace)).get<std::string>();
}

bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

size_t Characters(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), BeginsCharacter));
}

// Bytes of the first `count` characters.
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

}  // namespace

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
