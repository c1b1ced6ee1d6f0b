// A collection, its searchers and its server in one process, for measurements with seeded noise.
//
// Holds the features of targets: private data under client/. Releases are made by the production
// steps (joint_steps.h) with seeded bits and without a ledger: they hide nothing, charge nothing,
// and never leave the process, which has no network channel.
#ifndef PRIVATEMAIL_CLIENT_SIMULATION_TRIAL_H_
#define PRIVATEMAIL_CLIENT_SIMULATION_TRIAL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client/schemes/joint/joint_steps.h"
#include "common/base/matrix.h"
#include "common/embedding/affinity.h"
#include "common/embedding/bordered_affinity.h"
#include "common/embedding/smlq.h"
#include "common/index/exact_index.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client::simulation {

// A thread-safe LRU cache: concurrent misses for one key compute once, and errors are cached, too.
// Misses for different keys compute at once, which SerialMissLruCache does in turns.
template <typename Key, typename T>
class MemoCache {
 public:
  using Value = absl::StatusOr<std::shared_ptr<const T>>;

  explicit MemoCache(size_t capacity = std::numeric_limits<size_t>::max()) : capacity_(capacity) {}

  Value Get(const Key& key, absl::FunctionRef<Value()> make) {
    const std::shared_ptr<Slot> slot = SlotOf(key);
    std::call_once(slot->once, [&] { slot->value = make(); });
    return slot->value;
  }

 private:
  struct Slot {
    std::once_flag once;
    Value value;
    uint64_t used = 0;  // when, by a count
  };

  std::shared_ptr<Slot> SlotOf(const Key& key) {
    const std::lock_guard<std::mutex> guard(mutex_);
    std::shared_ptr<Slot>& place = slots_[key];
    if (place == nullptr) place = std::make_shared<Slot>();
    place->used = ++uses_;
    std::shared_ptr<Slot> slot = place;
    if (slots_.size() > capacity_) {
      slots_.erase(std::min_element(slots_.begin(), slots_.end(), [](const auto& a, const auto& b) {
        return a.second->used < b.second->used;
      }));
    }
    return slot;
  }

  const size_t capacity_;
  std::mutex mutex_;  // guards the map and the counts, not what is in its slots
  uint64_t uses_ = 0;
  std::map<Key, std::shared_ptr<Slot>> slots_;
};

// Rows of length 1 with a label each.
struct LabelledRows {
  Matrix features;              // n x d
  std::vector<int32_t> labels;  // n
};

// The rows of the three parties; no row is in two of them.
struct Split {
  LabelledRows anchors;  // public
  LabelledRows gallery;  // the server's
  LabelledRows targets;  // the searchers'
};

std::vector<int32_t> JoinLabels(std::initializer_list<std::vector<int32_t>> parts);

// Coordinates of the gallery's rows and the anchors'. Immutable and thread-safe.
struct EmbeddedGallery {
  ExactIndex items;
  Matrix anchors;
};

struct Scene;

// One split of the data. Immutable and thread-safe, but for its caches.
class Trial {
 public:
  // INVALID_ARGUMENT naming what is wrong: no rows, columns or labels that differ in number, values
  // that are not finite, fewer than 2 classes, a target of another class, k outside
  // [1, gallery rows].
  static absl::StatusOr<std::shared_ptr<const Trial>> Create(Split split, int64_t k, uint64_t seed);

  const Split& split() const { return split_; }
  int64_t k() const { return k_; }
  uint64_t seed() const { return seed_; }
  // The k nearest rows of the gallery for each target, nearest first.
  const std::vector<std::vector<int64_t>>& nearest() const { return nearest_; }

  // The collection with these settings. INVALID_ARGUMENT: settings. FAILED_PRECONDITION: the server
  // refuses to build it.
  absl::StatusOr<std::shared_ptr<const Scene>> SceneOf(const EmbeddingSettings& settings) const;

  // The feature graph over the rows of gallery and then anchors, as the server plans and rounds it.
  absl::StatusOr<std::shared_ptr<const AffinityOperator>> ServerGraph(
      const PublicParameters& parameters) const;

 private:
  Trial(Split split, int64_t k, uint64_t seed);
  absl::StatusOr<std::shared_ptr<const FixedRows>> AnchorGraph(double denominator) const;
  absl::StatusOr<std::shared_ptr<const Scene>> MakeScene(const EmbeddingSettings& settings) const;

  const Split split_;
  const int64_t k_;
  const uint64_t seed_;
  std::vector<std::vector<int64_t>> nearest_;
  // By kernel denominator. Among 10,000 rows affinities take 400 MB, among 1,000 anchors 4 MB.
  mutable MemoCache<double, AffinityOperator> graphs_of_rows_{2};
  mutable MemoCache<double, FixedRows> graphs_of_anchors_{8};
  mutable MemoCache<std::string, Scene> scenes_{16};
};

// A collection on a trial. Immutable and thread-safe.
struct Scene {
  const Trial* trial;  // outlives it: the trial's cache holds it, and callers hold the trial
  JointSetting joint;  // the searcher's side
  std::shared_ptr<const EmbeddedGallery> embedded;  // the server's side

  const EmbeddingSettings& settings() const { return joint.parameters.settings; }
};

// The rows of each list of neighbours, in its order.
std::vector<std::vector<int64_t>> RowsOf(const std::vector<std::vector<Neighbor>>& neighbors);
// The k rows of `points` nearest to each row of `queries`, nearest first.
std::vector<std::vector<int64_t>> NearestOf(const Matrix& queries, const Matrix& points, int64_t k);

}  // namespace privatemail::client::simulation

#endif  // PRIVATEMAIL_CLIENT_SIMULATION_TRIAL_H_
