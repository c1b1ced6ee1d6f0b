#include "client/evaluation/attacks/attacks.h"

#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "client/baselines/baseline.h"
#include "client/evaluation/metrics.h"
#include "client/evaluation/sweep.h"
#include "client/privacy/mechanisms/calibration.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

using Bound = LeakageAttack::Bound;

constexpr double kDrawn = .95;  // the certainty of a band
constexpr double kRisk =
    1e-6;  // that a report says of any guarantee that it is broken, and it is not

struct Count {
  int64_t right = 0;
  int64_t answers = 0;

  Band With(double certainty) const { return BandOfShare(right, answers, certainty); }
};

Count CountRight(const std::vector<JobResult>& results, size_t first, size_t jobs) {
  Count count;
  for (size_t i = first; i < first + jobs; ++i) {
    for (const double right : results[i].at("right")) {
      ++count.answers;
      count.right += right != 0 ? 1 : 0;
    }
  }
  return count;
}

bool IsBounded(const LeakageAttack& attack) { return attack.bound != Bound::kNone; }

struct Findings {
  std::vector<Count> at;  // each epsilon
  Count without_noise;
  double guess = 0;  // right in this share of the cases without a look
};

// The share of its largest class among the targets of a split: equal shares, unless a class ran out
// of rows. While none has, which classes have one more than others is drawn anew for each split,
// and no attacker knows it.
double LargestShare(const std::vector<int32_t>& labels, int64_t classes) {
  std::map<int32_t, int64_t> counts;
  for (const int32_t label : labels) ++counts[label];
  const auto by_count = [](const auto& one, const auto& other) {
    return one.second < other.second;
  };
  const int64_t most = std::max_element(counts.begin(), counts.end(), by_count)->second;
  const int64_t least = std::ssize(counts) < classes
                            ? 0
                            : std::min_element(counts.begin(), counts.end(), by_count)->second;
  if (most - least <= 1) return 1 / static_cast<double>(classes);
  return static_cast<double>(most) / static_cast<double>(labels.size());
}

absl::StatusOr<double> LargestShareIn(const Study& study) {
  const int64_t classes = CountClasses(study.data);
  double largest = 0;
  for (int64_t seed = 1; seed <= study.seeds; ++seed) {
    PM_ASSIGN_OR_RETURN(const DataSplit split,
                        MakeSplit(study.data, study.sizes, static_cast<uint64_t>(seed)));
    largest = std::max(largest, LargestShare(split.targets.labels, classes));
  }
  return largest;
}

// Of two, a release whose Gaussian noise has the deviation s is told from one that is D away with
// Phi(D / 2s) at the most, which is less than (epsilon, delta) alone allows (Dong, Roth, Su 2022).
double GaussianAllows(double epsilon, double delta) {
  const double mu = 1 / AnalyticGaussianStddev(epsilon, delta).value();
  return .5 * std::erfc(-mu / 2 * M_SQRT1_2);
}

double Allowed(const LeakageAttack& attack, double guess, double epsilon, double delta) {
  switch (attack.bound) {
    case Bound::kNone:
      return 1;
    case Bound::kGaussian:
      return GaussianAllows(epsilon, delta);
    case Bound::kApproximate:
    case Bound::kPure:
      break;
  }
  const double spent = attack.bound == Bound::kPure ? 0 : delta;
  return baselines::LabelHidingCeilingOverTargets({epsilon, spent}, attack.choices, guess).value();
}

FigureSeries Level(std::string name, const std::vector<double>& xs, double y) {
  FigureSeries series{.name = std::move(name), .mark = FigureSeries::Mark::kReference};
  for (const double x : xs) series.points.push_back({.x = x, .y = y});
  return series;
}

std::set<size_t> ToldEpsilons(const Study& study) {
  const std::vector<double>& all = study.epsilons;
  const auto distance = [&](double epsilon) {
    return std::abs(std::log(epsilon) - std::log(study.epsilon));
  };
  const auto nearest = std::min_element(all.begin(), all.end(), [&](double one, double other) {
    return distance(one) < distance(other);
  });
  return {0, static_cast<size_t>(nearest - all.begin()), all.size() - 1};
}

std::string BesideGuess(const Band& band, double guess) {
  const Band above = {band.mean - guess, band.low - guess, band.high - guess};
  return band.low > guess ? absl::StrCat(", ", WithBand(above), " above a guess")
                          : std::string(", not shown to be better than a guess");
}

std::string InWords(const LeakageAttack& attack, double epsilon, const Count& count, double guess,
                    double delta) {
  const Band band = count.With(kDrawn);
  return absl::StrCat("At epsilon ", Short(epsilon), " it is right in ", WithBand(band),
                      " of the cases", BesideGuess(band, guess), "; ",
                      IsBounded(attack)
                          ? absl::StrCat("the guarantee allows ",
                                         Short(Allowed(attack, guess, epsilon, delta)), ".")
                          : std::string("no guarantee bounds it."));
}

std::string Verdict(const LeakageAttack& attack, const Findings& found, const Study& study,
                    size_t looks) {
  const double certainty = 1 - kRisk / static_cast<double>(looks);
  std::vector<std::string> broken;
  for (size_t e = 0; e < study.epsilons.size(); ++e) {
    const double epsilon = study.epsilons[e];
    const double allowed = Allowed(attack, found.guess, epsilon, study.delta);
    if (found.at[e].With(certainty).low > allowed) broken.push_back(Short(epsilon));
  }
  const std::string risk =
      absl::StrCat("at a risk of error of ", Short(kRisk), " over ",
                   Counted(static_cast<int64_t>(looks), "look"), " of this report");
  if (broken.empty()) {
    return absl::StrCat("Nowhere is it shown to do better than the guarantee allows, ", risk, ".");
  }
  return absl::StrCat("IT DOES BETTER THAN THE GUARANTEE ALLOWS at epsilon ",
                      absl::StrJoin(broken, ", "), ", ", risk, ": the guarantee is broken.");
}

std::vector<std::string> Words(const LeakageAttack& attack, const Findings& found,
                               const Study& study, size_t looks) {
  std::vector<std::string> words = {attack.given,
                                    absl::StrCat("A guess is right in ", Short(found.guess), ".")};
  for (const size_t e : ToldEpsilons(study)) {
    words.push_back(InWords(attack, study.epsilons[e], found.at[e], found.guess, study.delta));
  }
  const Band without_noise = found.without_noise.With(kDrawn);
  words.push_back(absl::StrCat("On releases without noise it is right in ", WithBand(without_noise),
                               " of the cases", BesideGuess(without_noise, found.guess),
                               without_noise.low > found.guess
                                   ? "."
                                   : ": such an attack says little about what the noise hides."));
  if (IsBounded(attack)) words.push_back(Verdict(attack, found, study, looks));
  words.push_back(
      "Band: Clopper and Pearson's interval, 95 % at each epsilon by itself, over the targets of "
      "all splits.");
  return words;
}

Findings FindingsIn(const std::vector<JobResult>& results, size_t first, const Study& study) {
  const auto seeds = static_cast<size_t>(study.seeds);
  Findings found;
  for (size_t e = 0; e < study.epsilons.size(); ++e) {
    found.at.push_back(CountRight(results, first + e * seeds, seeds));
  }
  found.without_noise = CountRight(results, first + study.epsilons.size() * seeds, seeds);
  return found;
}

std::optional<Figure> DrawRefused(const LeakageAttack& attack,
                                  absl::Span<const JobResult> results) {
  for (const JobResult& result : results) {
    if (result.refused.empty()) continue;
    return Figure{.id = absl::StrCat("attack-", attack.id),
                  .title = attack.title,
                  .x = EpsilonAxis(),
                  .y = ShareAxis("share of targets"),
                  .panels = {FigurePanel{}},
                  .words = {attack.given, absl::StrCat("Not measured: ", result.refused, ".")}};
  }
  return std::nullopt;
}

Figure Draw(const LeakageAttack& attack, const Findings& found, const Study& study, size_t looks) {
  FigureSeries right{.name = "right answers"};
  for (size_t e = 0; e < study.epsilons.size(); ++e) {
    right.points.push_back(PointOf(study.epsilons[e], found.at[e].With(kDrawn)));
  }
  Figure figure{.id = absl::StrCat("attack-", attack.id),
                .title = attack.title,
                .x = EpsilonAxis(),
                .y = ShareAxis("share of targets"),
                .panels = {FigurePanel{}},
                .words = Words(attack, found, study, looks)};
  figure.panels[0].series = {
      right, Level("without noise", study.epsilons, found.without_noise.With(kDrawn).mean),
      Level("a guess", study.epsilons, found.guess)};
  if (IsBounded(attack)) {
    figure.panels[0].series.push_back(CurveOver(
        "the guarantee allows", study.epsilons,
        [&](double epsilon) { return Allowed(attack, found.guess, epsilon, study.delta); }));
  }
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
        absl::StrCat(attack.id, cost ? absl::StrCat(" at ", FormatExact(cost->epsilon))
                                     : std::string(" without noise"));
    for (int64_t seed = 1; seed <= stage->study().seeds; ++seed) {
      const auto run = [stage, attack, cost, part, seed]() -> absl::StatusOr<JobResult> {
        PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Scene> scene,
                            stage->SceneOf(static_cast<uint64_t>(seed)));
        PM_ASSIGN_OR_RETURN(std::vector<double> right, attack.attack(*scene, cost, part));
        return JobResult{{"right", std::move(right)}};
      };
      jobs.push_back({.key = absl::StrCat(part, ", seed ", seed), .work = 2, .run = run});
    }
  }
  return jobs;
}

}  // namespace

Experiment MakeAttacksExperiment(std::shared_ptr<Stage> stage,
                                 const std::vector<LeakageAttack>& attacks) {
  Experiment experiment{.name = "attacks"};
  for (const LeakageAttack& attack : attacks) {
    for (Job& job : JobsOf(stage, attack)) experiment.jobs.push_back(std::move(job));
  }
  experiment.draw =
      [stage,
       attacks](const std::vector<JobResult>& results) -> absl::StatusOr<std::vector<Figure>> {
    const Study& study = stage->study();
    PM_ASSIGN_OR_RETURN(const double largest, LargestShareIn(study));
    const size_t each = results.size() / attacks.size();
    const auto bounded =
        static_cast<size_t>(std::count_if(attacks.begin(), attacks.end(), &IsBounded));
    std::vector<Figure> figures;
    for (size_t i = 0; i < attacks.size(); ++i) {
      const auto of_attack = absl::MakeConstSpan(results).subspan(i * each, each);
      if (std::optional<Figure> refused = DrawRefused(attacks[i], of_attack)) {
        figures.push_back(*std::move(refused));
        continue;
      }
      Findings found = FindingsIn(results, i * each, study);
      found.guess = attacks[i].names_class ? largest : 1 / static_cast<double>(attacks[i].choices);
      figures.push_back(Draw(attacks[i], found, study, bounded * study.epsilons.size()));
    }
    return figures;
  };
  return experiment;
}

Experiment MakeAttacksExperiment(std::shared_ptr<Stage> stage) {
  const int64_t classes = CountClasses(stage->study().data);
  return MakeAttacksExperiment(
      std::move(stage), {LikelihoodAttack(DecoyClass::kOther), LikelihoodAttack(DecoyClass::kSame),
                         DummiesAttack(classes), LabelAttack(classes, /*slots=*/true),
                         LabelAttack(classes, /*slots=*/false), InversionAttack(),
                         AnchoredDummiesAttack(classes), CellAttack(classes)});
}

}  // namespace privatemail::client
