#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/sweep.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/status_macros.h"
#include "common/embedding/embed_rows.h"

namespace privatemail::client {
namespace {

constexpr char kProven[] = "PrivateMail, gaussian";
constexpr char kAnchored[] = "PrivateMail anchored, gaussian";
constexpr char kNoNoise[] = "PrivateMail without noise";
constexpr char kFeatures[] = "features, not private";
constexpr char kChance[] = "chance";
constexpr char kCeiling[] = "ceiling of answers from one private release";

// Neighbours are any two targets; Inference Privacy, which hides less, has an experiment of its
// own.
std::vector<Condition> JointConditions(const std::shared_ptr<Stage>& stage) {
  std::vector<Condition> conditions;
  for (const MechanismTraits& traits : AllMechanisms()) {
    if (traits.protects != MechanismTraits::Protects::kValue) continue;
    const auto asking = [&traits, delta = stage->study().delta](double epsilon) {
      PrivacyCost cost{.epsilon = epsilon, .mechanism = traits.kind};
      if (traits.TakesDelta()) cost.delta = delta;
      return Asking{.cost = cost};
    };
    conditions.push_back(
        AskingCondition(absl::StrCat("PrivateMail, ", traits.name), stage, asking));
  }
  // The first paper's scheme: Laplace noise after each of two iterations. Its delta is for their
  // composition alone.
  for (const MechanismKind kind : {MechanismKind::kLaplace, MechanismKind::kPublishedLaplace}) {
    const auto asking = [kind, delta = stage->study().delta](double epsilon) {
      return Asking{
          .cost = PrivacyCost{
              .epsilon = epsilon, .delta = delta, .mechanism = kind, .private_iterations = 2}};
    };
    conditions.push_back(AskingCondition(
        absl::StrCat("PrivateMail, ", TraitsOf(kind).name, ", 2 private iterations"), stage,
        asking));
  }
  // The same promise with noise on the slots' rows only.
  for (const MechanismKind kind : {MechanismKind::kGaussian, MechanismKind::kLaplace}) {
    const auto asking = [kind, delta = stage->study().delta](double epsilon) {
      PrivacyCost cost{.epsilon = epsilon, .mechanism = kind};
      if (TraitsOf(kind).TakesDelta()) cost.delta = delta;
      return Asking{.cost = cost, .scheme = Asking::Scheme::kAnchored};
    };
    conditions.push_back(AskingCondition(
        absl::StrCat("PrivateMail anchored, ", TraitsOf(kind).name), stage, asking));
  }
  conditions.push_back(AskingCondition(
      kNoNoise, stage, [](double) { return Asking{}; }, /*fixed=*/true));
  return conditions;
}

// All rows in one embedding, targets under their labels: what the papers compare with.
absl::StatusOr<Answers> ScoreEmbeddedTogether(const Scene& scene) {
  const DataSplit& split = scene.trial->split;
  const Eigen::Index gallery = split.gallery.features.rows();
  const Eigen::Index targets = split.targets.features.rows();
  Matrix rows(gallery + targets + split.anchors.features.rows(), split.gallery.features.cols());
  rows << split.gallery.features, split.targets.features, split.anchors.features;
  std::vector<int32_t> labels = split.gallery.labels;
  labels.insert(labels.end(), split.targets.labels.begin(), split.targets.labels.end());
  labels.insert(labels.end(), split.anchors.labels.begin(), split.anchors.labels.end());
  PM_ASSIGN_OR_RETURN(const EmbeddedRows embedded,
                      EmbedRows(scene.joint.parameters,
                                std::make_shared<MatrixPoints>(std::move(rows)), labels, nullptr));
  return ScoreRows(*scene.trial, embedded.coordinates.topRows(gallery),
                   embedded.coordinates.middleRows(gallery, targets));
}

Condition EmbeddedTogetherCondition(const std::shared_ptr<Stage>& stage) {
  const auto run = [stage](double /*x*/, uint64_t seed,
                           const std::string& /*part*/) -> absl::StatusOr<Answers> {
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Scene> scene, stage->SceneOf(seed));
    return ScoreEmbeddedTogether(*scene);
  };
  return {.name = "supervised embedding, not private, given the targets' labels",
          .fixed = true,
          .work = 1,
          .run = run};
}

size_t Find(const Sweep& sweep, const std::string& name) {
  size_t i = 0;
  while (sweep.conditions()[i].name != name) ++i;
  return i;
}

double CeilingAt(double epsilon, const Study& study, int64_t classes, const Metric& metric) {
  const Scores most = ScoreCeilings(epsilon, study.delta, classes, study.k);
  return metric.key == std::string("hit") ? most.hit : most.class_share;
}

FigureSeries CeilingSeries(const Study& study, int64_t classes, const Metric& metric) {
  return CurveOver(kCeiling, study.epsilons,
                   [&](double epsilon) { return CeilingAt(epsilon, study, classes, metric); });
}

// Twenty lines in one plot would cover each other: side by side those of PrivateMail that are
// proven, those as published, and the baselines, each with what all are compared with.
std::vector<FigurePanel> PanelsOf(FigurePanel all) {
  std::vector<FigurePanel> panels = {{"PrivateMail, proven", {}},
                                     {"PrivateMail, as published: no proven guarantee", {}},
                                     {"baselines", {}}};
  const std::set<std::string> shared = {kNoNoise, kFeatures, kChance, kCeiling};
  for (FigureSeries& series : all.series) {
    const bool ours = absl::StrContains(series.name, "PrivateMail");
    const bool published = absl::StrContains(series.name, "published");
    const size_t place = !ours ? 2 : published ? 1 : 0;
    for (size_t panel = 0; panel < panels.size(); ++panel) {
      if (panel == place || shared.count(series.name) > 0) panels[panel].series.push_back(series);
    }
  }
  return panels;
}

std::string NoiseInWords(const Sweep& sweep, const std::vector<JobResult>& results,
                         const Study& study, const Metric& metric) {
  const size_t last = study.epsilons.size() - 1;
  const auto at = [&](const char* name, size_t x) {
    return sweep.BandOf(results, Find(sweep, name), x, metric.key);
  };
  return absl::StrCat(
      "With proven Gaussian noise at epsilon ", Short(study.epsilons.front()), " ", metric.name,
      " is ", WithBand(at(kProven, 0)), ", at epsilon ", Short(study.epsilons[last]), " ",
      WithBand(at(kProven, last)), ", without noise ", WithBand(at(kNoNoise, 0)),
      "; by the anchored scheme ", WithBand(at(kAnchored, 0)), " and ",
      WithBand(at(kAnchored, last)), "; a search over the features that hides nothing has ",
      Short(at(kFeatures, 0).mean), ", a blind draw ", Short(at(kChance, 0).mean), ".");
}

std::string CeilingInWords(const Study& study, int64_t classes, const Metric& metric) {
  const auto at = [&](double epsilon) {
    return absl::StrCat(Short(CeilingAt(epsilon, study, classes, metric)), " at epsilon ",
                        Short(epsilon));
  };
  return absl::StrCat(
      "The ceiling is the most ", metric.name,
      " of answers that are computed from one release alone, where that is (epsilon, delta)-DP for "
      "any two targets, whatever their classes: ",
      at(study.epsilons.front()),
      study.epsilons.size() > 1 ? absl::StrCat(" and ", at(study.epsilons.back())) : std::string(),
      " for ", classes, " classes, as a mean over classes of equal weight.");
}

constexpr char kBoundAsAbove[] = "It binds the lines that the ceiling of the recall binds.";

std::string BoundInWords(const Sweep& sweep, const std::vector<Baseline>& baselines) {
  std::vector<std::string> bound;
  std::vector<std::string> free;
  for (const Condition& condition : sweep.conditions()) {
    const auto baseline = std::find_if(baselines.begin(), baselines.end(),
                                       [&](const auto& one) { return one.name == condition.name; });
    const bool is_bound =
        condition.name == kChance || (baseline != baselines.end() && baseline->hides_targets);
    (is_bound ? bound : free).push_back(absl::StrCat("\"", condition.name, "\""));
  }
  return absl::StrCat(
      "It binds ", absl::StrJoin(bound, ", "),
      ". These it does not bind, or is not known to, and "
      "they may stand above it: ",
      absl::StrJoin(free, ", "),
      ". The server answers PrivateMail for every class, and the searcher picks; what is not "
      "private, or protects rows of the gallery only, is no such release of a target.");
}

std::vector<std::string> LinesInWords(const std::vector<Baseline>& baselines) {
  std::vector<std::string> words = {
      "Lines with `published` in their name follow printed formulas and are no proven guarantee."};
  std::vector<std::pair<std::string, std::vector<std::string>>> protect;  // whom, and which do so
  for (const Baseline& baseline : baselines) {
    if (!baseline.is_private) continue;
    const std::string whom =
        absl::StrCat(baseline.protects, ".", baseline.remark.empty() ? "" : " ", baseline.remark);
    if (protect.empty() || protect.back().first != whom) protect.push_back({whom, {}});
    protect.back().second.push_back(absl::StrCat("\"", baseline.name, "\""));
  }
  for (const auto& [whom, names] : protect) {
    words.push_back(absl::StrCat("What ", absl::StrJoin(names, ", "),
                                 names.size() == 1 ? " protects: " : " protect: ", whom));
  }
  return words;
}

std::vector<std::string> PartsInWords(const std::vector<Baseline>& baselines) {
  std::vector<std::string> words;
  for (const Baseline& baseline : baselines) {
    if (!(baseline.gallery_share < 1)) continue;
    words.push_back(
        absl::StrCat("\"", baseline.name, "\" embeds ", Short(baseline.gallery_share),
                     " of the gallery: the rest never comes back, and its fidelity is about ",
                     Short(baseline.gallery_share), " at the most."));
  }
  return words;
}

}  // namespace

Condition BaselineCondition(std::shared_ptr<Stage> stage, const Baseline& baseline) {
  const auto run = [stage, baseline](double epsilon, uint64_t seed,
                                     const std::string& part) -> absl::StatusOr<Answers> {
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Trial> trial, stage->TrialOf(seed));
    SeededBits bits(SeedOf(part, seed));
    PM_ASSIGN_OR_RETURN(const BaselineRows rows,
                        baseline.rows(trial->split, epsilon, stage->study().delta, bits));
    return ScoreRows(*trial, rows.gallery, rows.targets);
  };
  return {.name = baseline.name, .fixed = !baseline.is_private, .work = baseline.work, .run = run};
}

Experiment MakeRecallExperiment(std::shared_ptr<Stage> stage,
                                const std::vector<Baseline>& baselines) {
  std::vector<Condition> conditions = JointConditions(stage);
  conditions.push_back(FeatureSearchCondition(stage));
  conditions.push_back(EmbeddedTogetherCondition(stage));
  for (const Baseline& baseline : baselines) {
    conditions.push_back(BaselineCondition(stage, baseline));
  }
  conditions.push_back(ChanceCondition(stage));
  const Study& study = stage->study();
  const Sweep sweep("recall", std::move(conditions), study.epsilons, study.seeds);
  const auto draw =
      [sweep, stage,
       baselines](const std::vector<JobResult>& results) -> absl::StatusOr<std::vector<Figure>> {
    const Study& study = stage->study();
    const int64_t classes = CountClasses(study.data);
    std::vector<Figure> figures;
    for (const Metric& metric : MetricsAt(study.k)) {
      Figure& figure = figures.emplace_back();
      figure.id = absl::StrCat(metric.name.substr(0, metric.name.find('@')), "-epsilon");
      FigurePanel all = sweep.PanelOf(results, metric);
      figure.title = absl::StrCat(metric.name, " against epsilon");
      figure.title[0] = absl::ascii_toupper(figure.title[0]);
      figure.x = EpsilonAxis();
      figure.y = ShareAxis(all.title);
      figure.words.push_back(NoiseInWords(sweep, results, study, metric));
      if (metric.key == std::string("fidelity")) {
        const std::vector<std::string> parts = PartsInWords(baselines);
        figure.words.insert(figure.words.end(), parts.begin(), parts.end());
        figure.panels = PanelsOf(std::move(all));
        continue;
      }
      all.series.push_back(CeilingSeries(study, classes, metric));
      figure.panels = PanelsOf(std::move(all));
      figure.words.push_back(CeilingInWords(study, classes, metric));
      figure.words.push_back(figures.size() == 1 ? BoundInWords(sweep, baselines)
                                                 : std::string(kBoundAsAbove));
    }
    const std::vector<std::string> lines = LinesInWords(baselines);
    figures[0].words.insert(figures[0].words.end(), lines.begin(), lines.end());
    for (Figure& figure : figures) sweep.AddNotes(results, &figure.words);
    return figures;
  };
  return {.name = "recall", .jobs = sweep.Jobs(), .draw = draw};
}

}  // namespace privatemail::client
