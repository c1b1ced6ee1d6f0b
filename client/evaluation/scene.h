// One collection with its three parties, set up as the service would, in one process.
//
// Holds the features of targets: private data under client/, as in every searcher. Releases of an
// evaluation are made by the production steps (joint_steps.h, anchored_steps.h) with seeded bits
// and without a ledger: their noise can be computed again by whoever knows the seed, so they hide
// nothing, charge nothing, and never leave the process, which has no network channel.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_SCENE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_SCENE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/evaluation/dataset.h"
#include "client/evaluation/embedded_gallery.h"
#include "client/evaluation/made_once.h"
#include "client/evaluation/split.h"
#include "client/schemes/anchored/anchored_steps.h"
#include "client/schemes/joint/joint_steps.h"
#include "common/embedding/affinity.h"
#include "common/embedding/bordered_affinity.h"
#include "common/embedding/smlq.h"

namespace privatemail::client {

// What every experiment of a run has in common.
struct Study {
  LabelledRows data;
  std::string about;  // the data, for people
  SplitSizes sizes;
  int64_t k = 8;                 // items that are asked for
  int64_t seeds = 3;             // 1 .. seeds, each with a split and noise of its own
  std::vector<double> epsilons;  // ascending, at least one
  double epsilon = 1;            // where an experiment has one only
  double delta = 1e-5;
  EmbeddingSettings settings;
};

// INVALID_ARGUMENT naming the field: out of range, epsilons that do not ascend, k above what a
// gallery has.
absl::Status Validate(const Study& study);

// All of it, the data by its digest, and the program by that of its file: what another build has
// computed is no result of this one.
std::string Describe(const Study& study);

// The nearest 64 others of each item in the gallery, or all, nearest first.
using ItemNeighbors = std::vector<std::vector<int64_t>>;

struct Kept;

// One split of the data. Immutable.
struct Trial {
  uint64_t seed = 0;
  int64_t k = 0;
  DataSplit split;
  std::vector<std::vector<int64_t>> nearest;  // of each target the k nearest of the gallery
  std::weak_ptr<Kept> kept = {};              // its stage's; none of a trial by itself
};
absl::StatusOr<std::shared_ptr<const Trial>> MakeTrial(const Study& study, uint64_t seed,
                                                       std::weak_ptr<Kept> kept = {});

// A collection on it. Immutable and thread-safe.
struct Scene {
  std::shared_ptr<const Trial> trial;
  JointSetting joint;                        // the searcher's side
  absl::StatusOr<AnchoredSetting> anchored;  // by the anchored scheme; or why there is none
  std::shared_ptr<const EmbeddedGallery> embedded;  // the server's side

  const EmbeddingSettings& settings() const { return joint.parameters.settings; }
};
// The same one again, where the trial's stage has it still.
absl::StatusOr<std::shared_ptr<const Scene>> MakeScene(const std::shared_ptr<const Trial>& trial,
                                                       const EmbeddingSettings& settings);

// The feature graph over the rows of gallery and then anchors, as the server plans and rounds it.
absl::StatusOr<std::shared_ptr<const AffinityOperator>> ServersGraph(
    const Trial& trial, const PublicParameters& parameters);

// What scenes have in common: affinities depend on a split and the kernel's denominator alone, and
// conditions that differ in their noise have one scene. Limits are by memory. A scene of 10,000
// rows takes a few megabytes, and all of one split are kept until the next is under way; among so
// many rows affinities take 400 MB, among 1,000 anchors 4.
struct Kept {
  static constexpr Eigen::Index kMostRows = 10'000;  // more are computed again for every product

  template <typename T>
  using ByDenominator = MadeOnce<std::pair<uint64_t, double>, T>;
  ByDenominator<AffinityOperator> of_rows{3};
  ByDenominator<FixedRows> of_anchors{16};
  MadeOnce<std::pair<uint64_t, std::string>, Scene> scenes{40};
  MadeOnce<uint64_t, ItemNeighbors> item_neighbors{2};
};

// The trials of a study, and their scenes, made when they are first asked for and kept.
// Thread-safe.
class Stage {
 public:
  explicit Stage(Study study) : study_(std::move(study)), kept_(std::make_shared<Kept>()) {}

  const Study& study() const { return study_; }
  absl::StatusOr<std::shared_ptr<const Trial>> TrialOf(uint64_t seed);
  absl::StatusOr<std::shared_ptr<const Scene>> SceneOf(uint64_t seed);

 private:
  const Study study_;
  MadeOnce<uint64_t, Trial> trials_;
  const std::shared_ptr<Kept> kept_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_SCENE_H_
