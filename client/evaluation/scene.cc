#include "client/evaluation/scene.h"

#include <malloc.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/evaluation/data.h"
#include "client/evaluation/metrics.h"
#include "common/base/files.h"
#include "common/base/printable.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/alignment.h"
#include "common/embedding/embed_rows.h"
#include "common/embedding/public_parameters.h"
#include "common/embedding/tiled_affinity.h"
#include "common/numerics/point_source.h"

namespace privatemail::client {
namespace {

constexpr char kUuid[] = "00000000-0000-4000-8000-000000000000";  // of no collection of a server

// Ranges that every mechanism and baseline of the experiments accepts.
constexpr double kLeastEpsilon = 1e-6;
constexpr double kMostEpsilon = 1e6;
constexpr double kLeastDelta = 1e-300;

// Of this program's file; of nothing that another run could have where it cannot be read.
std::string DigestOfProgram() {
  static const std::string* const digest = [] {
    const absl::StatusOr<std::string> program =
        ReadFile("program", "/proc/self/exe", size_t{1} << 30);
    return new std::string(program.ok()
                               ? ToHex(Sha256::Of(*program))
                               : absl::StrCat("unknown, at ", absl::GetCurrentTimeNanos()));
  }();
  return *digest;
}

std::string Describe(const EmbeddingSettings& s) {
  return absl::StrCat(
      "kernel_bandwidth ", FormatExact(s.kernel_bandwidth), "\nalpha ", FormatExact(s.alpha),
      "\nkernel ", static_cast<int>(s.kernel), "\nlabel_graph ", static_cast<int>(s.label_graph),
      "\nembedding_dim ", s.embedding_dim, "\nsteps ", s.steps, "\nnormalise ", s.normalise,
      "\nstart_stddev ", FormatExact(s.start_stddev), "\nstart ", static_cast<int>(s.start));
}

Anchors AnchorsOf(const Trial& trial) {
  return {.features = trial.split.anchors.features.cast<float>(),
          .labels = trial.split.anchors.labels};
}

// Unless the stage that would keep it is gone.
template <typename Cache, typename Key, typename Make>
auto KeptOrMade(const Trial& trial, Cache SceneCache::*cache, const Key& key, const Make& make) {
  const std::shared_ptr<SceneCache> kept = trial.kept.lock();
  return kept == nullptr ? make() : ((*kept).*cache).Get({trial.seed, key}, make);
}

absl::StatusOr<std::shared_ptr<const FixedRows>> AnchorGraph(const Trial& trial,
                                                             double denominator) {
  using Result = absl::StatusOr<std::shared_ptr<const FixedRows>>;
  return KeptOrMade(trial, &SceneCache::of_anchors, denominator, [&]() -> Result {
    PM_ASSIGN_OR_RETURN(Matrix unit, UnitRows("anchors", AnchorsOf(trial).features));
    return std::make_shared<const FixedRows>(std::move(unit), denominator);
  });
}

absl::StatusOr<std::shared_ptr<const Scene>> MakeNewScene(std::shared_ptr<const Trial> trial,
                                                          const EmbeddingSettings& settings) {
  const Anchors anchors = AnchorsOf(*trial);
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters,
                      MakePublicParameters(kUuid, settings, anchors, {}, "vectors"));
  PM_ASSIGN_OR_RETURN(std::shared_ptr<const FixedRows> fixed,
                      AnchorGraph(*trial, settings.KernelDenominator()));
  PM_ASSIGN_OR_RETURN(JointSetting joint,
                      MakeJointSetting(parameters, anchors, std::nullopt, std::move(fixed)));
  absl::StatusOr<AnchoredSetting> anchored = MakeAnchoredSetting(joint);
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const AffinityOperator> graph,
                      ServersGraph(*trial, parameters));
  const LabelledRows& gallery = trial->split.gallery;
  PM_ASSIGN_OR_RETURN(UnitPoints points,
                      UnitPoints::Create(gallery.features.cast<float>(), anchors.features));
  std::vector<int32_t> labels = gallery.labels;
  labels.insert(labels.end(), anchors.labels.begin(), anchors.labels.end());
  PM_ASSIGN_OR_RETURN(const EmbeddedRows rows,
                      EmbedRows(parameters, std::make_shared<UnitPoints>(std::move(points)), labels,
                                nullptr, graph.get()));
  const auto items = static_cast<Eigen::Index>(gallery.labels.size());
  Matrix anchor_rows = rows.coordinates.bottomRows(rows.coordinates.rows() - items);
  PM_RETURN_IF_ERROR(CheckAnchorCoordinates(anchor_rows));
  std::shared_ptr<const EmbeddedGallery> embedded(
      new EmbeddedGallery{.items = ExactIndex(rows.coordinates.topRows(items)),
                          .anchors = std::move(anchor_rows),
                          .objective = rows.objective});
  return std::make_shared<const Scene>(Scene{.trial = std::move(trial),
                                             .joint = std::move(joint),
                                             .anchored = std::move(anchored),
                                             .embedded = std::move(embedded)});
}

}  // namespace

absl::StatusOr<SlotAnswer> SearchSlot(const EmbeddedGallery& gallery, const Matrix& release,
                                      const LabelGraph& label_graph,
                                      const EmbeddingSettings& settings, bool post_process,
                                      int64_t slot, int64_t k) {
  Matrix rows = release;
  if (post_process) {
    PM_ASSIGN_OR_RETURN(rows, PostProcess(release, label_graph, settings));
  }
  const Matrix anchors = rows.bottomRows(gallery.anchors.rows());
  PM_ASSIGN_OR_RETURN(const Similarity alignment,
                      KabschUmeyama(anchors, gallery.anchors, /*with_scale=*/true));
  // A server refuses a release of which any slot overflows.
  const Matrix slots = alignment.Apply(rows.topRows(rows.rows() - anchors.rows()));
  if (!slots.allFinite()) return absl::FailedPreconditionError("slots overflow");
  SlotAnswer answer;
  answer.relative_residual = RelativeResidual(alignment, anchors, gallery.anchors);
  const std::vector<std::vector<Neighbor>> nearest = gallery.items.Search(slots.row(slot), k);
  for (const Neighbor& neighbor : nearest[0]) {
    answer.rows.push_back(neighbor.row);
  }
  return answer;
}

absl::Status Validate(const Study& study) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", study.k, 1, kMaxNeighbors));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("seeds", study.seeds, 1, 1000));
  PM_RETURN_IF_ERROR(CheckBetween("--epsilon", study.epsilon, kLeastEpsilon, kMostEpsilon));
  PM_RETURN_IF_ERROR(CheckOpenUnitInterval("--delta", study.delta));
  PM_RETURN_IF_ERROR(CheckBetween("--delta", study.delta, kLeastDelta, 1));
  if (study.epsilons.empty()) return absl::InvalidArgumentError("epsilons must not be empty");
  for (size_t i = 0; i < study.epsilons.size(); ++i) {
    PM_RETURN_IF_ERROR(CheckBetween("--epsilons", study.epsilons[i], kLeastEpsilon, kMostEpsilon));
    if (i > 0 && !(study.epsilons[i] > study.epsilons[i - 1])) {
      return absl::InvalidArgumentError(absl::StrCat(
          "epsilons must ascend, but ", study.epsilons[i], " follows ", study.epsilons[i - 1]));
    }
  }
  PM_RETURN_IF_ERROR(Validate(study.settings));
  PM_ASSIGN_OR_RETURN(const DataSplit split, MakeSplit(study.data, study.sizes, 1));
  return CheckIntegerBetween("k", study.k, 1, static_cast<int64_t>(split.gallery.labels.size()));
}

std::string Describe(const Study& study) {
  return absl::StrCat("privatemail-evaluate " PRIVATEMAIL_VERSION ", program ", DigestOfProgram(),
                      "\ndata ", DigestOf(study.data), "\nanchors_per_class ",
                      study.sizes.anchors_per_class, "\ntargets ", study.sizes.targets,
                      "\ngallery_per_class ", study.sizes.gallery_per_class, "\nk ", study.k,
                      "\nepsilon ", FormatExact(study.epsilon), "\ndelta ",
                      FormatExact(study.delta), "\n", Describe(study.settings));
}

absl::StatusOr<std::shared_ptr<const Trial>> MakeTrial(const Study& study, uint64_t seed,
                                                       std::weak_ptr<SceneCache> kept) {
  auto trial = std::make_shared<Trial>();
  trial->kept = std::move(kept);
  trial->seed = seed;
  trial->k = study.k;
  PM_ASSIGN_OR_RETURN(trial->split, MakeSplit(study.data, study.sizes, seed));
  // How many rows are left for the gallery may depend on the classes that targets come from.
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", study.k, 1,
                                         static_cast<int64_t>(trial->split.gallery.labels.size())));
  trial->nearest = NearestOf(trial->split.targets.features, trial->split.gallery.features, study.k);
  return trial;
}

absl::StatusOr<std::shared_ptr<const AffinityOperator>> ServersGraph(
    const Trial& trial, const PublicParameters& parameters) {
  using Result = absl::StatusOr<std::shared_ptr<const AffinityOperator>>;
  const double denominator = parameters.settings.KernelDenominator();
  const Anchors anchors = AnchorsOf(trial);
  PM_ASSIGN_OR_RETURN(
      const UnitPoints points,
      UnitPoints::Create(trial.split.gallery.features.cast<float>(), anchors.features));
  const auto unit_rows = [&]() -> absl::StatusOr<Matrix> {
    Matrix rows(points.rows(), points.cols());
    PM_RETURN_IF_ERROR(points.Read(0, &rows));
    return rows;
  };
  const AffinityPlan plan = PlanEmbedding(parameters, points.rows());
  if (plan.kind != AffinityPlan::Kind::kTiled) {
    PM_ASSIGN_OR_RETURN(Matrix rows, unit_rows());
    return Result(MakeAffinity(plan, std::make_shared<MatrixPoints>(std::move(rows)), denominator));
  }
  constexpr int kManyProducts = 2;  // so many that it is worth being kept
  return KeptOrMade(trial, &SceneCache::of_rows, denominator, [&]() -> Result {
    PM_ASSIGN_OR_RETURN(Matrix rows, unit_rows());
    // Tiles that were let go lie in the arenas of many threads, which would keep them.
    ::malloc_trim(0);
    return std::make_shared<const TiledAffinity>(std::move(rows), denominator, kManyProducts,
                                                 SceneCache::kMostRows);
  });
}

absl::StatusOr<std::shared_ptr<const Scene>> MakeScene(const std::shared_ptr<const Trial>& trial,
                                                       const EmbeddingSettings& settings) {
  return KeptOrMade(*trial, &SceneCache::scenes, Describe(settings),
                    [&] { return MakeNewScene(trial, settings); });
}

absl::StatusOr<std::shared_ptr<const Trial>> Stage::TrialOf(uint64_t seed) {
  return trials_.Get(seed, [&] { return MakeTrial(study_, seed, kept_); });
}

absl::StatusOr<std::shared_ptr<const Scene>> Stage::SceneOf(uint64_t seed) {
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const Trial> trial, TrialOf(seed));
  return MakeScene(trial, study_.settings);
}

}  // namespace privatemail::client
