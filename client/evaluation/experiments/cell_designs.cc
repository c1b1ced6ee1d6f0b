#include "client/evaluation/experiments/cell_designs.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/evaluation/cell_trial.h"
#include "client/evaluation/figure_parts.h"
#include "client/evaluation/made_once.h"
#include "client/evaluation/sweep.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

constexpr double kShare = .1;  // of the gallery, returned
const std::vector<double> kEpsilons = {1, 2, 4, 8};

struct Design {
  std::string name;
  CellTrial::Kind kind = CellTrial::Kind::kOfAnchors;
  CellDesign among = {};
  std::optional<CellsAsked> given = {};
};

std::vector<Design> DesignsOf(const Study& study) {
  using Kind = CellTrial::Kind;
  std::vector<Design> designs = {
      {.name = "as built"},
      {.name = "drawn to 2, 4 or 8 cells", .among = {.focuses = {2, 4, 8}}},
      {.name = "graded by rank", .among = {.graded = true}},
      {.name = "several cells, items in the nearest 1, 3 or 6",
       .among = {.overlaps = {1, 3, 6}, .focuses = {1, 2, 4, 8}}},
      {.name = "cells of equal size", .kind = Kind::kBalanced},
      {.name = "cells in the papers' embedding", .kind = Kind::kOfEmbedding},
      {.name = "cells of discriminants", .kind = Kind::kOfDiscriminants},
  };
  if (study.cells) {
    const CellsAsked& asked = *study.cells;
    designs.push_back({.name = absl::StrCat(asked.ask, " of ", asked.cells, " cells, drawn to ",
                                            asked.focus, ", overlap ", asked.overlap),
                       .given = asked});
  }
  return designs;
}

using CellTrials = MadeOnce<std::pair<uint64_t, CellTrial::Kind>, CellTrial>;

// The rows of anchors in the embedding are in the anchored scheme's setting.
CellTrials::Value MakeCellTrial(Stage& stage, uint64_t seed, CellTrial::Kind kind) {
  PM_ASSIGN_OR_RETURN(std::shared_ptr<const Trial> trial, stage.TrialOf(seed));
  Matrix embedded;
  if (kind == CellTrial::Kind::kOfEmbedding) {
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Scene> scene, stage.SceneOf(seed));
    PM_RETURN_IF_ERROR(scene->anchored.status());
    embedded = scene->anchored->coordinates;
  }
  return std::make_shared<const CellTrial>(std::move(trial), kind, std::move(embedded));
}

absl::StatusOr<CellPlan> PlanOf(const CellTrial& trial, const Design& design, double epsilon) {
  if (!design.given) return trial.PlanFor(epsilon, kShare, design.among);
  const auto& [cells, overlap, ask, focus] = *design.given;
  return CellPlan{.cells = cells,
                  .length = trial.LengthOf(kShare),
                  .overlap = overlap,
                  .ask = ask,
                  .focus = focus};
}

Condition ConditionOf(const std::shared_ptr<Stage>& stage,
                      const std::shared_ptr<CellTrials>& trials, const Design& design) {
  const auto run = [stage, trials, design](double epsilon, uint64_t seed,
                                           const std::string& part) -> absl::StatusOr<Answers> {
    PM_ASSIGN_OR_RETURN(
        const std::shared_ptr<const CellTrial> trial,
        trials->Get({seed, design.kind}, [&] { return MakeCellTrial(*stage, seed, design.kind); }));
    PM_ASSIGN_OR_RETURN(const CellPlan plan, PlanOf(*trial, design, epsilon));
    return trial->AskAll(plan, epsilon, part);
  };
  return {.name = design.name, .work = 3, .run = run};
}

std::string AtEach(const std::vector<std::string>& epsilons) {
  return absl::StrCat("at epsilon ", absl::StrJoin(epsilons, ", "));
}

// "0.31, 0.43, 0.68, 0.88"
std::string Means(const Sweep& sweep, const std::vector<JobResult>& results, const Metric& metric,
                  size_t design) {
  std::vector<std::string> means;
  for (size_t x = 0; x < kEpsilons.size(); ++x) {
    means.push_back(Short(sweep.BandOf(results, design, x, metric.key).mean));
  }
  return absl::StrJoin(means, ", ");
}

// ", shown to be less at epsilon 2, 4". certainty: of each difference.
std::string BesideWhatIsBuilt(const Sweep& sweep, const std::vector<JobResult>& results,
                              const Metric& metric, size_t design, double certainty) {
  std::vector<std::string> less, more;
  for (size_t x = 0; x < kEpsilons.size(); ++x) {
    if (std::isnan(sweep.BandOf(results, design, x, metric.key).mean)) continue;  // refused
    const std::optional<Band> difference =
        BandOfDifference(sweep.SamplesOf(results, design, x, metric.key),
                         sweep.SamplesOf(results, 0, x, metric.key), certainty);
    if (!difference) continue;
    if (difference->high < 0) less.push_back(Short(kEpsilons[x]));
    if (difference->low > 0) more.push_back(Short(kEpsilons[x]));
  }
  std::string words;
  if (!less.empty()) absl::StrAppend(&words, ", shown to be less ", AtEach(less));
  if (!more.empty()) absl::StrAppend(&words, ", shown to be more ", AtEach(more));
  return words.empty() ? ", not shown to differ" : words;
}

std::vector<std::string> InWords(const Sweep& sweep, size_t designs,
                                 const std::vector<JobResult>& results, const Metric& metric) {
  constexpr double kRisk = .05;  // of any difference shown where there is none
  const double certainty = 1 - kRisk / static_cast<double>((designs - 1) * kEpsilons.size());
  std::vector<std::string> words = {absl::StrCat(
      "As built, ", metric.name, " at epsilon 1, 2, 4 and 8 is ", Means(sweep, results, metric, 0),
      ". Of other designs, with differences from this where they are shown (paired t, 5 % over all "
      "of them together):")};
  for (size_t design = 1; design < designs; ++design) {
    words.push_back(absl::StrCat(
        "\"", sweep.conditions()[design].name, "\": ", Means(sweep, results, metric, design),
        BesideWhatIsBuilt(sweep, results, metric, design, certainty), "."));
  }
  return words;
}

constexpr char kBuiltInWords[] =
    "As built means cells of a k-means of the anchors' features, one asked for, drawn to the "
    "nearest; "
    "for each the items that its queries want most.";

constexpr char kGradedInWords[] =
    "Graded by rank means that the cell of rank r of K is asked for with a probability "
    "proportional to exp(-epsilon r / (K - 1)), which is pure epsilon-DP, too. No law by ranks "
    "that asks for one "
    "cell finds more than one that draws to the nearest t, as long as a cell finds the less the "
    "farther it is: what is found on average is a quotient "
    "of linear functions of the ranks' weights, and largest where each weight is the least or "
    "e^epsilon times that.";

constexpr char kSeveralInWords[] =
    "Of several cells as many are asked for as fill the share, were they equally large, and of "
    "what they have no more comes back than by the other designs.";

}  // namespace

Experiment MakeCellDesignsExperiment(std::shared_ptr<Stage> stage) {
  const auto trials = std::make_shared<CellTrials>();
  const std::vector<Design> designs = DesignsOf(stage->study());
  std::vector<Condition> conditions;
  conditions.reserve(designs.size() + 1);
  for (const Design& design : designs) conditions.push_back(ConditionOf(stage, trials, design));
  conditions.push_back(FeatureSearchCondition(stage));
  const Sweep sweep("cell-designs", std::move(conditions), kEpsilons, stage->study().seeds);
  const auto draw =
      [sweep, stage = std::move(stage), count = designs.size()](
          const std::vector<JobResult>& results) -> absl::StatusOr<std::vector<Figure>> {
    std::vector<Figure> figures;
    for (const Metric& metric : MetricsAt(stage->study().k)) {
      Figure& figure = figures.emplace_back();
      figure.id = absl::StrCat("cell-designs-", metric.name.substr(0, metric.name.find('@')));
      figure.title = absl::StrCat("Designs of cells: ", metric.name, ", 10 % returned");
      figure.panels = {sweep.PanelOf(results, metric)};
      figure.x = EpsilonAxis();
      figure.y = ShareAxis(figure.panels[0].title);
      figure.words = InWords(sweep, count, results, metric);
      for (const char* sentence : {kBuiltInWords, kGradedInWords, kSeveralInWords}) {
        figure.words.emplace_back(sentence);
      }
      sweep.AddNotes(results, &figure.words);
    }
    return figures;
  };
  return {.name = "cell-designs", .jobs = sweep.Jobs(), .draw = draw};
}

}  // namespace privatemail::client
