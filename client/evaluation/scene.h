// One collection with its three parties, set up as the service would, in one process.
//
// Holds the features of targets: private data under client/, as in every searcher. Releases of an
// evaluation are made by the production steps (joint_steps.h) with seeded bits and without a
// ledger: their noise can be computed again by whoever knows the seed, so they hide nothing, charge
// nothing, and never leave the process, which has no network channel.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_SCENE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_SCENE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/evaluation/dataset.h"
#include "client/evaluation/made_once.h"
#include "client/evaluation/split.h"
#include "client/release/joint_steps.h"
#include "common/numerics/smlq.h"
#include "server/engine/retriever.h"
#include "server/store/types.h"

namespace privatemail {

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

// All of it, the data by its digest, and the version of the program.
std::string Describe(const Study& study);

// One split of the data. Immutable.
struct Trial {
  uint64_t seed = 0;
  int64_t k = 0;
  DataSplit split;
  std::vector<std::vector<int64_t>> nearest;  // of each target the k nearest of the gallery
};
absl::StatusOr<std::shared_ptr<const Trial>> MakeTrial(const Study& study, uint64_t seed);

// A collection on it. Immutable and thread-safe.
struct Scene {
  std::shared_ptr<const Trial> trial;
  JointSetting joint;   // the searcher's side
  Embedding embedding;  // the server's; its rows are the gallery's
  std::shared_ptr<const Retriever> retriever;

  const EmbeddingSettings& settings() const { return joint.parameters.settings; }
};
absl::StatusOr<std::shared_ptr<const Scene>> MakeScene(std::shared_ptr<const Trial> trial,
                                                       const EmbeddingSettings& settings);

// The trials of a study, and their scenes with its settings, made when they are first asked for and
// kept. Thread-safe.
class Stage {
 public:
  explicit Stage(Study study) : study_(std::move(study)) {}

  const Study& study() const { return study_; }
  absl::StatusOr<std::shared_ptr<const Trial>> TrialOf(uint64_t seed);
  absl::StatusOr<std::shared_ptr<const Scene>> SceneOf(uint64_t seed);

 private:
  const Study study_;
  MadeOnce<uint64_t, Trial> trials_;
  MadeOnce<uint64_t, Scene> scenes_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_SCENE_H_
