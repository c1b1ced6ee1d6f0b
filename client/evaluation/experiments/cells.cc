#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/scene.h"
#include "client/evaluation/sweep.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

const std::vector<double> kEpsilons = {.5, 1, 2, 4, 8};

struct Variant {
  const char* name;
  double share;
};
constexpr Variant kVariants[] = {
    {"cells, 10 % returned", .1},
    {"cells, 1 % returned", .01},
};
constexpr size_t kNotPrivate = std::size(kVariants);  // the condition after them

using CellTrials = MadeOnce<uint64_t, CellTrial>;

Condition CellsCondition(const std::shared_ptr<Stage>& stage,
                         const std::shared_ptr<CellTrials>& trials, const Variant& variant) {
  const auto run = [stage, trials, variant](double epsilon, uint64_t seed,
                                            const std::string& part) -> absl::StatusOr<Answers> {
    const auto make = [&]() -> CellTrials::Value {
      PM_ASSIGN_OR_RETURN(std::shared_ptr<const Trial> trial, stage->TrialOf(seed));
      return std::make_shared<const CellTrial>(std::move(trial));
    };
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const CellTrial> trial, trials->Get(seed, make));
    PM_ASSIGN_OR_RETURN(const CellPlan plan, trial->PlanFor(epsilon, variant.share));
    return trial->AskAll(plan, epsilon, part);
  };
  return {.name = variant.name, .work = 3, .run = run};
}

std::vector<Condition> OtherConditions(const std::shared_ptr<Stage>& stage,
                                       const std::vector<Baseline>& baselines) {
  constexpr double kLittleWork = 4;
  std::vector<Condition> conditions;
  const auto ask = [&](const char* name, Asking::Scheme scheme) {
    const auto asking = [scheme, delta = stage->study().delta](double epsilon) {
      return Asking{.cost = PrivacyCost{.epsilon = epsilon, .delta = delta}, .scheme = scheme};
    };
    conditions.push_back(AskingCondition(name, stage, asking));
  };
  ask("PrivateMail, gaussian", Asking::Scheme::kJoint);
  ask("PrivateMail anchored, gaussian", Asking::Scheme::kAnchored);
  for (const Baseline& baseline : baselines) {
    if (!baseline.is_private || baseline.work > kLittleWork) continue;
    conditions.push_back(BaselineCondition(stage, baseline));
  }
  return conditions;
}

// The shares returned of this study's gallery, which may be small.
double ShareOf(const Variant& variant, const Study& study, int64_t items) {
  return static_cast<double>(ListLength(variant.share, study.k, items)) /
         static_cast<double>(items);
}

FigureSeries CeilingSeries(double share) {
  FigureSeries series{.name = absl::StrCat("ceiling at ", Short(100 * share), " %"),
                      .mark = FigureSeries::Mark::kReference};
  constexpr int kSteps = 50;  // even ones, on the axis
  const double first = std::log(kEpsilons.front()), last = std::log(kEpsilons.back());
  for (int step = 0; step <= kSteps; ++step) {
    const double epsilon = std::exp(first + (last - first) * step / kSteps);
    series.points.push_back({.x = epsilon, .y = CellCeiling(epsilon, share)});
  }
  return series;
}

std::string BesideCeiling(double share, double epsilon, const Band& band) {
  const double ceiling = CellCeiling(epsilon, share);
  if (!(ceiling > share)) return "";
  return absl::StrCat(", ", Short((band.mean - share) / (ceiling - share)),
                      " of the way from chance to the ceiling of ", Short(ceiling));
}

std::string BesideOpenSearch(const Band& band, const Band& open) {
  if (!(open.mean > 0)) return "";
  return absl::StrCat(", ", Short(band.mean / open.mean), " of a search that hides nothing");
}

std::vector<std::string> InWords(const Sweep& sweep, const std::vector<JobResult>& results,
                                 const Metric& metric, const Study& study, int64_t items) {
  std::vector<std::string> words;
  const bool fidelity = metric.key == std::string("fidelity");
  const Band open = sweep.BandOf(results, kNotPrivate, 0, metric.key);
  for (size_t i = 0; i < std::size(kVariants); ++i) {
    const Variant& variant = kVariants[i];
    const double share = ShareOf(variant, study, items);
    if (share > 1.1 * variant.share) {
      words.push_back(absl::StrCat("Of ", items, " items \"", variant.name, "\" means ",
                                   Short(100 * share), " %: as many as are asked for."));
    }
    std::vector<std::string> found;
    for (size_t x = 1; x < kEpsilons.size(); ++x) {
      const Band band = sweep.BandOf(results, i, x, metric.key);
      found.push_back(absl::StrCat(
          WithBand(band), " at epsilon ", Short(kEpsilons[x]),
          fidelity ? BesideCeiling(share, kEpsilons[x], band) : BesideOpenSearch(band, open)));
    }
    words.push_back(absl::StrCat("With ", variant.name, ", ", metric.name, " is ",
                                 absl::StrJoin(found, "; "), "."));
  }
  return words;
}

std::string OthersInWords(const Sweep& sweep, const std::vector<JobResult>& results,
                          const Metric& metric) {
  constexpr size_t kAt = 3;  // of kEpsilons
  std::vector<std::string> found;
  for (size_t i = kNotPrivate + 1; i < sweep.conditions().size(); ++i) {
    const Condition& condition = sweep.conditions()[i];
    found.push_back(
        absl::StrCat("\"", condition.name, "\" ",
                     WithBand(sweep.BandOf(results, i, condition.fixed ? 0 : kAt, metric.key))));
  }
  return absl::StrCat("Beside them, at epsilon ", Short(kEpsilons[kAt]), ": ",
                      absl::StrJoin(found, ", "),
                      ". Private PCA protects rows of the gallery, and no query.");
}

std::vector<FigurePanel> PanelsOf(FigurePanel all) {
  std::vector<FigurePanel> panels = {{"cells", {}}, {"the papers' scheme and baselines", {}}};
  for (size_t i = 0; i < all.series.size(); ++i) {
    const bool shared = all.series[i].mark == FigureSeries::Mark::kReference;
    if (i <= kNotPrivate || shared) panels[0].series.push_back(all.series[i]);
    if (i >= kNotPrivate) panels[1].series.push_back(std::move(all.series[i]));
  }
  return panels;
}

constexpr char kCeilingInWords[] =
    "The ceiling is that of a choice among cells that are all equally likely to be the right one, "
    "averaged over them. Items are not: some are among the nearest of many queries, and lists that "
    "put these first may find more than their share at any epsilon. Class and features of the "
    "query are both protected, by a pure guarantee.";

std::vector<std::string> AboveCeiling(const Sweep& sweep, const std::vector<JobResult>& results,
                                      const Metric& metric, const Study& study, int64_t items) {
  std::vector<std::string> words;
  for (size_t i = 0; i < std::size(kVariants); ++i) {
    const double share = ShareOf(kVariants[i], study, items);
    std::vector<std::string> above;
    for (size_t x = 0; x < kEpsilons.size(); ++x) {
      const Band band = sweep.BandOf(results, i, x, metric.key);
      if (band.low > CellCeiling(kEpsilons[x], share)) above.push_back(Short(kEpsilons[x]));
    }
    if (above.empty()) continue;
    words.push_back(absl::StrCat("The whole band of \"", kVariants[i].name,
                                 "\" lies above that ceiling at epsilon ",
                                 absl::StrJoin(above, ", "), "."));
  }
  return words;
}

}  // namespace

Experiment MakeCellsExperiment(std::shared_ptr<Stage> stage,
                               const std::vector<Baseline>& baselines) {
  const auto trials = std::make_shared<CellTrials>();
  std::vector<Condition> conditions;
  for (const Variant& variant : kVariants) {
    conditions.push_back(CellsCondition(stage, trials, variant));
  }
  conditions.push_back(FeatureSearchCondition(stage));
  for (Condition& other : OtherConditions(stage, baselines)) conditions.push_back(std::move(other));
  conditions.push_back(ChanceCondition(stage));
  const Sweep sweep("cells", std::move(conditions), kEpsilons, stage->study().seeds);
  const auto draw =
      [sweep, stage](const std::vector<JobResult>& results) -> absl::StatusOr<std::vector<Figure>> {
    const Study& study = stage->study();
    PM_ASSIGN_OR_RETURN(const DataSplit split, MakeSplit(study.data, study.sizes, 1));
    const auto items = static_cast<int64_t>(split.gallery.labels.size());
    std::vector<Figure> figures;
    for (const Metric& metric : MetricsAt(study.k)) {
      Figure& figure = figures.emplace_back();
      figure.id = absl::StrCat("cells-", metric.name.substr(0, metric.name.find('@')));
      figure.title = absl::StrCat("Cells: ", metric.name, " against epsilon");
      FigurePanel all = sweep.PanelOf(results, metric);
      figure.x = EpsilonAxis();
      figure.y = ShareAxis(all.title);
      figure.panels = PanelsOf(std::move(all));
      figure.words = InWords(sweep, results, metric, study, items);
      figure.words.push_back(OthersInWords(sweep, results, metric));
      if (metric.key == std::string("fidelity")) {
        for (const Variant* variant : {&kVariants[0], &kVariants[std::size(kVariants) - 1]}) {
          figure.panels[0].series.push_back(CeilingSeries(ShareOf(*variant, study, items)));
        }
        figure.words.push_back(kCeilingInWords);
        for (std::string& sentence : AboveCeiling(sweep, results, metric, study, items)) {
          figure.words.push_back(std::move(sentence));
        }
      }
      sweep.AddNotes(results, &figure.words);
    }
    return figures;
  };
  return {.name = "cells", .jobs = sweep.Jobs(), .draw = draw};
}

}  // namespace privatemail::client
