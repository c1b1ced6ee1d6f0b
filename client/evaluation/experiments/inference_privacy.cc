#include "client/evaluation/experiments/inference_privacy.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/figure_parts.h"
#include "client/evaluation/sweep.h"

namespace privatemail {
namespace {

constexpr double kRadius = .5;

// Sweeps one of the two; cost: at x, but for mechanism and delta.
Sweep SweepOver(const std::shared_ptr<Stage>& stage, const std::string& name,
                const std::vector<double>& xs, const std::function<PrivacyCost(double x)>& cost) {
  std::vector<Condition> conditions;
  for (const MechanismTraits& traits : AllMechanisms()) {
    if (traits.protects == MechanismTraits::Protects::kValue || traits.published) continue;
    const auto asking = [&traits, cost, delta = stage->study().delta](double x) {
      PrivacyCost at = cost(x);
      at.mechanism = traits.kind;
      if (traits.TakesDelta()) at.delta = delta;
      return Asking{.cost = at};
    };
    conditions.push_back(AskingCondition(traits.name, stage, asking));
  }
  conditions.push_back(AskingCondition(
      "without noise", stage, [](double) { return Asking{}; }, /*fixed=*/true));
  return {name, std::move(conditions), xs, stage->study().seeds};
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

Experiment MakeInferencePrivacyExperiment(std::shared_ptr<Stage> stage) {
  const Study& study = stage->study();
  const Sweep radii = SweepOver(stage, absl::StrCat("radius at epsilon ", study.epsilon),
                                {.05, .1, .2, .5, 1, 2}, [epsilon = study.epsilon](double radius) {
                                  return PrivacyCost{.epsilon = epsilon, .radius = radius};
                                });
  const Sweep epsilons =
      SweepOver(stage, absl::StrCat("epsilon at radius ", kRadius), study.epsilons,
                [](double epsilon) { return PrivacyCost{.epsilon = epsilon, .radius = kRadius}; });
  Experiment experiment{.name = "inference-privacy", .jobs = radii.Jobs(), .draw = nullptr};
  const size_t of_radii = experiment.jobs.size();
  for (Job& job : experiment.jobs) job.key = absl::StrCat("by radius: ", job.key);
  for (Job& job : epsilons.Jobs()) {
    job.key = absl::StrCat("by epsilon, radius ", kRadius, ": ", job.key);
    experiment.jobs.push_back(std::move(job));
  }
  experiment.draw =
      [stage, radii, epsilons,
       of_radii](const std::vector<JobResult>& results) -> absl::StatusOr<std::vector<Figure>> {
    const Study& study = stage->study();
    const auto middle = results.begin() + static_cast<std::ptrdiff_t>(of_radii);
    FigureAxis radius_axis = EpsilonAxis();
    radius_axis.label = "radius within which targets are hidden (unit vectors)";
    return std::vector<Figure>{
        Draw(radii, {results.begin(), middle}, study, "radius",
             {.id = "inference-privacy-radius",
              .title = absl::StrCat("Inference Privacy against the radius, epsilon ",
                                    Short(study.epsilon)),
              .x = radius_axis,
              .y = {},
              .panels = {},
              .words = {}}),
        Draw(epsilons, {middle, results.end()}, study, "epsilon",
             {.id = "inference-privacy-epsilon",
              .title = absl::StrCat("Inference Privacy against epsilon, radius ", Short(kRadius)),
              .x = EpsilonAxis(),
              .y = {},
              .panels = {},
              .words = {}})};
  };
  return experiment;
}

}  // namespace privatemail
