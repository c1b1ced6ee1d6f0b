// One collection with its three parties, set up as the service would, in one process.
//
// Holds the features of targets: private data under client/. Releases are made by the production
// steps (joint_steps.h, anchored_steps.h) with seeded bits and without a ledger: they hide nothing,
// charge nothing, and never leave the process, which has no network channel.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_SCENE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_SCENE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client/baselines/baseline.h"
#include "client/evaluation/data.h"
#include "client/schemes/anchored/anchored_steps.h"
#include "client/schemes/joint/joint_steps.h"
#include "common/base/matrix.h"
#include "common/embedding/affinity.h"
#include "common/embedding/bordered_affinity.h"
#include "common/embedding/label_graph.h"
#include "common/embedding/smlq.h"
#include "common/index/exact_index.h"

namespace privatemail::client {

// A thread-safe cache: concurrent misses for one key compute once, and errors are cached, too. With
// a limit it evicts the least recently used.
template <typename Key, typename T>
class MadeOnce {
 public:
  using Value = absl::StatusOr<std::shared_ptr<const T>>;

  explicit MadeOnce(size_t most = std::numeric_limits<size_t>::max()) : most_(most) {}

  Value Get(const Key& key, absl::FunctionRef<Value()> make) {
    const std::shared_ptr<Slot> slot = SlotOf(key);
    std::call_once(slot->once, [&] { slot->value = make(); });
    return slot->value;
  }

 private:
  struct Slot {
    std::once_flag once;
    Value value;
    uint64_t asked = 0;  // when, by a count
  };

  std::shared_ptr<Slot> SlotOf(const Key& key) {
    const std::lock_guard<std::mutex> guard(mutex_);
    std::shared_ptr<Slot>& place = slots_[key];
    if (place == nullptr) place = std::make_shared<Slot>();
    place->asked = ++asked_;
    std::shared_ptr<Slot> slot = place;
    if (slots_.size() > most_) {
      slots_.erase(std::min_element(slots_.begin(), slots_.end(), [](const auto& a, const auto& b) {
        return a.second->asked < b.second->asked;
      }));
    }
    return slot;
  }

  const size_t most_;
  std::mutex mutex_;  // guards the map and the counts, not what is in its slots
  uint64_t asked_ = 0;
  std::map<Key, std::shared_ptr<Slot>> slots_;
};

// Coordinates of the gallery's rows and the anchors'. Immutable and thread-safe.
struct EmbeddedGallery {
  ExactIndex items;
  Matrix anchors;
  double objective = 0;
};

struct SlotAnswer {
  std::vector<int64_t> rows;     // the k nearest of the gallery
  double relative_residual = 0;  // of the anchors under the alignment
};

// The k items nearest to slot `slot` of a release ((slots + anchors) x dim): post-processing if
// asked for, Kabsch-Umeyama on the anchor rows, exact search. FAILED_PRECONDITION: the release
// cannot be aligned, or vanishes or overflows.
absl::StatusOr<SlotAnswer> SearchSlot(const EmbeddedGallery& gallery, const Matrix& release,
                                      const LabelGraph& label_graph,
                                      const EmbeddingSettings& settings, bool post_process,
                                      int64_t slot, int64_t k);

// Settings that all experiments of a run share.
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

struct SceneCache;

// One split of the data. Immutable.
struct Trial {
  uint64_t seed = 0;
  int64_t k = 0;
  DataSplit split;
  std::vector<std::vector<int64_t>> nearest;  // of each target the k nearest of the gallery
  std::weak_ptr<SceneCache> kept = {};        // its stage's; none of a trial by itself
};
absl::StatusOr<std::shared_ptr<const Trial>> MakeTrial(const Study& study, uint64_t seed,
                                                       std::weak_ptr<SceneCache> kept = {});

// A collection on it. Immutable and thread-safe.
struct Scene {
  std::shared_ptr<const Trial> trial;
  JointSetting joint;                               // the searcher's side
  absl::StatusOr<AnchoredSetting> anchored;         // by the anchored scheme; or why there is none
  std::shared_ptr<const EmbeddedGallery> embedded;  // the server's side

  const EmbeddingSettings& settings() const { return joint.parameters.settings; }
};
// The same one again, where the trial's stage has it still.
absl::StatusOr<std::shared_ptr<const Scene>> MakeScene(const std::shared_ptr<const Trial>& trial,
                                                       const EmbeddingSettings& settings);

// The feature graph over the rows of gallery and then anchors, as the server plans and rounds it.
absl::StatusOr<std::shared_ptr<const AffinityOperator>> ServersGraph(
    const Trial& trial, const PublicParameters& parameters);

// Values that scenes share, limited by memory: among 10,000 rows affinities take 400 MB, among
// 1,000 anchors 4 MB.
struct SceneCache {
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
  explicit Stage(Study study) : study_(std::move(study)), kept_(std::make_shared<SceneCache>()) {}

  const Study& study() const { return study_; }
  absl::StatusOr<std::shared_ptr<const Trial>> TrialOf(uint64_t seed);
  absl::StatusOr<std::shared_ptr<const Scene>> SceneOf(uint64_t seed);

 private:
  const Study study_;
  MadeOnce<uint64_t, Trial> trials_;
  const std::shared_ptr<SceneCache> kept_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_SCENE_H_
