#include "client/evaluation/experiments/settings.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/figure_parts.h"
#include "client/evaluation/sweep.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

// One of the settings, and the values that it is given.
struct Knob {
  const char* id;
  const char* name;
  const char* flag;
  std::vector<double> values;
  void (*set)(EmbeddingSettings& settings, double value);
};

std::vector<Knob> Knobs(const EmbeddingSettings& base) {
  const double alpha = base.alpha;
  return {{"dim",
           "embedding_dim (the papers' k)",
           "--dim",
           {2, 3, 4, 6, 8},
           [](EmbeddingSettings& s, double value) { s.embedding_dim = static_cast<int>(value); }},
          {"alpha",
           "alpha",
           "--alpha",
           {alpha / 4, alpha / 2, alpha, 2 * alpha, 4 * alpha},
           [](EmbeddingSettings& s, double value) { s.alpha = value; }},
          {"bandwidth",
           "kernel_bandwidth (s)",
           "--bandwidth",
           {.5, 1, 2, 4, 6, 10},
           [](EmbeddingSettings& s, double value) { s.kernel_bandwidth = value; }}};
}

absl::StatusOr<Answers> AskWith(Stage& stage, const EmbeddingSettings& settings, bool noise,
                                uint64_t seed, const std::string& part) {
  const Study& study = stage.study();
  Asking asking;
  if (noise) asking.cost = PrivacyCost{.epsilon = study.epsilon, .delta = study.delta};
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Trial> trial, stage.TrialOf(seed));
  return BuildAndAskAll(trial, settings, asking, part);
}

Sweep SweepOf(const std::shared_ptr<Stage>& stage, const Knob& knob) {
  const Study& study = stage->study();
  std::vector<Condition> conditions;
  for (const bool noise : {true, false}) {
    const auto run = [stage, knob, noise](double value, uint64_t seed, const std::string& part) {
      EmbeddingSettings settings = stage->study().settings;
      knob.set(settings, value);
      return AskWith(*stage, settings, noise, seed, part);
    };
    conditions.push_back({.name = noise ? absl::StrCat("epsilon ", study.epsilon) : "without noise",
                          .fixed = false,
                          .work = 2,
                          .run = run});
  }
  return {absl::StrCat("settings/", knob.id), std::move(conditions), knob.values, study.seeds};
}

Figure Draw(const Knob& knob, const Sweep& sweep, const std::vector<JobResult>& results,
            const Study& study) {
  Figure figure{.id = absl::StrCat("settings-", knob.id),
                .title = absl::StrCat("What comes back against ", knob.name),
                .x = {},
                .y = ShareAxis("mean over targets"),
                .panels = {},
                .words = {}};
  figure.x.label = knob.name;
  figure.x.logarithmic = std::string(knob.id) != "dim";
  for (const Metric& metric : MetricsAt(study.k)) {
    figure.panels.push_back(sweep.PanelOf(results, metric));
    std::vector<double> means;
    for (size_t x = 0; x < knob.values.size(); ++x) {
      means.push_back(sweep.BandOf(results, 0, x, metric.key).mean);
    }
    const auto [least, most] = std::minmax_element(means.begin(), means.end());
    const auto at = [&](auto place) {
      return Short(knob.values[static_cast<size_t>(place - means.begin())]);
    };
    figure.words.push_back(absl::StrCat("At epsilon ", Short(study.epsilon), " ", metric.name,
                                        " lies between ", Short(*least), " at ", knob.name, " ",
                                        at(least), " and ", Short(*most), " at ", at(most), "."));
  }
  sweep.AddNotes(results, &figure.words);
  return figure;
}

// Every combination of some values of each knob, and of steps.
std::vector<EmbeddingSettings> Grid(const EmbeddingSettings& base) {
  std::vector<EmbeddingSettings> grid;
  for (const int dim : {2, 4}) {
    for (const double factor : {.5, 1., 2.}) {
      for (const double bandwidth : {1., 3., 6.}) {
        for (const int steps : {5, 10, 15}) {
          EmbeddingSettings settings = base;
          settings.embedding_dim = dim;
          settings.alpha = factor * base.alpha;
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
  return absl::StrCat("--dim ", s.embedding_dim, " --alpha ", Short(s.alpha), " --bandwidth ",
                      Short(s.kernel_bandwidth), " --steps ", s.steps);
}

struct Tried {
  size_t place = 0;  // in the grid
  Band precision;
  Band fidelity;
};

bool Better(const Tried& one, const Tried& other) {
  const int one_hundredths = static_cast<int>(100 * one.precision.mean);
  const int other_hundredths = static_cast<int>(100 * other.precision.mean);
  if (one_hundredths != other_hundredths) return one_hundredths > other_hundredths;
  return one.fidelity.mean > other.fidelity.mean;
}

Figure DrawTuning(const std::vector<EmbeddingSettings>& grid, const Sweep& sweep,
                  const std::vector<JobResult>& results, const Study& study) {
  std::vector<Tried> tried;
  for (size_t i = 0; i < grid.size(); ++i) {
    tried.push_back({.place = i,
                     .precision = sweep.BandOf(results, 0, i, "class_share"),
                     .fidelity = sweep.BandOf(results, 0, i, "fidelity")});
  }
  std::stable_sort(tried.begin(), tried.end(), Better);
  Figure figure{.id = "tune",
                .title = absl::StrCat("The best of ", grid.size(), " settings, on anchors alone"),
                .x = {},
                .y = ShareAxis("mean over targets"),
                .panels = {FigurePanel{}},
                .words = {}};
  const std::string at_k = absl::StrCat("@", study.k);
  FigureSeries precision{
      .name = "precision" + at_k, .mark = FigureSeries::Mark::kBars, .points = {}};
  FigureSeries fidelity{.name = "fidelity" + at_k, .mark = FigureSeries::Mark::kBars, .points = {}};
  for (size_t i = 0; i < std::min<size_t>(10, tried.size()); ++i) {
    figure.x.categories.push_back(FlagsOf(grid[tried[i].place]));
    precision.points.push_back(PointOf(static_cast<double>(i), tried[i].precision));
    fidelity.points.push_back(PointOf(static_cast<double>(i), tried[i].fidelity));
  }
  figure.panels[0].series = {precision, fidelity};
  figure.words = {absl::StrCat("The best at epsilon ", Short(study.epsilon), " is ",
                               FlagsOf(grid[tried.front().place]), ", with precision", at_k, " ",
                               WithBand(tried.front().precision), " and fidelity", at_k, " ",
                               WithBand(tried.front().fidelity), "; the worst is ",
                               FlagsOf(grid[tried.back().place]), ", with precision", at_k, " ",
                               WithBand(tried.back().precision), "."),
                  "Only anchors were read, which are public: no budget was spent."};
  sweep.AddNotes(results, &figure.words);
  return figure;
}

}  // namespace

Experiment MakeSettingsExperiment(std::shared_ptr<Stage> stage) {
  const std::vector<Knob> knobs = Knobs(stage->study().settings);
  std::vector<Sweep> sweeps;
  Experiment experiment{.name = "settings", .jobs = {}, .draw = nullptr};
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
        "anchors to tune on must be at least 4 in every class, but class ", label, " has ", rows));
  }
  Study tuning = study;
  tuning.sizes.anchors_per_class = 2 * least / 5;
  tuning.sizes.targets = std::min<int64_t>(
      study.sizes.targets, static_cast<int64_t>(count.size()) * std::max<int64_t>(1, least / 5));
  return tuning;
}

Experiment MakeTuneExperiment(std::shared_ptr<Stage> stage) {
  const std::vector<EmbeddingSettings> grid = Grid(stage->study().settings);
  std::vector<double> places(grid.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<double>(i);
  const auto run = [stage, grid](double place, uint64_t seed, const std::string& part) {
    return AskWith(*stage, grid[static_cast<size_t>(place)], /*noise=*/true, seed, part);
  };
  const Sweep sweep("tune", {{.name = "tune", .fixed = false, .work = 1, .run = run}}, places,
                    stage->study().seeds);
  const auto draw = [stage, grid, sweep](const std::vector<JobResult>& results) {
    return std::vector<Figure>{DrawTuning(grid, sweep, results, stage->study())};
  };
  return {.name = "tune", .jobs = sweep.Jobs(), .draw = draw};
}

}  // namespace privatemail
