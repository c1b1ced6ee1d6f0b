#include "common/embedding/alignment.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/sweep.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

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
  FigureSeries series{.name = std::move(name), .mark = FigureSeries::Mark::kScatter, .points = {}};
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
  Figure figure{.id = "alignment",
                .title = "Embeddings before and after alignment",
                .x = {},
                .y = {},
                .panels = {},
                .words = {}};
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

Experiment MakeAlignmentExperiment(std::shared_ptr<Stage> stage) {
  Experiment experiment{.name = "alignment", .jobs = {}, .draw = nullptr};
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
