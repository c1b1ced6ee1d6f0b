#include "client/evaluation/experiments/convergence.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/figure_parts.h"
#include "client/evaluation/sweep.h"
#include "common/base/status_macros.h"
#include "common/numerics/plan_affinity.h"
#include "common/numerics/smlq.h"
#include "server/embedding/embed.h"

namespace privatemail {
namespace {

constexpr int kIterations = 15;

Condition StepsCondition(const std::shared_ptr<Stage>& stage, std::string name, Asking asking) {
  const auto run = [stage, asking](double steps, uint64_t seed,
                                   const std::string& part) -> absl::StatusOr<Answers> {
    EmbeddingSettings settings = stage->study().settings;
    settings.steps = static_cast<int>(steps);
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Trial> trial, stage->TrialOf(seed));
    return BuildAndAskAll(trial, settings, asking, part);
  };
  return {.name = std::move(name), .fixed = false, .work = 2, .run = run};
}

// The objective after each iteration of the server from one start: `as_defined` of the iterate
// itself, `scaled` of the iterate at Frobenius norm sqrt(n), divided by n. The iteration is linear,
// so scaling it on the way changes its size alone.
absl::StatusOr<JobResult> Objectives(Stage& stage, uint64_t seed) {
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Scene> scene, stage.SceneOf(seed));
  const DataSplit& split = scene->trial->split;
  const PublicParameters& parameters = scene->joint.parameters;
  const EmbeddingSettings& settings = parameters.settings;
  Matrix rows(split.gallery.features.rows() + split.anchors.features.rows(),
              split.gallery.features.cols());
  rows << split.gallery.features, split.anchors.features;
  std::vector<int32_t> labels = split.gallery.labels;
  labels.insert(labels.end(), split.anchors.labels.begin(), split.anchors.labels.end());
  const Eigen::Index n = rows.rows();
  const LabelGraph label_graph(labels, settings.label_graph, settings.KernelDenominator());
  const auto feature_graph =
      MakeAffinity(PlanEmbedding(parameters, n), std::make_shared<MatrixPoints>(std::move(rows)),
                   settings.KernelDenominator());
  Matrix z =
      DeterministicStart(Fingerprint(parameters), n, settings.embedding_dim, settings.start_stddev);
  JobResult result;
  for (int step = 0; step < kIterations; ++step) {
    Vector degrees;
    PM_ASSIGN_OR_RETURN(z, SmlqIterate(std::move(z), *feature_graph, label_graph, settings.alpha, 1,
                                       /*normalise=*/false, nullptr, &degrees));
    PM_ASSIGN_OR_RETURN(const double objective,
                        SmlqObjective(z, *feature_graph, degrees, label_graph, settings.alpha));
    result["as_defined"].push_back(objective);
    result["scaled"].push_back(objective / z.squaredNorm());
  }
  return result;
}

// Iterations after which it is larger than before.
int Rises(const std::vector<double>& objective) {
  int rises = 0;
  for (size_t i = 1; i < objective.size(); ++i) rises += objective[i] > objective[i - 1] ? 1 : 0;
  return rises;
}

std::string Monotone(const std::vector<JobResult>& results, const char* key,
                     const std::string& what) {
  int rises = 0;
  for (const JobResult& result : results) rises += Rises(result.at(key));
  const auto steps = static_cast<int>(results.size()) * (kIterations - 1);
  return rises == 0 ? absl::StrCat(what, " never rose in ", steps, " iterations of ",
                                   results.size(), " runs.")
                    : absl::StrCat(what, " is not monotone: it rose in ", rises, " of ", steps,
                                   " iterations of ", results.size(), " runs.");
}

Figure DrawObjective(const std::vector<JobResult>& results) {
  Figure figure{.id = "convergence-objective",
                .title = "The server's objective against iterations",
                .x = {},
                .y = {},
                .panels = {FigurePanel{}},
                .words = {}};
  figure.x.label = "iterations";
  figure.y.label = "objective at norm sqrt(n), divided by n";
  FigureSeries& series = figure.panels[0].series.emplace_back();
  series.name = "objective";
  for (size_t i = 0; i < kIterations; ++i) {
    std::vector<double> of_runs;
    for (const JobResult& result : results) of_runs.push_back(result.at("scaled")[i]);
    const auto [low, high] = std::minmax_element(of_runs.begin(), of_runs.end());
    double sum = 0;
    for (const double value : of_runs) sum += value;
    series.points.push_back({.x = static_cast<double>(i + 1),
                             .y = sum / static_cast<double>(of_runs.size()),
                             .low = *low,
                             .high = *high});
  }
  figure.words = {
      Monotone(results, "as_defined", "The objective as the papers define it, of the iterate"),
      Monotone(results, "scaled", "At constant norm, as drawn, the objective"),
      absl::StrCat("As drawn it is ", Short(series.points.front().y),
                   " after the first iteration, ", Short(series.points[4].y),
                   " after the fifth and ", Short(series.points.back().y), " after ", kIterations,
                   ", as a mean over runs."),
      absl::StrCat("Band: from the least to the greatest of ", results.size(),
                   " runs, one a split.")};
  return figure;
}

Figure DrawScores(const Sweep& sweep, const std::vector<JobResult>& results, const Study& study) {
  Figure figure{.id = "convergence-recall",
                .title = "What comes back against iterations",
                .x = {},
                .y = ShareAxis("mean over targets"),
                .panels = {},
                .words = {}};
  figure.x.label = "iterations T, of the server and after a release";
  const Metric recall = MetricsAt(study.k)[0];
  for (const Metric& metric : MetricsAt(study.k)) {
    figure.panels.push_back(sweep.PanelOf(results, metric));
  }
  for (size_t c = 0; c < 2; ++c) {
    std::vector<double> means;
    for (size_t x = 0; x < sweep.xs().size(); ++x) {
      means.push_back(sweep.BandOf(results, c, x, recall.key).mean);
    }
    const double most = *std::max_element(means.begin(), means.end());
    size_t first = 0;
    while (means[first] < .95 * most) ++first;
    figure.words.push_back(
        absl::StrCat("PrivateMail ", c == 0 ? "at " : "", sweep.conditions()[c].name, ": ",
                     recall.name, " is at most ", Short(most), " and reaches 95 % of that with ",
                     sweep.xs()[first], " iterations."));
  }
  sweep.AddNotes(results, &figure.words);
  return figure;
}

}  // namespace

Experiment MakeConvergenceExperiment(std::shared_ptr<Stage> stage) {
  const Study& study = stage->study();
  const Sweep sweep(
      "convergence",
      {StepsCondition(stage, absl::StrCat("epsilon ", study.epsilon),
                      {.cost = PrivacyCost{.epsilon = study.epsilon, .delta = study.delta}}),
       StepsCondition(stage, "without noise", {}), ChanceCondition(stage)},
      {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15}, study.seeds);
  Experiment experiment{.name = "convergence", .jobs = sweep.Jobs(), .draw = nullptr};
  const size_t of_scores = experiment.jobs.size();
  for (int64_t seed = 1; seed <= study.seeds; ++seed) {
    experiment.jobs.push_back(
        {.key = absl::StrCat("objective, seed ", seed), .work = 3, .run = [stage, seed] {
           return Objectives(*stage, static_cast<uint64_t>(seed));
         }});
  }
  experiment.draw =
      [stage, sweep,
       of_scores](const std::vector<JobResult>& results) -> absl::StatusOr<std::vector<Figure>> {
    const auto middle = results.begin() + static_cast<std::ptrdiff_t>(of_scores);
    return std::vector<Figure>{DrawScores(sweep, {results.begin(), middle}, stage->study()),
                               DrawObjective({middle, results.end()})};
  };
  return experiment;
}

}  // namespace privatemail
