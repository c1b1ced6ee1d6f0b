#include "client/evaluation/experiments/tune.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/figure_parts.h"
#include "client/evaluation/sweep.h"
#include "common/base/printable.h"
#include "common/base/thread_pool.h"
#include "common/base/status_macros.h"
#include "common/embedding/default_alpha.h"

namespace privatemail::client {
namespace {

constexpr char kName[] = "tune";
constexpr size_t kShown = 10;
constexpr double kAsGood = .01;  // in precision

// Every combination of some values of each.
std::vector<EmbeddingSettings> Grid(const Study& study) {
  const EmbeddingSettings& base = study.settings;
  std::vector<double> alphas = {base.alpha / 2, base.alpha, 2 * base.alpha};
  if (!(base.alpha > 0)) {
    const double usual = DefaultAlpha(base.label_graph, LabelSpan(study.data.labels));
    alphas = {0, usual / 2, usual};
  }
  std::vector<EmbeddingSettings> grid;
  for (const int dim : {2, 4}) {
    for (const double alpha : alphas) {
      for (const double bandwidth : {1., 3., 6.}) {
        for (const int steps : {5, 10, 15}) {
          EmbeddingSettings settings = base;
          settings.embedding_dim = dim;
          settings.alpha = alpha;
          settings.kernel_bandwidth = bandwidth;
          settings.steps = steps;
          grid.push_back(settings);
        }
      }
    }
  }
  return grid;
}

// As they are given on the command line.
std::string FlagsOf(const EmbeddingSettings& s) {
  return absl::StrCat("--dim ", s.embedding_dim, " --alpha ", FormatExact(s.alpha), " --bandwidth ",
                      FormatExact(s.kernel_bandwidth), " --steps ", s.steps);
}

struct Tried {
  size_t condition = 0;
  std::string flags;
  Band precision;
  Band fidelity;
};

// Those that were not refused, in the order in which they are recommended.
std::vector<Tried> Ranked(const Sweep& sweep, const std::vector<JobResult>& results) {
  std::vector<Tried> tried;
  for (size_t c = 0; c < sweep.conditions().size(); ++c) {
    const Band precision = sweep.BandOf(results, c, 0, "class_share");
    if (std::isnan(precision.mean)) continue;
    tried.push_back({.condition = c,
                     .flags = sweep.conditions()[c].name,
                     .precision = precision,
                     .fidelity = sweep.BandOf(results, c, 0, "fidelity")});
  }
  for (auto place = tried.begin(); place != tried.end(); ++place) {
    double most = 0;
    for (auto one = place; one != tried.end(); ++one) most = std::max(most, one->precision.mean);
    const auto best =
        std::max_element(place, tried.end(), [&](const Tried& one, const Tried& other) {
          const auto fidelity = [&](const Tried& of) {
            return of.precision.mean >= most - kAsGood ? of.fidelity.mean : -1;
          };
          return fidelity(one) < fidelity(other);
        });
    std::rotate(place, best, best + 1);
  }
  return tried;
}

// The best settings on other splits than those that chose them, of the same rows.
absl::StatusOr<std::string> ScoredAgain(const Condition& best, const Study& study) {
  std::vector<std::vector<double>> precision(static_cast<size_t>(study.seeds));
  std::vector<std::vector<double>> fidelity = precision;
  const auto ask = [&](int i, TaskGroup& /*shared*/) -> absl::Status {
    const auto at = static_cast<size_t>(i);
    PM_ASSIGN_OR_RETURN(const Answers answers,
                        best.run(0, static_cast<uint64_t>(study.seeds) + at + 1,
                                 absl::StrCat(kName, "/", best.name)));
    precision[at] = answers.class_share;
    fidelity[at] = answers.fidelity;
    return absl::OkStatus();
  };
  const absl::Status status = ParallelFor(static_cast<int>(study.seeds), ask, nullptr);
  if (absl::IsFailedPrecondition(status)) {
    return absl::StrCat("On fresh splits it cannot be measured (", status.message(), ").");
  }
  PM_RETURN_IF_ERROR(status);
  return absl::StrCat("On ", study.seeds, " fresh splits, which deal the same rows anew, its ",
                      "precision@", study.k, " is ", WithBand(BandOfScores(precision, 1)),
                      " and its fidelity@", study.k, " ", WithBand(BandOfScores(fidelity, 1)), ".");
}

FigurePanel BestOf(const std::vector<Tried>& ranked, int64_t k) {
  FigurePanel panel;
  for (const auto& [name, band] :
       {std::pair{"precision@", &Tried::precision}, std::pair{"fidelity@", &Tried::fidelity}}) {
    FigureSeries series{
        .name = absl::StrCat(name, k), .mark = FigureSeries::Mark::kBars, .points = {}};
    for (size_t i = 0; i < std::min(kShown, ranked.size()); ++i) {
      series.points.push_back(PointOf(static_cast<double>(i), ranked[i].*band));
    }
    panel.series.push_back(std::move(series));
  }
  return panel;
}

absl::StatusOr<std::vector<std::string>> Words(const Sweep& sweep, const std::vector<Tried>& ranked,
                                               const Study& study) {
  const Tried& best = ranked.front();
  const auto worst =
      std::min_element(ranked.begin(), ranked.end(), [](const Tried& one, const Tried& other) {
        return one.precision.mean < other.precision.mean;
      });
  PM_ASSIGN_OR_RETURN(std::string again, ScoredAgain(sweep.conditions()[best.condition], study));
  return std::vector<std::string>{
      absl::StrCat("The best at epsilon ", Short(study.epsilon), " is ", best.flags, "."),
      std::move(again),
      absl::StrCat("The bars are of the splits that chose, where the best of ", ranked.size(),
                   " tends to look better than it is. The least precision@", study.k,
                   " among them is ", WithBand(worst->precision), ", with ", worst->flags, "."),
      absl::StrCat("Of every class ", study.sizes.anchors_per_class,
                   " rows were anchors here. With another number of anchors, as in the "
                   "collection that the settings are for, a release has other noise.")};
}

absl::StatusOr<Figure> Draw(const Sweep& sweep, const std::vector<JobResult>& results,
                            const Study& study) {
  const std::vector<Tried> ranked = Ranked(sweep, results);
  Figure figure{.id = kName,
                .title = absl::StrCat("The best of ", sweep.conditions().size(),
                                      " settings, on the rows given alone"),
                .x = {},
                .y = ShareAxis("mean over targets"),
                .panels = {BestOf(ranked, study.k)},
                .words = {}};
  for (size_t i = 0; i < std::min(kShown, ranked.size()); ++i) {
    figure.x.categories.push_back(ranked[i].flags);
  }
  if (ranked.empty()) {
    figure.panels = {FigurePanel{}};  // bars need something to stand over
  } else {
    PM_ASSIGN_OR_RETURN(figure.words, Words(sweep, ranked, study));
  }
  figure.words.push_back(
      "Only the rows given were read; if they are a collection's public anchors, this spends no "
      "budget.");
  figure.words.emplace_back(kStartsDiffer);
  sweep.AddNotes(results, &figure.words);
  return figure;
}

}  // namespace

absl::StatusOr<Study> TuningStudy(const Study& study) {
  std::map<int32_t, int64_t> count;
  for (const int32_t label : study.data.labels) ++count[label];
  int64_t least = count.empty() ? 0 : count.begin()->second;
  for (const auto& [label, rows] : count) {
    least = std::min(least, rows);
    if (rows >= 4) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "rows to tune on must be at least 4 in every class, but class ", label, " has ", rows));
  }
  Study tuning = study;
  tuning.sizes.anchors_per_class = 2 * least / 5;
  tuning.sizes.targets = std::min<int64_t>(
      study.sizes.targets, static_cast<int64_t>(count.size()) * std::max<int64_t>(1, least / 5));
  return tuning;
}

Experiment MakeTuneExperiment(std::shared_ptr<Stage> stage) {
  const Study& study = stage->study();
  std::vector<Condition> conditions;
  for (const EmbeddingSettings& settings : Grid(study)) {
    conditions.push_back(BuildingCondition(
        FlagsOf(settings), stage, [settings](double /*x*/) { return settings; },
        {.cost = PrivacyCost{.epsilon = study.epsilon, .delta = study.delta}}, /*fixed=*/true));
  }
  const Sweep sweep(kName, std::move(conditions), {0}, study.seeds);
  const auto draw =
      [stage, sweep](const std::vector<JobResult>& results) -> absl::StatusOr<std::vector<Figure>> {
    PM_ASSIGN_OR_RETURN(Figure figure, Draw(sweep, results, stage->study()));
    return std::vector<Figure>{std::move(figure)};
  };
  return {.name = kName, .jobs = sweep.Jobs(), .draw = draw};
}

}  // namespace privatemail::client
