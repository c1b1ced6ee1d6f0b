#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/sweep.h"

namespace privatemail::client {
namespace {

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
  Experiment experiment{.name = "inference-privacy", .jobs = {}, .draw = nullptr};
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
              .x = radius_axis,
              .y = {},
              .panels = {},
              .words = {}}),
        Draw(epsilons, {middle, last}, study, "epsilon",
             {.id = "inference-privacy-epsilon",
              .title = absl::StrCat("Inference Privacy against epsilon, radius ", Short(kRadius)),
              .x = EpsilonAxis(),
              .y = {},
              .panels = {},
              .words = {}}),
        Draw(family, {last, results.end()}, study, "epsilon",
             {.id = "inference-privacy-radii",
              .title = "Inference Privacy on the output against epsilon, by radius",
              .x = EpsilonAxis(),
              .y = {},
              .panels = {},
              .words = {}})};
  };
  return experiment;
}

}  // namespace privatemail::client
