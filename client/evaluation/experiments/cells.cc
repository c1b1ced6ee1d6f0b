#include "client/evaluation/experiments/cells.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/evaluation/cell_trial.h"
#include "client/evaluation/figure_parts.h"
#include "client/evaluation/made_once.h"
#include "client/evaluation/sweep.h"
#include "client/privacy/cell_mechanism.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

const std::vector<double> kEpsilons = {.5, 1, 2, 4, 8};

// How much of the gallery comes back, from cells of what.
struct Variant {
  const char* name;
  double share;
  CellTrial::Centroids centroids;
};
constexpr Variant kVariants[] = {
    {"cells, 10 % returned", .1, CellTrial::Centroids::kOfGallery},
    {"cells of the anchors, 10 % returned", .1, CellTrial::Centroids::kOfAnchors},
    {"cells, 1 % returned", .01, CellTrial::Centroids::kOfGallery},
};

using CellTrials = MadeOnce<std::pair<uint64_t, CellTrial::Centroids>, CellTrial>;

Condition CellsCondition(const std::shared_ptr<Stage>& stage,
                         const std::shared_ptr<CellTrials>& trials, const Variant& variant) {
  const auto run = [stage, trials, variant](double epsilon, uint64_t seed,
                                            const std::string& part) -> absl::StatusOr<Answers> {
    const auto make = [&]() -> CellTrials::Value {
      PM_ASSIGN_OR_RETURN(std::shared_ptr<const Trial> trial, stage->TrialOf(seed));
      return std::make_shared<const CellTrial>(std::move(trial), variant.centroids);
    };
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const CellTrial> trial,
                        trials->Get({seed, variant.centroids}, make));
    return trial->AskAll(trial->PlanFor(epsilon, variant.share), epsilon, part);
  };
  return {.name = variant.name, .work = 3, .run = run};
}

FigureSeries CeilingSeries(double share) {
  FigureSeries series{.name = absl::StrCat("ceiling at ", Short(100 * share), " %"),
                      .mark = FigureSeries::Mark::kReference,
                      .points = {}};
  for (const double epsilon : kEpsilons) {
    series.points.push_back({.x = epsilon, .y = CellCeiling(epsilon, share)});
  }
  return series;
}

// "At epsilon 4, cells, 10 % returned: 0.68 (0.66 to 0.70) of the true 8 nearest, 0.77 of the way
// from chance to the ceiling of 0.86."
std::string FidelityInWords(const Variant& variant, double epsilon, const Band& band, int64_t k) {
  const double ceiling = CellCeiling(epsilon, variant.share);
  return absl::StrCat("At epsilon ", Short(epsilon), ", ", variant.name, ": ", WithBand(band),
                      " of the true ", k, " nearest, ",
                      Short((band.mean - variant.share) / (ceiling - variant.share)),
                      " of the way from chance to the ceiling of ", Short(ceiling), ".");
}

// "At epsilon 4, cells, 10 % returned: precision@8 0.29 (0.27 to 0.31), 0.82 of a search that hides
// nothing."
std::string MetricInWords(const Variant& variant, double epsilon, const Metric& metric,
                          const Band& band, const Band& open) {
  return absl::StrCat("At epsilon ", Short(epsilon), ", ", variant.name, ": ", metric.name, " ",
                      WithBand(band), ", ", Short(band.mean / open.mean),
                      " of a search that hides nothing.");
}

std::vector<std::string> InWords(const Sweep& sweep, const std::vector<JobResult>& results,
                                 const Metric& metric, int64_t k) {
  std::vector<std::string> words;
  const Band open = sweep.BandOf(results, std::size(kVariants), 0, metric.key);
  for (size_t i = 0; i < std::size(kVariants); ++i) {
    for (size_t x = 1; x < kEpsilons.size(); ++x) {
      const Band band = sweep.BandOf(results, i, x, metric.key);
      words.push_back(metric.key == std::string("fidelity")
                          ? FidelityInWords(kVariants[i], kEpsilons[x], band, k)
                          : MetricInWords(kVariants[i], kEpsilons[x], metric, band, open));
    }
  }
  return words;
}

constexpr char kCeilingInWords[] =
    "The ceiling is that of a choice among cells that are all equally likely to be the right one, "
    "averaged over them. Items are not: some are among the nearest of many queries, and lists that "
    "put these first find more than their share at any epsilon, which is how a small epsilon comes "
    "out above it. Class and features of the query are both protected, by a pure guarantee.";

}  // namespace

Experiment MakeCellsExperiment(std::shared_ptr<Stage> stage) {
  const auto trials = std::make_shared<CellTrials>();
  std::vector<Condition> conditions;
  for (const Variant& variant : kVariants) {
    conditions.push_back(CellsCondition(stage, trials, variant));
  }
  conditions.push_back(FeatureSearchCondition(stage));
  conditions.push_back(ChanceCondition(stage));
  const Sweep sweep("cells", std::move(conditions), kEpsilons, stage->study().seeds);
  const auto draw =
      [sweep, k = stage->study().k](
          const std::vector<JobResult>& results) -> absl::StatusOr<std::vector<Figure>> {
    std::vector<Figure> figures;
    for (const Metric& metric : MetricsAt(k)) {
      Figure& figure = figures.emplace_back();
      figure.id = absl::StrCat("cells-", metric.name.substr(0, metric.name.find('@')));
      figure.title = absl::StrCat("Cells: ", metric.name, " against epsilon");
      figure.panels.push_back(sweep.PanelOf(results, metric));
      figure.x = EpsilonAxis();
      figure.y = ShareAxis(std::exchange(figure.panels[0].title, ""));
      figure.words = InWords(sweep, results, metric, k);
      if (metric.key != std::string("fidelity")) continue;
      for (const double share : {.1, .01}) {
        figure.panels[0].series.push_back(CeilingSeries(share));
      }
      figure.words.push_back(kCeilingInWords);
    }
    return figures;
  };
  return {.name = "cells", .jobs = sweep.Jobs(), .draw = draw};
}

}  // namespace privatemail
