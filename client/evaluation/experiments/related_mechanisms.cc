#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/evaluation/asking.h"
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
                .panels = {FigurePanel{}}};
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

constexpr double kRadius = .5;

Sweep SweepOver(const std::shared_ptr<Stage>& stage, const std::string& name,
                const std::vector<double>& xs, const std::function<PrivacyCost(double x)>& cost) {
  std::vector<Condition> conditions;
  const auto add = [&](const MechanismTraits& traits, Asking::Scheme scheme, const char* prefix) {
    const auto asking = [&traits, scheme, cost, delta = stage->study().delta](double x) {
      PrivacyCost at = cost(x);
      at.mechanism = traits.kind;
      if (traits.TakesDelta()) at.delta = delta;
      return Asking{.cost = at, .scheme = scheme};
    };
    conditions.push_back(AskingCondition(absl::StrCat(prefix, traits.name), stage, asking));
  };
  for (const MechanismTraits& traits : AllMechanisms()) {
    if (traits.protects == MechanismTraits::Protects::kValue || traits.published) continue;
    add(traits, Asking::Scheme::kJoint, "");
  }
  for (const MechanismKind kind : {MechanismKind::kLapOutput, MechanismKind::kGaussOutput}) {
    add(TraitsOf(kind), Asking::Scheme::kAnchored, "anchored, ");
  }
  conditions.push_back(AskingCondition(
      "without noise", stage, [](double) { return Asking{}; }, /*fixed=*/true));
  return {name, std::move(conditions), xs, stage->study().seeds};
}

// The family of the document's figure 5: one mechanism, a line for each radius, against epsilon.
Sweep FamilyOfRadii(const std::shared_ptr<Stage>& stage) {
  std::vector<Condition> conditions;
  for (const double radius : {.1, .2, .5, 1.}) {
    const auto asking = [radius, delta = stage->study().delta](double epsilon) {
      return Asking{.cost = PrivacyCost{.epsilon = epsilon,
                                        .delta = delta,
                                        .mechanism = MechanismKind::kGaussOutput,
                                        .radius = radius}};
    };
    conditions.push_back(AskingCondition(
        absl::StrCat(TraitsOf(MechanismKind::kGaussOutput).name, ", radius ", Short(radius)), stage,
        asking));
  }
  conditions.push_back(AskingCondition(
      "without noise", stage, [](double) { return Asking{}; }, /*fixed=*/true));
  return {"epsilon by radius", std::move(conditions), stage->study().epsilons,
          stage->study().seeds};
}

std::vector<std::string> Words(const Sweep& sweep, const std::vector<JobResult>& results,
                               const Study& study, const std::string& quantity) {
  std::vector<std::string> words;
  const size_t last = sweep.xs().size() - 1;
  for (size_t c = 0; c + 1 < sweep.conditions().size(); ++c) {
    for (const Metric& metric : MetricsAt(study.k)) {
      if (std::string(metric.key) == "class_share") continue;
      words.push_back(absl::StrCat(
          sweep.conditions()[c].name, ": ", metric.name, " goes from ",
          WithBand(sweep.BandOf(results, c, 0, metric.key)), " at ", quantity, " ",
          Short(sweep.xs()[0]), " to ", WithBand(sweep.BandOf(results, c, last, metric.key)),
          " at ", Short(sweep.xs()[last]), "; without noise it is ",
          Short(sweep.BandOf(results, sweep.conditions().size() - 1, 0, metric.key).mean), "."));
    }
  }
  words.push_back("The class is not hidden by any of these; slots are in place all the same.");
  sweep.AddNotes(results, &words);
  return words;
}

Figure Draw(const Sweep& sweep, const std::vector<JobResult>& results, const Study& study,
            const std::string& quantity, Figure figure) {
  figure.y = ShareAxis("mean over targets");
  for (const Metric& metric : MetricsAt(study.k)) {
    figure.panels.push_back(sweep.PanelOf(results, metric));
  }
  figure.words = Words(sweep, results, study, quantity);
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

Experiment MakeInferencePrivacyExperiment(std::shared_ptr<Stage> stage) {
  const Study& study = stage->study();
  const Sweep radii = SweepOver(stage, absl::StrCat("radius at epsilon ", study.epsilon),
                                {.05, .1, .2, .5, 1, 2}, [epsilon = study.epsilon](double radius) {
                                  return PrivacyCost{.epsilon = epsilon, .radius = radius};
                                });
  const Sweep epsilons =
      SweepOver(stage, absl::StrCat("epsilon at radius ", kRadius), study.epsilons,
                [](double epsilon) { return PrivacyCost{.epsilon = epsilon, .radius = kRadius}; });
  const Sweep family = FamilyOfRadii(stage);
  Experiment experiment{.name = "inference-privacy"};
  for (const auto& [sweep, key] :
       {std::pair(&radii, std::string("by radius: ")),
        std::pair(&epsilons, absl::StrCat("by epsilon, radius ", kRadius, ": ")),
        std::pair(&family, std::string("by epsilon and radius: "))}) {
    for (Job& job : sweep->Jobs()) {
      job.key = absl::StrCat(key, job.key);
      experiment.jobs.push_back(std::move(job));
    }
  }
  experiment.draw =
      [stage, radii, epsilons,
       family](const std::vector<JobResult>& results) -> absl::StatusOr<std::vector<Figure>> {
    const Study& study = stage->study();
    const auto middle = results.begin() + std::ssize(radii.Jobs());
    const auto last = middle + std::ssize(epsilons.Jobs());
    FigureAxis radius_axis = EpsilonAxis();
    radius_axis.label = "radius within which targets are hidden (unit vectors)";
    return std::vector<Figure>{
        Draw(radii, {results.begin(), middle}, study, "radius",
             {.id = "inference-privacy-radius",
              .title = absl::StrCat("Inference Privacy against the radius, epsilon ",
                                    Short(study.epsilon)),
              .x = radius_axis}),
        Draw(epsilons, {middle, last}, study, "epsilon",
             {.id = "inference-privacy-epsilon",
              .title = absl::StrCat("Inference Privacy against epsilon, radius ", Short(kRadius)),
              .x = EpsilonAxis()}),
        Draw(family, {last, results.end()}, study, "epsilon",
             {.id = "inference-privacy-radii",
              .title = "Inference Privacy on the output against epsilon, by radius",
              .x = EpsilonAxis()})};
  };
  return experiment;
}

}  // namespace privatemail::client
