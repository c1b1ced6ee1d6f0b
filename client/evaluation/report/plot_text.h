// Text and numbers on their way into SVG and HTML.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_TEXT_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace privatemail::client {

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

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_PLOT_TEXT_H_
