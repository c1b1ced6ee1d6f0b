// What a figure must be before it can be drawn.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_CHECK_FIGURE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_CHECK_FIGURE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/evaluation/figure.h"

namespace privatemail::client {

// Beyond this the ends of an axis might not be numbers.
inline constexpr double kLargestDrawn = 1e250;
// The same for an axis whose unit is a factor.
inline constexpr double kSmallestLogarithmic = 1e-250;

// INVALID_ARGUMENT: an id that is no part of a file name. `field` names it.
absl::Status CheckFigureId(absl::string_view field, const std::string& id);

// INVALID_ARGUMENT naming the figure and the place: an id as above; an axis whose low is not below
// its high; a finite value below kSmallestLogarithmic on a logarithmic axis, or one beyond
// kLargestDrawn; y with categories; bars without categories; an x that is none of the categories.
// NaN and infinite values are allowed: they are left out of plots and stand in tables. So is the
// lower end of a band at 0 or less on a logarithmic axis: the band then reaches the axis's end.
absl::Status CheckFigure(const Figure& figure);

// Takes out what CheckFigure refuses and returns why, one message each.
std::vector<std::string> TakeOutUndrawable(std::vector<Figure>* figures);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_CHECK_FIGURE_H_
