#include "client/evaluation/attacks/attacks.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/audit/lower_bound.h"
#include "client/evaluation/figure_parts.h"
#include "client/evaluation/metrics.h"
#include "common/base/exactly.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

// The share of right answers, with certainty .95.
Band ShareOfRight(const std::vector<JobResult>& results, size_t first, size_t count) {
  audit::Hits hits;
  for (size_t i = first; i < first + count; ++i) {
    for (const double right : results[i].at("right")) {
      ++hits.releases;
      hits.one += right != 0 ? 1 : 0;
    }
  }
  hits.other = hits.one;
  const audit::Rates rates = audit::CertainRates(hits, .95);
  return {.mean = static_cast<double>(hits.one) / static_cast<double>(hits.releases),
          .low = rates.one_at_least,
          .high = rates.other_at_most};
}

double Allowed(const LeakageAttack& attack, double epsilon, double delta) {
  return ScoreCeilings(epsilon, delta, attack.choices, 1).class_share;
}

FigureSeries Level(std::string name, const std::vector<double>& xs, double y) {
  FigureSeries series{
      .name = std::move(name), .mark = FigureSeries::Mark::kReference, .points = {}};
  for (const double x : xs) series.points.push_back({.x = x, .y = y});
  return series;
}

std::vector<std::string> Words(const LeakageAttack& attack, const FigureSeries& found,
                               const Band& without_noise, const Study& study) {
  const double guess = 1 / static_cast<double>(attack.choices);
  std::vector<std::string> words = {attack.given};
  bool exceeded = false;
  for (const FigurePoint& point : found.points) {
    exceeded |= attack.bounded && point.low > Allowed(attack, point.x, study.delta);
  }
  const FigurePoint& last = found.points.back();
  words.push_back(absl::StrCat(
      "At epsilon ", Short(last.x), " it is right in ", Short(last.y), " of the cases (",
      Short(last.low), " to ", Short(last.high), "), an advantage of ", Short(last.y - guess),
      " over a guess, which is right in ", Short(guess), "; ",
      attack.bounded ? absl::StrCat("the guarantee allows up to ",
                                    Short(Allowed(attack, last.x, study.delta)), ".")
                     : std::string("no guarantee bounds it.")));
  const char* verdict =
      !(without_noise.low > guess)
          ? ": the attack is no better than a guess even there, so that it says little about the "
            "noise."
      : last.low > guess ? ": the attack works, with this noise and without."
                         : ": the attack works, and the noise is what stands against it.";
  words.push_back(absl::StrCat("On releases without noise it is right in ", WithBand(without_noise),
                               " of the cases", verdict));
  if (attack.bounded) {
    words.push_back(exceeded ? "SOMEWHERE THE ATTACK CERTAINLY DOES BETTER THAN THE GUARANTEE "
                               "ALLOWS: the guarantee is broken."
                             : "Nowhere does it certainly do better than the guarantee allows.");
  }
  return words;
}

// first: of the attack's results, of which those without noise come last.
Figure Draw(const LeakageAttack& attack, const std::vector<JobResult>& results, size_t first,
            const Study& study) {
  const auto seeds = static_cast<size_t>(study.seeds);
  Figure figure{.id = absl::StrCat("attack-", attack.id),
                .title = attack.title,
                .x = EpsilonAxis(),
                .y = ShareAxis("share of targets"),
                .panels = {FigurePanel{}},
                .words = {attack.given}};
  for (size_t i = first; i < first + (study.epsilons.size() + 1) * seeds; ++i) {
    if (results[i].refused.empty()) continue;
    figure.words.push_back(absl::StrCat("Not measured: ", results[i].refused, "."));
    return figure;
  }
  FigureSeries found{.name = "right answers", .points = {}};
  FigureSeries allowed{
      .name = "the guarantee allows", .mark = FigureSeries::Mark::kReference, .points = {}};
  for (size_t e = 0; e < study.epsilons.size(); ++e) {
    const double epsilon = study.epsilons[e];
    found.points.push_back(PointOf(epsilon, ShareOfRight(results, first + e * seeds, seeds)));
    allowed.points.push_back({.x = epsilon, .y = Allowed(attack, epsilon, study.delta)});
  }
  const Band without_noise = ShareOfRight(results, first + study.epsilons.size() * seeds, seeds);
  figure.words = Words(attack, found, without_noise, study);
  figure.panels[0].series = {
      found, Level("without noise", study.epsilons, without_noise.mean),
      Level("a guess", study.epsilons, 1 / static_cast<double>(attack.choices))};
  if (attack.bounded) figure.panels[0].series.push_back(allowed);
  return figure;
}

std::vector<Job> JobsOf(const std::shared_ptr<Stage>& stage, const LeakageAttack& attack) {
  std::vector<std::optional<PrivacyCost>> costs;
  for (const double epsilon : stage->study().epsilons) {
    costs.push_back(PrivacyCost{.epsilon = epsilon, .delta = stage->study().delta});
  }
  costs.push_back(std::nullopt);
  std::vector<Job> jobs;
  for (const std::optional<PrivacyCost>& cost : costs) {
    const std::string part =
        absl::StrCat(attack.id, cost ? absl::StrCat(" at ", Exactly(cost->epsilon))
                                     : std::string(" without noise"));
    for (int64_t seed = 1; seed <= stage->study().seeds; ++seed) {
      const auto run = [stage, attack, cost, part, seed]() -> absl::StatusOr<JobResult> {
        PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Scene> scene,
                            stage->SceneOf(static_cast<uint64_t>(seed)));
        PM_ASSIGN_OR_RETURN(std::vector<double> right, attack.attack(*scene, cost, part));
        return JobResult{{"right", std::move(right)}};
      };
      jobs.push_back(
          {.key = absl::StrCat(part, ", seed ", seed), .work = 2, .run = run, .kind = attack.id});
    }
  }
  return jobs;
}

}  // namespace

Experiment MakeAttacksExperiment(std::shared_ptr<Stage> stage,
                                 const std::vector<LeakageAttack>& attacks) {
  Experiment experiment{.name = "attacks", .jobs = {}, .draw = nullptr};
  for (const LeakageAttack& attack : attacks) {
    for (Job& job : JobsOf(stage, attack)) experiment.jobs.push_back(std::move(job));
  }
  experiment.draw = [stage, attacks](const std::vector<JobResult>& results) {
    const size_t each = results.size() / attacks.size();
    std::vector<Figure> figures;
    for (size_t i = 0; i < attacks.size(); ++i) {
      figures.push_back(Draw(attacks[i], results, i * each, stage->study()));
    }
    return figures;
  };
  return experiment;
}

Experiment MakeAttacksExperiment(std::shared_ptr<Stage> stage) {
  const int64_t classes = CountClasses(stage->study().data);
  return MakeAttacksExperiment(std::move(stage),
                               {NearestDummyAttack(classes), LabelAttack(classes, /*slots=*/true),
                                LabelAttack(classes, /*slots=*/false), InversionAttack()});
}

}  // namespace privatemail
