#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/sweep.h"
#include "common/base/status_macros.h"
#include "common/embedding/default_settings.h"

namespace privatemail::client {
namespace {

struct Change {
  std::string name;
  Asking asking = {};
  std::optional<EmbeddingSettings> settings = std::nullopt;  // other than the study's
};

enum : size_t { kAsItIs, kRandomFeature, kWrongLabel, kNoSlots };  // the first of Changes()

std::vector<Change> Changes(const Study& study) {
  std::vector<Change> changes = {
      {.name = "as it is"},
      {.name = "random feature", .asking = {.feature = Asking::Feature::kRandom}},
      {.name = "wrong label", .asking = {.label = Asking::Label::kWrong}},
      {.name = "without slots", .asking = {.slots = false}}};
  const std::pair<LabelGraphKind, const char*> graphs[] = {
      {LabelGraphKind::kDistance, "label graph distance"},
      {LabelGraphKind::kKernel, "label graph kernel"},
      {LabelGraphKind::kOneHotKernel, "label graph one-hot"}};
  for (const auto& [graph, name] : graphs) {
    if (graph == study.settings.label_graph) continue;
    EmbeddingSettings settings = study.settings;
    settings.label_graph = graph;
    settings.alpha = DefaultAlpha(graph, study.data.labels);
    // Each graph has an alpha of its own (default_settings.h): it is changed as well.
    changes.push_back(
        {.name = absl::StrCat(name, " with alpha ", Short(settings.alpha)), .settings = settings});
  }
  const std::pair<KernelConvention, const char*> kernels[] = {
      {KernelConvention::kTwoSigmaSquared, "kernel over 2 s^2"},
      {KernelConvention::kSigma, "kernel over s"},
      {KernelConvention::kSigmaSquared, "kernel over s^2"}};
  for (const auto& [kernel, name] : kernels) {
    if (kernel == study.settings.kernel) continue;
    EmbeddingSettings settings = study.settings;
    settings.kernel = kernel;
    changes.push_back({.name = name, .settings = settings});
  }
  return changes;
}

// x: 1 with noise, 0 without.
Condition ConditionOf(const std::shared_ptr<Stage>& stage, const Change& change) {
  const auto run = [stage, change](double noise, uint64_t seed,
                                   const std::string& /*part*/) -> absl::StatusOr<Answers> {
    const Study& study = stage->study();
    Asking asking = change.asking;
    if (noise != 0) asking.cost = PrivacyCost{.epsilon = study.epsilon, .delta = study.delta};
    if (!change.settings) {
      PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Scene> scene, stage->SceneOf(seed));
      return AskAll(*scene, asking);
    }
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Trial> trial, stage->TrialOf(seed));
    return BuildAndAskAll(trial, *change.settings, asking);
  };
  return {.name = change.name, .fixed = false, .work = change.settings ? 2. : 1., .run = run};
}

FigurePanel Bars(const Sweep& sweep, const std::vector<JobResult>& results, const Study& study,
                 const Metric& metric) {
  FigurePanel panel{.title = metric.title};
  for (size_t x = 0; x < 2; ++x) {
    FigureSeries series{
        .name = x == 0 ? absl::StrCat("epsilon ", Short(study.epsilon)) : "without noise",
        .mark = FigureSeries::Mark::kBars};
    for (size_t c = 0; c < sweep.conditions().size(); ++c) {
      series.points.push_back(
          PointOf(static_cast<double>(c), sweep.BandOf(results, c, x, metric.key)));
    }
    panel.series.push_back(std::move(series));
  }
  return panel;
}

std::vector<double> Minus(std::vector<double> one, const std::vector<double>& other) {
  for (size_t i = 0; i < one.size(); ++i) one[i] -= other[i];
  return one;
}

std::string ShareInWords(const Band& share) {
  return share.high - share.low > 1e-6
             ? WithBand(share)
             : absl::StrCat(Short(share.mean),
                            " (the same each time, so that there is no interval)");
}

// "0.8 instead of 0.6 (by 0.2 (0.1 to 0.3))": paired, of the same targets.
std::string BesideAsItIs(const Sweep& sweep, const std::vector<JobResult>& results,
                         size_t condition, size_t x, const Metric& metric) {
  const auto mean = [&](size_t c) { return sweep.BandOf(results, c, x, metric.key).mean; };
  std::string words = absl::StrCat(Short(mean(condition)), " instead of ", Short(mean(kAsItIs)));
  if (std::isnan(mean(condition)) || std::isnan(mean(kAsItIs))) return words;
  const std::optional<Band> more =
      BandOfDifference(sweep.SamplesOf(results, condition, x, metric.key),
                       sweep.SamplesOf(results, kAsItIs, x, metric.key), .95);
  if (more) absl::StrAppend(&words, " (by ", WithBand(*more), ")");
  return words;
}

// The share of the gain over a wrong label that a random feature under the right label retains.
std::string LabelInWords(const Sweep& sweep, const std::vector<JobResult>& results,
                         const Metric& metric) {
  const auto samples = [&](size_t condition) {
    return sweep.SamplesOf(results, condition, 0, metric.key);
  };
  const auto mean = [&](size_t condition, size_t x) {
    return Short(sweep.BandOf(results, condition, x, metric.key).mean);
  };
  const std::vector<double> wrong = samples(kWrongLabel);
  const std::optional<Band> share =
      BandOfRatio(Minus(samples(kRandomFeature), wrong), Minus(samples(kAsItIs), wrong));
  return absl::StrCat(
      share ? absl::StrCat("The label alone gives ", ShareInWords(*share), " of what ", metric.name,
                           " has above that with a wrong label. It is ")
            : absl::StrCat("What the label alone gives of ", metric.name,
                           " cannot be said from these data: with the right one it is not shown to "
                           "be better than "
                           "with a wrong one. It is "),
      mean(kAsItIs, 0), " with the target's own feature and label, ", mean(kRandomFeature, 0),
      " with a random feature, ", mean(kWrongLabel, 0), " with a wrong label; without noise ",
      mean(kAsItIs, 1), ".");
}

std::vector<std::string> Words(const Sweep& sweep, const std::vector<JobResult>& results,
                               const Study& study) {
  std::vector<std::string> words;
  const auto mean = [&](size_t condition, size_t x, const Metric& metric) {
    return sweep.BandOf(results, condition, x, metric.key).mean;
  };
  const std::vector<Metric> metrics = MetricsAt(study.k);
  const bool known = !std::isnan(mean(kAsItIs, 0, metrics[0])) &&
                     !std::isnan(mean(kRandomFeature, 0, metrics[0])) &&
                     !std::isnan(mean(kWrongLabel, 0, metrics[0]));  // else refused
  if (known) {
    for (const Metric& metric : metrics) words.push_back(LabelInWords(sweep, results, metric));
    words.push_back(
        absl::StrCat("Intervals of such shares, where there are any, are Fieller's, 95 %, over ",
                     study.seeds > 1 ? "splits."
                                     : "the targets of the one split, about which alone they "
                                       "speak."));
  }
  const Metric& recall = metrics[0];
  if (!std::isnan(mean(kNoSlots, 0, recall))) {
    words.push_back(absl::StrCat(
        "Without slots ", recall.name, " is ", BesideAsItIs(sweep, results, kNoSlots, 0, recall),
        ", and the target's class is told openly: the label graph of such a "
        "release has the target's label in it, so its noise guarantees "
        "nothing about the class."));
  }
  for (size_t c = kNoSlots + 1; c < sweep.conditions().size(); ++c) {
    if (std::isnan(mean(c, 0, recall)) && std::isnan(mean(c, 1, recall))) continue;  // refused
    words.push_back(absl::StrCat("With ", sweep.conditions()[c].name, ", ", recall.name, " is ",
                                 BesideAsItIs(sweep, results, c, 0, recall), " at epsilon ",
                                 Short(study.epsilon), " and ",
                                 BesideAsItIs(sweep, results, c, 1, recall), " without noise."));
  }
  words.emplace_back(
      "Differences from as it is have Student's 95 % over pairs of the same targets.");
  words.emplace_back(kStartsDiffer);
  words.push_back(absl::StrCat(
      "As it is, alpha is ", Short(study.settings.alpha),
      "; another label graph takes the alpha that `privatemail collection create` takes for it."));
  sweep.AddNotes(results, &words);
  return words;
}

}  // namespace

Experiment MakeAblationExperiment(std::shared_ptr<Stage> stage) {
  std::vector<Condition> conditions;
  for (const Change& change : Changes(stage->study())) {
    conditions.push_back(ConditionOf(stage, change));
  }
  const Study& study = stage->study();
  const Sweep sweep(absl::StrCat("ablation at ", study.epsilon), std::move(conditions), {1, 0},
                    study.seeds);
  const auto draw =
      [sweep, stage](const std::vector<JobResult>& results) -> absl::StatusOr<std::vector<Figure>> {
    const Study& study = stage->study();
    Figure figure{.id = "ablation",
                  .title = "What recall owes to the features, the label and the noise",
                  .y = ShareAxis("mean over targets"),
                  .words = Words(sweep, results, study)};
    for (const Condition& condition : sweep.conditions()) {
      figure.x.categories.push_back(condition.name);
    }
    for (const Metric& metric : MetricsAt(study.k)) {
      figure.panels.push_back(Bars(sweep, results, study, metric));
    }
    return std::vector<Figure>{std::move(figure)};
  };
  return {.name = "ablation", .jobs = sweep.Jobs(), .draw = draw};
}

}  // namespace privatemail::client
