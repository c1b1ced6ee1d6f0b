#include "client/evaluation/report/plot_axes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/evaluation/report/plot_text.h"

namespace privatemail::client {
namespace {

constexpr double kMinorTick = 4;

std::string Text(double x, double y, absl::string_view style_class, absl::string_view text) {
  return absl::StrCat("<text class=\"", style_class, "\" x=\"", Pixels(x), "\" y=\"", Pixels(y),
                      "\">", Escaped(text), "</text>");
}

// Lines of text below each other; `y` is the baseline of the first.
std::string Lines(double x, double y, double line_height, absl::string_view style_class,
                  const std::vector<std::string>& lines) {
  std::string drawn;
  for (const std::string& line : lines) {
    drawn += Text(x, y, style_class, line);
    y += line_height;
  }
  return drawn;
}

// Below the middle of the plot, unless the label is wider and would leave the panel.
double MiddleOfLabel(const PanelPlace& place) {
  double half = 0;
  for (const std::string& line : place.across_label) {
    half = std::max(half, TextWidth(line, kPlotFontSize) / 2);
  }
  const Box& box = place.frame.box;
  const double rightmost = place.left + place.width - half;
  return std::max(place.left + half, std::min(box.left + box.width / 2, rightmost));
}

std::string DrawNames(const PanelPlace& place) {
  constexpr double kNameLine = kPlotLine - 2;
  constexpr double kBelowMiddle = 4.5;  // from the middle of a line to its baseline
  const Box& box = place.frame.box;
  std::string drawn;
  for (size_t i = 0; i < place.names.size(); ++i) {
    const double middle = place.frame.Upward(static_cast<double>(i));
    const double above = kNameLine * static_cast<double>(place.names[i].size() - 1) / 2;
    drawn += Lines(box.left - 10, middle - above + kBelowMiddle, kNameLine, "end", place.names[i]);
  }
  return drawn;
}

}  // namespace

std::string DrawGrid(const PanelPlace& place) {
  const Box& box = place.frame.box;
  std::string path;
  for (const AxisTick& tick : place.across) {
    if (tick.text.empty()) continue;
    absl::StrAppend(&path, "M", Pixels(place.frame.Across(tick.value)), " ", Pixels(box.top), "v",
                    Pixels(box.height));
  }
  for (const AxisTick& tick : place.upward) {
    if (tick.text.empty()) continue;
    absl::StrAppend(&path, "M", Pixels(box.left), " ", Pixels(place.frame.Upward(tick.value)), "h",
                    Pixels(box.width));
  }
  return absl::StrCat("<path class=\"grid\" d=\"", path, "\"/>\n");
}

std::string DrawAxes(const PanelPlace& place) {
  const Box& box = place.frame.box;
  std::string lines = absl::StrCat("M", Pixels(box.left), " ", Pixels(box.top), "v",
                                   Pixels(box.height), "h", Pixels(box.width));
  std::string texts;
  for (const AxisTick& tick : place.across) {
    const double x = place.frame.Across(tick.value);
    if (tick.text.empty()) {
      absl::StrAppend(&lines, "M", Pixels(x), " ", Pixels(box.bottom()), "v", Pixels(-kMinorTick));
    } else {
      texts += Text(x, box.bottom() + 18, "middle small", tick.text);
    }
  }
  for (const AxisTick& tick : place.upward) {
    const double y = place.frame.Upward(tick.value);
    if (tick.text.empty()) {
      absl::StrAppend(&lines, "M", Pixels(box.left), " ", Pixels(y), "h", Pixels(kMinorTick));
    } else {
      texts += Text(box.left - 8, y + 4, "end small", tick.text);
    }
  }
  texts += DrawNames(place);
  double y = place.top + 13;
  texts += Lines(place.left, y, kPlotLine, "strong", place.title);
  // Panels of a row have their plots at one height, whether their titles take one line or two.
  y = box.top - kHeadGap - kPlotLine * static_cast<double>(place.upward_label.size()) + 14;
  texts += Lines(place.left, y, kPlotLine, "label", place.upward_label);
  texts += Lines(MiddleOfLabel(place), box.bottom() + 40, kPlotLine, "middle", place.across_label);
  return absl::StrCat("<path class=\"axis\" d=\"", lines, "\"/>\n", texts, "\n");
}

}  // namespace privatemail::client
