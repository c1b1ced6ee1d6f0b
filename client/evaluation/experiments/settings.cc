#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/sweep.h"
#include "client/flags/names.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "common/embedding/default_settings.h"

namespace privatemail::client {
namespace {

struct Knob {
  const char* id;
  const char* name;
  bool logarithmic;
  std::vector<double> values;
  void (*set)(EmbeddingSettings& settings, double value);
};

// Around the study's. Around 0 there are no factors: then up to what is usual for the labels.
std::vector<double> Alphas(const Study& study) {
  std::vector<double> alphas;
  const double alpha = study.settings.alpha;
  const double unit =
      alpha > 0 ? alpha : DefaultAlpha(study.settings.label_graph, study.data.labels);
  if (!(alpha > 0)) alphas.push_back(0);
  for (const double factor : {.25, .5, 1., 2., 4.}) alphas.push_back(factor * unit);
  return alphas;
}

std::vector<Knob> Knobs(const Study& study) {
  return {{"dim",
           "embedding_dim (the papers' k)",
           /*logarithmic=*/false,
           {2, 3, 4, 6, 8},
           [](EmbeddingSettings& s, double value) { s.embedding_dim = static_cast<int>(value); }},
          {"alpha", "alpha", /*logarithmic=*/study.settings.alpha > 0, Alphas(study),
           [](EmbeddingSettings& s, double value) { s.alpha = value; }},
          {"bandwidth",
           "kernel_bandwidth (s)",
           /*logarithmic=*/true,
           {.5, 1, 2, 4, 6, 10},
           [](EmbeddingSettings& s, double value) { s.kernel_bandwidth = value; }}};
}

Sweep SweepOf(const std::shared_ptr<Stage>& stage, const Knob& knob) {
  const Study& study = stage->study();
  const auto settings = [stage, knob](double value) {
    EmbeddingSettings with = stage->study().settings;
    knob.set(with, value);
    return with;
  };
  return {absl::StrCat("settings/", knob.id),
          {BuildingCondition(absl::StrCat("epsilon ", study.epsilon), stage, settings,
                             {.cost = PrivacyCost{.epsilon = study.epsilon, .delta = study.delta}}),
           BuildingCondition("without noise", stage, settings, {})},
          knob.values,
          study.seeds};
}

std::string SpanInWords(const std::vector<FigurePoint>& points, const std::string& metric,
                        const std::string& knob) {
  const auto [least, most] = std::minmax_element(
      points.begin(), points.end(),
      [](const FigurePoint& one, const FigurePoint& other) { return one.y < other.y; });
  const auto at = [&](const FigurePoint& point) {
    return absl::StrCat(WithBand(BandAt(point)), " at ", knob, " ", Short(point.x));
  };
  return absl::StrCat(metric, " lies between ", at(*least), " and ", at(*most), ".");
}

Figure Draw(const Knob& knob, const Sweep& sweep, const std::vector<JobResult>& results,
            const Study& study) {
  Figure figure{.id = absl::StrCat("settings-", knob.id),
                .title = absl::StrCat("What comes back against ", knob.name),
                .y = ShareAxis("mean over targets")};
  figure.x.label = knob.name;
  figure.x.logarithmic = knob.logarithmic;
  for (const Metric& metric : MetricsAt(study.k)) {
    figure.panels.push_back(sweep.PanelOf(results, metric));
    std::vector<FigurePoint> points = figure.panels.back().series.front().points;
    std::erase_if(points, [](const FigurePoint& point) { return std::isnan(point.y); });
    if (points.empty()) continue;  // refused
    figure.words.push_back(absl::StrCat("At epsilon ", Short(study.epsilon), " ",
                                        SpanInWords(points, metric.name, knob.name), " ",
                                        sweep.DifferencesInWords(results, 0, metric.key)));
  }
  figure.words.emplace_back(kStartsDiffer);
  sweep.AddNotes(results, &figure.words);
  return figure;
}

constexpr char kName[] = "tune";
constexpr size_t kShown = 10;
constexpr double kAsGood = .01;  // in precision

std::vector<EmbeddingSettings> Grid(const Study& study) {
  const EmbeddingSettings& base = study.settings;
  std::vector<double> alphas = {base.alpha / 2, base.alpha, 2 * base.alpha};
  if (!(base.alpha > 0)) {
    const double usual = DefaultAlpha(base.label_graph, study.data.labels);
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

std::string FlagsOf(const EmbeddingSettings& s) {
  return absl::StrCat("--dim ", s.embedding_dim, " --alpha ", FormatExact(s.alpha), " --bandwidth ",
                      FormatExact(s.kernel_bandwidth), " --steps ", s.steps, " --label-graph ",
                      cli::NameOf(cli::kLabelGraphNames, s.label_graph), " --start ",
                      cli::NameOf(cli::kStartNames, s.start));
}

struct Tried {
  size_t condition = 0;
  std::string flags;
  Band precision;
  Band fidelity;
};

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
    FigureSeries series{.name = absl::StrCat(name, k), .mark = FigureSeries::Mark::kBars};
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
                .y = ShareAxis("mean over targets"),
                .panels = {BestOf(ranked, study.k)}};
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

Experiment MakeSettingsExperiment(std::shared_ptr<Stage> stage) {
  const std::vector<Knob> knobs = Knobs(stage->study());
  std::vector<Sweep> sweeps;
  Experiment experiment{.name = "settings"};
  for (const Knob& knob : knobs) {
    sweeps.push_back(SweepOf(stage, knob));
    for (Job& job : sweeps.back().Jobs()) {
      job.key = absl::StrCat(knob.id, ": ", job.key);
      experiment.jobs.push_back(std::move(job));
    }
  }
  experiment.draw =
      [stage, knobs,
       sweeps](const std::vector<JobResult>& results) -> absl::StatusOr<std::vector<Figure>> {
    std::vector<Figure> figures;
    auto first = results.begin();
    for (size_t i = 0; i < knobs.size(); ++i) {
      const auto last = first + static_cast<std::ptrdiff_t>(sweeps[i].Jobs().size());
      figures.push_back(Draw(knobs[i], sweeps[i], {first, last}, stage->study()));
      first = last;
    }
    return figures;
  };
  return experiment;
}

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
