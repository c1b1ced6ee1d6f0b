#include "client/evaluation/figure_parts.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace privatemail::client {

namespace {

// BandOfScores'.
constexpr char kAllEqual[] =
    "where scores are all 0 or all 1, what it would be had one target come out otherwise";

}  // namespace

std::vector<Metric> MetricsAt(int64_t k) {
  return {{.key = "hit",
           .title = absl::StrCat("Recall@", k, " (the papers'): at least one of the ", k,
                                 " has the target's class"),
           .name = absl::StrCat("recall@", k)},
          {.key = "class_share",
           .title =
               absl::StrCat("Precision@", k, ": share of the ", k, " that have the target's class"),
           .name = absl::StrCat("precision@", k)},
          {.key = "fidelity",
           .title = absl::StrCat("Fidelity@", k, ": share of the non-private top ", k,
                                 " that came back"),
           .name = absl::StrCat("fidelity@", k)}};
}

FigureAxis ShareAxis(std::string label) {
  return {.label = std::move(label), .logarithmic = false, .low = 0, .high = 1, .categories = {}};
}

FigureAxis EpsilonAxis() {
  FigureAxis axis;
  axis.label = "epsilon of one release (smaller is more private)";
  axis.logarithmic = true;
  return axis;
}

FigureSeries CurveOver(std::string name, const std::vector<double>& epsilons,
                       absl::FunctionRef<double(double epsilon)> height) {
  FigureSeries series{
      .name = std::move(name), .mark = FigureSeries::Mark::kReference, .points = {}};
  for (const double epsilon : epsilons)
    series.points.push_back({.x = epsilon, .y = height(epsilon)});
  if (epsilons.size() < 2) return series;
  constexpr int kSteps = 96;
  const double from = std::log(epsilons.front());
  const double to = std::log(epsilons.back());
  for (int i = 0; i <= kSteps; ++i) {
    // Both ends exactly.
    const double epsilon = i == 0        ? epsilons.front()
                           : i == kSteps ? epsilons.back()
                                         : std::exp(from + (to - from) * i / kSteps);
    series.curve.push_back({.x = epsilon, .y = height(epsilon)});
  }
  return series;
}

FigurePoint PointOf(double x, const Band& band) {
  return {.x = x, .y = band.mean, .low = band.low, .high = band.high};
}

Band BandAt(const FigurePoint& point) {
  return {.mean = point.y, .low = point.low, .high = point.high};
}

std::string ScoreBandsInWords(int64_t splits) {
  if (splits == 1) {
    return absl::StrCat("Bands: 95 % bootstrap over the targets of the one split (", kAllEqual,
                        "). They say nothing of other splits or other data.");
  }
  return absl::StrCat("Bands: 95 % Student t over the means of ", splits,
                      " splits of this data set (where these are equal, bootstrap over targets; ",
                      kAllEqual, "). They say nothing of other data.");
}

std::string Short(double value) {
  return std::isnan(value) ? "not known" : absl::StrFormat("%.3g", value);
}

std::string Counted(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string WithBand(const Band& band) {
  if (std::isnan(band.mean)) return Short(band.mean);
  return absl::StrCat(Short(band.mean), " (", Short(band.low), " to ", Short(band.high), ")");
}

}  // namespace privatemail::client
