#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/sweep.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/embedding/alignment.h"
#include "common/embedding/embed_rows.h"
#include "common/embedding/smlq.h"

namespace privatemail::client {
namespace {

constexpr int kIterations = 15;

Condition StepsCondition(const std::shared_ptr<Stage>& stage, std::string name, Asking asking) {
  const auto settings = [stage](double steps) {
    EmbeddingSettings with = stage->study().settings;
    with.steps = static_cast<int>(steps);
    return with;
  };
  return BuildingCondition(std::move(name), stage, settings, std::move(asking));
}

// The objective after each iteration of the server from one start: `as_defined` of the iterate
// itself, `scaled` of the iterate at Frobenius norm sqrt(n), divided by n. The iteration is linear,
// so scaling it on the way changes its size alone. Both end before the first that is not finite.
absl::StatusOr<JobResult> Objectives(Stage& stage, uint64_t seed) {
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Scene> scene, stage.SceneOf(seed));
  const DataSplit& split = scene->trial->split;
  const PublicParameters& parameters = scene->joint.parameters;
  const EmbeddingSettings& settings = parameters.settings;
  std::vector<int32_t> labels = split.gallery.labels;
  labels.insert(labels.end(), split.anchors.labels.begin(), split.anchors.labels.end());
  const LabelGraph label_graph(labels, settings.label_graph, settings.KernelDenominator());
  PM_ASSIGN_OR_RETURN(const auto feature_graph, ServersGraph(*scene->trial, parameters));
  Matrix z = PublicStart(parameters, label_graph);
  JobResult result = {{"as_defined", {}}, {"scaled", {}}};
  for (int step = 0; step < kIterations; ++step) {
    Vector degrees;
    absl::StatusOr<Matrix> next =
        SmlqIterate(std::move(z), *feature_graph, label_graph, settings.alpha, 1,
                    /*normalise=*/false, nullptr, &degrees);
    if (absl::IsFailedPrecondition(next.status())) break;  // it overflows
    PM_RETURN_IF_ERROR(next.status());
    z = *std::move(next);
    PM_ASSIGN_OR_RETURN(const double objective,
                        SmlqObjective(z, *feature_graph, degrees, label_graph, settings.alpha));
    const double scaled = objective / z.squaredNorm();
    if (!std::isfinite(objective) || !std::isfinite(scaled)) break;
    result["as_defined"].push_back(objective);
    result["scaled"].push_back(scaled);
  }
  return result;
}

// Less is rounding: an objective that has settled changes in its last bits.
constexpr double kSmallestRise = 1e-12;

int Rises(const std::vector<double>& objective) {
  int rises = 0;
  for (size_t i = 1; i < objective.size(); ++i) {
    const double rise = objective[i] - objective[i - 1];
    rises += rise > kSmallestRise * std::abs(objective[i - 1]) ? 1 : 0;
  }
  return rises;
}

std::string Monotone(const std::vector<JobResult>& results, const char* key,
                     const std::string& what) {
  int rises = 0;
  size_t steps = 0;
  for (const JobResult& result : results) {
    rises += Rises(result.at(key));
    steps += std::max<size_t>(1, result.at(key).size()) - 1;
  }
  return absl::StrCat(what, rises == 0 ? " never rose in " : " is not monotone: it rose in ",
                      rises == 0 ? "" : absl::StrCat(rises, " of "),
                      Counted(static_cast<int64_t>(steps), "iteration"), " of ",
                      Counted(std::ssize(results), "run"), ".");
}

FigureSeries MeanObjective(const std::vector<JobResult>& results) {
  FigureSeries series{.name = "objective"};
  for (size_t i = 0; i < kIterations; ++i) {
    std::vector<double> of_runs;
    for (const JobResult& result : results) {
      if (i < result.at("scaled").size()) of_runs.push_back(result.at("scaled")[i]);
    }
    if (of_runs.size() < results.size()) break;
    const auto [low, high] = std::minmax_element(of_runs.begin(), of_runs.end());
    double sum = 0;
    for (const double value : of_runs) sum += value;
    series.points.push_back({.x = static_cast<double>(i + 1),
                             .y = sum / static_cast<double>(of_runs.size()),
                             .low = *low,
                             .high = *high});
  }
  return series;
}

std::string AsDrawn(const std::vector<FigurePoint>& points) {
  std::vector<std::string> values;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i != 0 && i != 4 && i + 1 != points.size()) continue;
    values.push_back(absl::StrCat(Short(points[i].y), " after iteration ", i + 1));
  }
  return absl::StrCat("As drawn it is ", absl::StrJoin(values, ", "), ", as a mean over runs.");
}

Figure DrawObjective(std::vector<JobResult> results) {
  Figure figure{.id = "convergence-objective",
                .title = "The server's objective against iterations",
                .panels = {FigurePanel{}}};
  figure.x.label = "iterations";
  figure.y.label = "objective at norm sqrt(n), divided by n";
  for (const JobResult& result : results) {
    if (result.refused.empty()) continue;
    figure.words.push_back(absl::StrCat("Not measured in every run: ", result.refused, "."));
    break;
  }
  std::erase_if(results, [](const JobResult& result) { return !result.refused.empty(); });
  if (results.empty()) return figure;
  const FigureSeries& series = figure.panels[0].series.emplace_back(MeanObjective(results));
  figure.words.push_back(
      Monotone(results, "as_defined", "The objective as the papers define it, of the iterate"));
  figure.words.push_back(Monotone(results, "scaled", "At constant norm, as drawn, the objective"));
  figure.words.push_back(absl::StrCat("A rise by less than ", kSmallestRise,
                                      " of its size counts as rounding, not as a rise."));
  if (!series.points.empty()) figure.words.push_back(AsDrawn(series.points));
  if (series.points.size() < kIterations) {
    figure.words.push_back(absl::StrCat("After iteration ", series.points.size(),
                                        " the objective of a run is no finite number any more: "
                                        "the series ends there."));
  }
  figure.words.push_back(absl::StrCat("Band: from the least to the greatest of ",
                                      Counted(std::ssize(results), "run"), ", one a split."));
  return figure;
}

std::string ReachedInWords(const std::string& line, const std::string& metric,
                           const std::vector<FigurePoint>& points) {
  const auto by_height = [](const FigurePoint& one, const FigurePoint& other) {
    return one.y < other.y;
  };
  const FigurePoint most = *std::max_element(points.begin(), points.end(), by_height);
  if (!(most.y > 0)) {
    return absl::StrCat("PrivateMail ", line, " finds nothing: ", metric, " is nowhere above 0.");
  }
  const auto first = std::find_if(points.begin(), points.end(), [&](const FigurePoint& point) {
    return point.y >= .95 * most.y;
  });
  return absl::StrCat("PrivateMail ", line, ": ", metric, " is at most ", WithBand(BandAt(most)),
                      ", with T = ", most.x, ", and has 95 % of that with T = ", first->x, ".");
}

Figure DrawScores(const Sweep& sweep, const std::vector<JobResult>& results, const Study& study) {
  Figure figure{.id = "convergence-recall",
                .title = "What comes back against iterations",
                .y = ShareAxis("mean over targets")};
  figure.x.label = "iterations T, of the server and after a release";
  const Metric recall = MetricsAt(study.k)[0];
  for (const Metric& metric : MetricsAt(study.k)) {
    figure.panels.push_back(sweep.PanelOf(results, metric));
  }
  for (size_t c = 0; c < 2; ++c) {
    const FigureSeries& series = figure.panels[0].series[c];
    if (std::isnan(series.points.front().y)) continue;  // refused
    const std::string line = absl::StrCat(c == 0 ? "at " : "", series.name);
    figure.words.push_back(absl::StrCat(ReachedInWords(line, recall.name, series.points), " ",
                                        sweep.DifferencesInWords(results, c, recall.key)));
  }
  figure.words.push_back(
      "Each T is a run of its own, in which the server starts elsewhere: the lines are no "
      "trajectories.");
  sweep.AddNotes(results, &figure.words);
  return figure;
}

constexpr size_t kMostClasses = 10;

std::vector<double> ChosenEpsilons(const Study& study) {
  const std::vector<double>& all = study.epsilons;
  const std::set<double> chosen = {all.front(), all[all.size() / 2], all.back()};
  return {chosen.begin(), chosen.end()};
}

// x, y and the place among the chosen classes of every row that is drawn, one after the other.
class Dots {
 public:
  explicit Dots(const std::vector<int32_t>& labels) {
    const std::set<int32_t> distinct(labels.begin(), labels.end());
    const std::vector<int32_t> all(distinct.begin(), distinct.end());
    const size_t count = std::min(kMostClasses, all.size());
    for (size_t i = 0; i < count; ++i) classes_.push_back(all[i * all.size() / count]);
  }

  bool Have(int32_t label) const {
    return std::find(classes_.begin(), classes_.end(), label) != classes_.end();
  }

  const std::vector<int32_t>& classes() const { return classes_; }

  std::vector<double> Of(const Matrix& rows, const std::vector<int32_t>& labels) const {
    std::vector<double> dots;
    for (size_t i = 0; i < labels.size(); ++i) {
      const auto found = std::find(classes_.begin(), classes_.end(), labels[i]);
      if (found == classes_.end()) continue;
      const auto row = rows.row(static_cast<Eigen::Index>(i));
      dots.insert(dots.end(), {row[0], row.size() > 1 ? row[1] : 0,
                               static_cast<double>(found - classes_.begin())});
    }
    return dots;
  }

 private:
  std::vector<int32_t> classes_;
};

// Coordinates and residual of one release. FAILED_PRECONDITION: the server could not align it.
absl::StatusOr<JobResult> OneRelease(Stage& stage, double epsilon, uint64_t seed) {
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Scene> scene, stage.SceneOf(seed));
  const DataSplit& split = scene->trial->split;
  const std::vector<int32_t>& labels = scene->joint.parameters.slot_labels;
  const Dots dots(labels);
  const auto shown = std::find_if(split.targets.labels.begin(), split.targets.labels.end(),
                                  [&](int32_t label) { return dots.Have(label); });
  const auto target =
      shown == split.targets.labels.end() ? 0 : shown - split.targets.labels.begin();
  const int32_t label = split.targets.labels[static_cast<size_t>(target)];
  PM_ASSIGN_OR_RETURN(const int64_t slot, scene->joint.parameters.SlotOf(label));
  SeededBits bits(SeedOf(absl::StrCat("alignment/", FormatExact(epsilon)), seed));
  PM_ASSIGN_OR_RETURN(
      const Released released,
      ReleaseOf(scene->joint, PrivacyCost{.epsilon = epsilon, .delta = stage.study().delta}, slot,
                split.targets.features.row(target), bits));
  PM_ASSIGN_OR_RETURN(const Matrix rows, PostProcess(released.rows.cast<double>(),
                                                     scene->joint.label_graph, scene->settings()));
  const Matrix& server = scene->embedded->anchors;
  const Matrix anchors = rows.bottomRows(server.rows());
  PM_ASSIGN_OR_RETURN(const Similarity map, KabschUmeyama(anchors, server, /*with_scale=*/true));
  const Matrix slots = rows.topRows(scene->joint.slots());
  const std::vector<int32_t> its_label = {label};
  return JobResult{{"residual", {RelativeResidual(map, anchors, server)}},
                   {"server", dots.Of(server, split.anchors.labels)},
                   {"anchors_before", dots.Of(anchors, split.anchors.labels)},
                   {"anchors_after", dots.Of(map.Apply(anchors), split.anchors.labels)},
                   {"slots_before", dots.Of(slots, labels)},
                   {"slots_after", dots.Of(map.Apply(slots), labels)},
                   {"target_before", dots.Of(slots.row(slot), its_label)},
                   {"target_after", dots.Of(map.Apply(slots.row(slot)), its_label)}};
}

FigureSeries Scatter(std::string name, const std::vector<double>& dots,
                     const std::vector<int32_t>& classes) {
  FigureSeries series{.name = std::move(name), .mark = FigureSeries::Mark::kScatter};
  for (size_t i = 0; i < dots.size(); i += 3) {
    FigurePoint& point = series.points.emplace_back();
    point.x = dots[i];
    point.y = dots[i + 1];
    point.group = classes[static_cast<size_t>(dots[i + 2])];
  }
  return series;
}

void DrawAt(
    double epsilon, absl::Span<const JobResult> releases,
    absl::FunctionRef<FigureSeries(const char* name, const std::vector<double>& dots)> scatter,
    Figure* figure) {
  const JobResult* shown = nullptr;
  std::string why;
  size_t aligned = 0;
  double residuals = 0;
  for (const JobResult& release : releases) {
    if (!release.refused.empty()) {
      why = release.refused;
      continue;
    }
    if (shown == nullptr) shown = &release;
    ++aligned;
    residuals += release.at("residual")[0];
  }
  const std::string at = absl::StrCat("epsilon ", Short(epsilon));
  if (shown != nullptr) {
    for (const char* when : {"before", "after"}) {
      figure->panels.push_back(
          {.title = absl::StrCat(at, ", ", when, " alignment"),
           .series = {scatter("anchors", shown->at(absl::StrCat("anchors_", when))),
                      scatter("slots", shown->at(absl::StrCat("slots_", when))),
                      scatter("the target's slot", shown->at(absl::StrCat("target_", when)))}});
    }
    figure->words.push_back(
        absl::StrCat("At ", at, " the anchors' residual under the alignment is ",
                     Short(residuals / static_cast<double>(aligned)), " as a mean over ",
                     Counted(static_cast<int64_t>(aligned), "release"),
                     " (0: they fit perfectly; 1: no better than their mean)."));
  }
  if (aligned < releases.size()) {
    figure->words.push_back(absl::StrCat("At ", at, " ", releases.size() - aligned, " of ",
                                         Counted(std::ssize(releases), "release"),
                                         " could not be made or aligned (", why, ")."));
  }
}

Figure Draw(const Study& study, const std::vector<JobResult>& results) {
  Figure figure{.id = "alignment", .title = "Embeddings before and after alignment"};
  figure.x.label = "first coordinate";
  figure.y.label = "second coordinate";
  const std::vector<int32_t> classes = Dots(study.data.labels).classes();
  for (const int32_t label : classes) {
    if (!study.data.class_names.empty()) {
      figure.class_names[label] = study.data.class_names[static_cast<size_t>(label)];
    }
  }
  const auto scatter = [&](const char* name, const std::vector<double>& dots) {
    return Scatter(name, dots, classes);
  };
  const auto first = std::find_if(results.begin(), results.end(),
                                  [](const JobResult& result) { return result.refused.empty(); });
  if (first != results.end()) {
    figure.panels.push_back(
        {.title = "the server's anchors", .series = {scatter("anchors", first->at("server"))}});
  }
  const std::vector<double> epsilons = ChosenEpsilons(study);
  const auto seeds = static_cast<size_t>(study.seeds);
  for (size_t e = 0; e < epsilons.size(); ++e) {
    DrawAt(epsilons[e], absl::MakeConstSpan(results).subspan(e * seeds, seeds), scatter, &figure);
  }
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
  Experiment experiment{.name = "convergence", .jobs = sweep.Jobs()};
  const size_t of_scores = experiment.jobs.size();
  for (int64_t seed = 1; seed <= study.seeds; ++seed) {
    experiment.jobs.push_back(
        {.key = absl::StrCat("objective, seed ", seed),
         .work = 3,
         .split = static_cast<uint64_t>(seed),
         .run = [stage, seed] { return Objectives(*stage, static_cast<uint64_t>(seed)); }});
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

Experiment MakeAlignmentExperiment(std::shared_ptr<Stage> stage) {
  Experiment experiment{.name = "alignment"};
  for (const double epsilon : ChosenEpsilons(stage->study())) {
    for (int64_t seed = 1; seed <= stage->study().seeds; ++seed) {
      experiment.jobs.push_back({.key = absl::StrCat("at ", FormatExact(epsilon), ", seed ", seed),
                                 .work = .05,
                                 .run = [stage, epsilon, seed] {
                                   return OneRelease(*stage, epsilon, static_cast<uint64_t>(seed));
                                 }});
    }
  }
  experiment.draw = [stage](const std::vector<JobResult>& results) {
    return std::vector<Figure>{Draw(stage->study(), results)};
  };
  return experiment;
}

}  // namespace privatemail::client
