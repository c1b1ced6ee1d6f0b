#include "client/evaluation/scene.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/evaluation/data.h"
#include "client/evaluation/metrics.h"
#include "common/base/exactly.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "server/embedding/embed.h"

namespace privatemail {
namespace {

constexpr char kUuid[] = "00000000-0000-4000-8000-000000000000";  // of no collection of a server

// What every mechanism and baseline of the experiments takes.
constexpr double kLeastEpsilon = 1e-6;
constexpr double kMostEpsilon = 1e6;
constexpr double kLeastDelta = 1e-300;

// Ids in the order of the rows.
Gallery GalleryOf(const LabelledRows& rows) {
  Gallery gallery;
  for (size_t i = 0; i < rows.labels.size(); ++i) {
    gallery.ids.push_back(absl::StrFormat("%012d", i));
  }
  gallery.labels = rows.labels;
  gallery.payloads.resize(rows.labels.size());
  gallery.features = rows.features.cast<float>();
  return gallery;
}

}  // namespace

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
  const EmbeddingSettings& s = study.settings;
  return absl::StrCat("privatemail-evaluate " PRIVATEMAIL_VERSION "\ndata ", DigestOf(study.data),
                      "\nanchors_per_class ", study.sizes.anchors_per_class, "\ntargets ",
                      study.sizes.targets, "\ngallery_per_class ", study.sizes.gallery_per_class,
                      "\nk ", study.k, "\nepsilon ", Exactly(study.epsilon), "\ndelta ",
                      Exactly(study.delta), "\nkernel_bandwidth ", Exactly(s.kernel_bandwidth),
                      "\nalpha ", Exactly(s.alpha), "\nkernel ", static_cast<int>(s.kernel),
                      "\nlabel_graph ", static_cast<int>(s.label_graph), "\nembedding_dim ",
                      s.embedding_dim, "\nsteps ", s.steps, "\nnormalise ", s.normalise,
                      "\nstart_stddev ", Exactly(s.start_stddev));
}

absl::StatusOr<std::shared_ptr<const Trial>> MakeTrial(const Study& study, uint64_t seed) {
  auto trial = std::make_shared<Trial>();
  trial->seed = seed;
  trial->k = study.k;
  PM_ASSIGN_OR_RETURN(trial->split, MakeSplit(study.data, study.sizes, seed));
  // How many rows are left for the gallery may depend on the classes that targets come from.
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", study.k, 1,
                                         static_cast<int64_t>(trial->split.gallery.labels.size())));
  trial->nearest = NearestOf(trial->split.targets.features, trial->split.gallery.features, study.k);
  return trial;
}

absl::StatusOr<std::shared_ptr<const Scene>> MakeScene(std::shared_ptr<const Trial> trial,
                                                       const EmbeddingSettings& settings) {
  const Anchors anchors{.features = trial->split.anchors.features.cast<float>(),
                        .labels = trial->split.anchors.labels};
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters,
                      MakePublicParameters(kUuid, settings, anchors, {}, "vectors"));
  PM_ASSIGN_OR_RETURN(JointSetting joint, MakeJointSetting(parameters, anchors, std::nullopt));
  PM_ASSIGN_OR_RETURN(Embedding embedding,
                      Embed(parameters, anchors, GalleryOf(trial->split.gallery), nullptr));
  auto retriever = std::make_shared<const Retriever>(parameters, anchors.labels, embedding);
  return std::make_shared<const Scene>(Scene{.trial = std::move(trial),
                                             .joint = std::move(joint),
                                             .embedding = std::move(embedding),
                                             .retriever = std::move(retriever)});
}

absl::StatusOr<std::shared_ptr<const Trial>> Stage::TrialOf(uint64_t seed) {
  return trials_.Get(seed, [&] { return MakeTrial(study_, seed); });
}

absl::StatusOr<std::shared_ptr<const Scene>> Stage::SceneOf(uint64_t seed) {
  return scenes_.Get(seed, [&]() -> absl::StatusOr<std::shared_ptr<const Scene>> {
    PM_ASSIGN_OR_RETURN(std::shared_ptr<const Trial> trial, TrialOf(seed));
    return MakeScene(std::move(trial), study_.settings);
  });
}

}  // namespace privatemail
