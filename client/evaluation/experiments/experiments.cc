#include "client/evaluation/experiments/experiments.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/baselines/all_baselines.h"
#include "client/evaluation/attacks/attacks.h"
#include "client/evaluation/data.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

using SharedStage = std::shared_ptr<Stage>;
using Baselines = std::vector<Baseline>;

struct Known {
  const char* name;
  bool attack;
  std::function<Experiment(const SharedStage& stage, const Baselines& baselines)> make;
};

std::function<Experiment(const SharedStage&, const Baselines&)> Alone(
    Experiment (*make)(SharedStage stage)) {
  return [make](const SharedStage& stage, const Baselines&) { return make(stage); };
}

// In the order of a report.
const std::vector<Known>& AllKnown() {
  static const auto* const all = new std::vector<Known>{
      {"recall", false, &MakeRecallExperiment},
      {"cells", false, &MakeCellsExperiment},
      {"ablation", false, Alone(&MakeAblationExperiment)},
      {"convergence", false, Alone(&MakeConvergenceExperiment)},
      {"settings", false, Alone(&MakeSettingsExperiment)},
      {"alignment", false, Alone(&MakeAlignmentExperiment)},
      {"inference-privacy", false, Alone(&MakeInferencePrivacyExperiment)},
      {"attacks", true, Alone(&MakeAttacksExperiment)},
      {"bounded-gaussian", false,
       [](const SharedStage& stage, const Baselines&) {
         return MakeBoundedGaussianExperiment(stage->study().delta);
       }},
  };
  return *all;
}

struct Told {
  const char* id;
  const char* name;
  double work;              // in releases of 100 targets, about
  bool embeds_all = false;  // gallery and targets together, in O(n^2) a step
  bool wide_too = false;    // takes hardly longer with more columns
  // Answers are computed from one release that is private for any targets.
  bool hides_targets = false;
  const char* remark = "";
};
constexpr char kNotCentred[] =
    "The axes are those of the rows as they are, as in the paper, where PCA takes their mean off.";
constexpr Told kTold[] = {
    {.id = "pca", .name = "PCA, not private", .work = 1, .wide_too = true},
    {.id = "t-sne", .name = "t-SNE, not private", .work = 100, .embeds_all = true},
    {.id = "analyse-gauss",
     .name = "private PCA, analyse-Gauss",
     .work = 1,
     .wide_too = true,
     .remark = kNotCentred},
    {.id = "published-ppca",
     .name = "private PCA, exponential mechanism",
     .work = 10,
     .remark = kNotCentred},
    {.id = "candidate-ppca",
     .name = "private PCA, exponential mechanism over public candidates",
     .work = 4,
     .wide_too = true,
     .remark = kNotCentred},
    {.id = "random-projection",
     .name = "private random projections",
     .work = 1,
     .wide_too = true,
     .hides_targets = true},
    {.id = "dp-dsne", .name = "DP-dSNE", .work = 100, .embeds_all = true, .hides_targets = true},
};

constexpr int64_t kWide = 32;  // columns

// Evenly taken numbers below `rows`, at most so many.
std::vector<int64_t> Some(int64_t rows, int64_t most) {
  const int64_t count = std::min(rows, most);
  std::vector<int64_t> taken;
  for (int64_t i = 0; i < count; ++i) taken.push_back(i * rows / count);
  return taken;
}

constexpr double kFarAway = 1e12;

baselines::Settings SettingsFor(const DataSplit& split, int64_t dimension,
                                const std::shared_ptr<baselines::LastTsneAffinity>& affinity) {
  auto settings = baselines::Settings::OfDimension(dimension);
  const int64_t anchors = split.anchors.features.rows();
  settings.candidate_ppca.anchors_each = std::min(
      std::max(settings.candidate_ppca.anchors_each, dimension), std::max<int64_t>(anchors, 1));
  const auto joint =
      static_cast<double>(split.gallery.features.rows() + split.targets.features.rows());
  settings.tsne.perplexity = std::min(settings.tsne.perplexity, (joint - 1) / 3);
  settings.tsne.affinity = affinity;
  settings.dp_dsne.tsne.perplexity = settings.tsne.perplexity;
  settings.dp_dsne.tsne.affinity = affinity;
  return settings;
}

struct Line {
  const baselines::Baseline* baseline;
  int64_t columns;
  int64_t most_rows;
  std::shared_ptr<baselines::LastTsneAffinity> affinity;  // of all lines
};

absl::StatusOr<BaselineRows> Embed(const Line& line, const DataSplit& split,
                                   const baselines::Cost& cost, BitSource& bits) {
  const std::vector<int64_t> kept = Some(split.gallery.features.rows(), line.most_rows);
  const DataSplit part{split.anchors, RowsOf(split.gallery, kept), split.targets};
  absl::StatusOr<baselines::BaselineResult> result =
      line.baseline->run(part, SettingsFor(part, line.columns, line.affinity), cost, bits);
  if (absl::IsInvalidArgument(result.status())) {
    return absl::FailedPreconditionError(result.status().message());
  }
  PM_RETURN_IF_ERROR(result.status());
  BaselineRows rows{
      Matrix::Constant(split.gallery.features.rows(), result->gallery.cols(), kFarAway),
      std::move(result->targets)};
  for (size_t i = 0; i < kept.size(); ++i) {
    rows.gallery.row(kept[i]) = result->gallery.row(static_cast<Eigen::Index>(i));
  }
  return rows;
}

const baselines::Baseline& BaselineOf(const Told& told) {
  const auto all = baselines::AllBaselines();
  return *std::find_if(all.begin(), all.end(), [&](const baselines::Baseline& baseline) {
    return absl::string_view(baseline.name) == told.id;
  });
}

std::string NameOf(const Told& told, const Line& line, int64_t gallery_rows) {
  const bool published = absl::StrContains(told.id, "published");
  const std::string rows =
      gallery_rows > line.most_rows ? absl::StrCat(", ", line.most_rows, " gallery rows") : "";
  return absl::StrCat(told.name, published ? ", as published" : "", " (",
                      Counted(line.columns, "column"), rows, ")");
}

Baseline ToBaseline(const Told& told, const Line& line, int64_t gallery_rows) {
  return {.name = NameOf(told, line, gallery_rows),
          .is_private = line.baseline->takes_epsilon,
          .protects = line.baseline->protects,
          .hides_targets = told.hides_targets,
          .work = told.work,
          .gallery_share =
              std::min(1., static_cast<double>(line.most_rows) / static_cast<double>(gallery_rows)),
          .remark = told.remark,
          .rows = [line](const DataSplit& split, double epsilon, double delta, BitSource& bits) {
            return Embed(line, split, {epsilon, delta}, bits);
          }};
}

}  // namespace

std::string ExperimentNames() {
  return absl::StrJoin(AllKnown(), ", ", [](std::string* text, const Known& one) {
    absl::StrAppend(text, one.name);
  });
}

absl::StatusOr<std::vector<Experiment>> MakeExperiments(const std::shared_ptr<Stage>& stage,
                                                        absl::string_view names, bool attacks,
                                                        const std::vector<Baseline>& baselines) {
  const std::vector<Known>& all = AllKnown();
  const std::vector<std::string> wanted = absl::StrSplit(names, ',', absl::SkipEmpty());
  for (const std::string& name : wanted) {
    if (std::any_of(all.begin(), all.end(), [&](const Known& one) { return one.name == name; })) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("--experiments must be some of ",
                                                   ExperimentNames(), ", but has \"", name, "\""));
  }
  std::vector<Experiment> experiments;
  for (const Known& one : all) {
    const bool named = std::find(wanted.begin(), wanted.end(), one.name) != wanted.end();
    if (named || (one.attack ? attacks : wanted.empty()))
      experiments.push_back(one.make(stage, baselines));
  }
  return experiments;
}

std::vector<Baseline> LibraryBaselines(const DataSplit& split, int64_t dimension,
                                       int64_t most_joint_rows) {
  const int64_t gallery_rows = split.gallery.features.rows();
  const int64_t most_columns = split.gallery.features.cols();
  const auto affinity = std::make_shared<baselines::LastTsneAffinity>();
  std::vector<Baseline> all;
  for (const Told& told : kTold) {
    Line line{.baseline = &BaselineOf(told),
              .columns = std::min(dimension, most_columns),
              .most_rows = told.embeds_all ? most_joint_rows : std::numeric_limits<int64_t>::max(),
              .affinity = affinity};
    all.push_back(ToBaseline(told, line, gallery_rows));
    const int64_t wide = std::min(kWide, most_columns);
    if (!told.wide_too || wide <= line.columns) continue;
    line.columns = wide;
    all.push_back(ToBaseline(told, line, gallery_rows));
  }
  return all;
}

}  // namespace privatemail::client
