#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/sweep.h"
#include "client/privacy/mechanisms/bounded_gaussian_calibration.h"
#include "client/privacy/mechanisms/calibration.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

const std::vector<double> kEpsilons = {.1, .2, .5, 1, 1.5, 2, 2.5, 3};
const std::vector<double> kWidths = {10, 8};
const std::vector<double> kSensitivities = {4, 2};  // of each value
const double kSensitivity = std::sqrt(20);

struct Law {
  const char* key;
  const char* name;
};
constexpr Law kLaws[] = {{"generalised", "generalised Gaussian, as published"},
                         {"printed", "bounded, as published"},
                         {"exact", "bounded, exact"},
                         {"classical", "unbounded, as published (proven below epsilon 1)"},
                         {"analytic", "unbounded, analytic"}};

double GeneralisedVariance(double epsilon) {
  double sum = 0;
  for (size_t i = 0; i < kWidths.size(); ++i) {
    sum += (2 * kWidths[i] + kSensitivities[i]) * kSensitivities[i];
  }
  return sum / epsilon;
}

absl::StatusOr<JobResult> Variances(double delta) {
  JobResult result;
  for (const double epsilon : kEpsilons) {
    PM_ASSIGN_OR_RETURN(const CalibratedGaussian printed,
                        CalibratePublishedBoundedGaussian(kWidths, kSensitivity, epsilon));
    PM_ASSIGN_OR_RETURN(const CalibratedGaussian exact,
                        CalibrateBoundedGaussian(kWidths, kSensitivity, epsilon));
    PM_ASSIGN_OR_RETURN(const double classical, PublishedGaussianStddev(epsilon, delta));
    PM_ASSIGN_OR_RETURN(const double analytic, AnalyticGaussianStddev(epsilon, delta));
    result["generalised"].push_back(GeneralisedVariance(epsilon));
    result["printed"].push_back(printed.stddev * printed.stddev);
    result["exact"].push_back(exact.stddev * exact.stddev);
    result["classical"].push_back(std::pow(classical * kSensitivity, 2));
    result["analytic"].push_back(std::pow(analytic * kSensitivity, 2));
  }
  return result;
}

Figure Draw(const JobResult& result, double delta) {
  Figure figure{.id = "bounded-gaussian",
                .title = "Variance of the bounded Gaussian against epsilon",
                .x = EpsilonAxis(),
                .y = {},
                .panels = {FigurePanel{}},
                .words = {}};
  figure.y.label = "variance of the noise in each value, before the box cuts it";
  figure.y.logarithmic = true;
  for (const Law& law : kLaws) {
    FigureSeries& series = figure.panels[0].series.emplace_back();
    series.name = law.name;
    for (size_t i = 0; i < kEpsilons.size(); ++i) {
      series.points.push_back({.x = kEpsilons[i], .y = result.at(law.key)[i]});
    }
  }
  for (const size_t i : {size_t{0}, kEpsilons.size() - 1}) {
    const auto at = [&](const char* law) { return result.at(law)[i]; };
    figure.words.push_back(absl::StrCat(
        "At epsilon ", Short(kEpsilons[i]), " the printed formula asks for a variance of ",
        Short(at("printed")), ", the exact analysis for ", Short(at("exact")), ", ",
        Short(100 * (1 - at("exact") / at("printed"))), " % less at the same claimed epsilon, and ",
        "the generalised Gaussian for ", Short(at("generalised")),
        ". Unbounded Gaussian noise that is (epsilon, delta)-private at delta ", Short(delta),
        " needs ", Short(at("analytic")), " by the analytic formula; the published one says ",
        Short(at("classical")),
        kEpsilons[i] < 1 ? "." : ", which is not proven from epsilon 1 on."));
  }
  figure.words.push_back(
      "The query is the document's: two values in [0, 10] and [1, 9] with L2 sensitivity "
      "sqrt(20).");
  return figure;
}

}  // namespace

Experiment MakeBoundedGaussianExperiment(double delta) {
  Experiment experiment;
  experiment.name = "bounded-gaussian";
  experiment.jobs.push_back({.key = absl::StrCat("table 1, delta ", FormatExact(delta)),
                             .work = .05,
                             .run = [delta] { return Variances(delta); }});
  experiment.draw = [delta](const std::vector<JobResult>& results) {
    return std::vector<Figure>{Draw(results[0], delta)};
  };
  return experiment;
}

}  // namespace privatemail::client
