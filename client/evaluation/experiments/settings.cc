#include "client/evaluation/experiments/settings.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/figure_parts.h"
#include "client/evaluation/sweep.h"
#include "common/embedding/default_alpha.h"

namespace privatemail::client {
namespace {

// One of the settings, and the values that it is given.
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
      alpha > 0 ? alpha : DefaultAlpha(study.settings.label_graph, LabelSpan(study.data.labels));
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
                .x = {},
                .y = ShareAxis("mean over targets"),
                .panels = {},
                .words = {}};
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

}  // namespace

Experiment MakeSettingsExperiment(std::shared_ptr<Stage> stage) {
  const std::vector<Knob> knobs = Knobs(stage->study());
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

}  // namespace privatemail::client
