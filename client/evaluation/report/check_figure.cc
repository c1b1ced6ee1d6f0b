#include "client/evaluation/report/check_figure.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

constexpr size_t kShownBytes = 80;

absl::Status Wrong(absl::string_view field, absl::string_view expected, absl::string_view actual) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be ", expected, ", but is ", actual));
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", TruncateUtf8(Printable(text), kShownBytes), "\"");
}

absl::Status CheckDrawable(const std::string& field, const FigureAxis& axis, double value) {
  if (!std::isfinite(value)) return absl::OkStatus();
  if (axis.logarithmic && !(value > 0)) {
    return Wrong(field, "positive on a logarithmic axis", FormatExact(value));
  }
  if (axis.logarithmic && !(value >= kSmallestLogarithmic)) {
    return Wrong(field, "at least 1e-250 on a logarithmic axis", FormatExact(value));
  }
  if (!(std::abs(value) <= kLargestDrawn)) {
    return Wrong(field, "at most 1e250 in size", FormatExact(value));
  }
  return absl::OkStatus();
}

absl::Status CheckAxis(const std::string& field, const FigureAxis& axis) {
  PM_RETURN_IF_ERROR(CheckDrawable(field + ".low", axis, axis.low));
  PM_RETURN_IF_ERROR(CheckDrawable(field + ".high", axis, axis.high));
  for (const double end : {axis.low, axis.high}) {
    if (std::isinf(end)) return Wrong(field, "an axis with finite ends", "one with an infinite");
  }
  if (axis.low >= axis.high) {  // no NaN: each may be left to the points
    return Wrong(field + ".low", absl::StrCat("below ", field, ".high, ", FormatExact(axis.high)),
                 FormatExact(axis.low));
  }
  if (axis.logarithmic && !axis.categories.empty()) {
    return Wrong(field, "logarithmic or have categories", "both");
  }
  return absl::OkStatus();
}

absl::Status CheckCategory(const std::string& field, const FigureAxis& axis, double x) {
  const auto count = static_cast<double>(axis.categories.size());
  if (x >= 0 && x < count && std::trunc(x) == x) return absl::OkStatus();
  return Wrong(field, absl::StrCat("the index of one of ", axis.categories.size(), " categories"),
               FormatExact(x));
}

absl::Status CheckPoint(const std::string& field, const Figure& figure, const FigurePoint& point) {
  if (figure.x.categories.empty()) {
    PM_RETURN_IF_ERROR(CheckDrawable(field + ".x", figure.x, point.x));
  } else {
    PM_RETURN_IF_ERROR(CheckCategory(field + ".x", figure.x, point.x));
  }
  PM_RETURN_IF_ERROR(CheckDrawable(field + ".y", figure.y, point.y));
  PM_RETURN_IF_ERROR(CheckDrawable(field + ".high", figure.y, point.high));
  FigureAxis without_logarithm = figure.y;
  without_logarithm.logarithmic = false;
  return CheckDrawable(field + ".low", without_logarithm, point.low);
}

absl::Status CheckSeries(const std::string& field, const Figure& figure,
                         const FigureSeries& series) {
  if (series.mark == FigureSeries::Mark::kBars && figure.x.categories.empty()) {
    return Wrong(field, "drawn over categories when it is bars", "without x.categories");
  }
  for (size_t i = 0; i < series.points.size(); ++i) {
    PM_RETURN_IF_ERROR(
        CheckPoint(absl::StrCat(field, " points[", i, "]"), figure, series.points[i]));
  }
  for (size_t i = 0; i < series.curve.size(); ++i) {
    PM_RETURN_IF_ERROR(CheckPoint(absl::StrCat(field, " curve[", i, "]"), figure, series.curve[i]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFigureId(absl::string_view field, const std::string& id) {
  const bool fits = !id.empty() && id.size() <= kShownBytes &&
                    std::all_of(id.begin(), id.end(), [](unsigned char character) {
                      return absl::ascii_isalnum(character) || character == '-';
                    });
  if (fits) return absl::OkStatus();
  return Wrong(field, "1 to 80 letters, digits and '-'", Quoted(id));
}

absl::Status CheckFigure(const Figure& figure) {
  PM_RETURN_IF_ERROR(CheckFigureId("figure id", figure.id));
  const std::string name = absl::StrCat("figure ", figure.id);
  PM_RETURN_IF_ERROR(CheckAxis(name + " x", figure.x));
  PM_RETURN_IF_ERROR(CheckAxis(name + " y", figure.y));
  if (!figure.y.categories.empty()) {
    return Wrong(name + " y.categories", "empty: only x counts categories", "not");
  }
  for (size_t i = 0; i < figure.panels.size(); ++i) {
    for (const FigureSeries& series : figure.panels[i].series) {
      PM_RETURN_IF_ERROR(CheckSeries(
          absl::StrCat(name, " panels[", i, "] series ", Quoted(series.name)), figure, series));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> TakeOutUndrawable(std::vector<Figure>* figures) {
  std::vector<std::string> reasons;
  std::erase_if(*figures, [&](const Figure& figure) {
    const absl::Status status = CheckFigure(figure);
    if (!status.ok()) reasons.emplace_back(status.message());
    return !status.ok();
  });
  return reasons;
}

}  // namespace privatemail::client
