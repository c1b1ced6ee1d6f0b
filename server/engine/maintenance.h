// Periodic work on a catalog: automatic builds, and the end of its read-only state.
#ifndef PRIVATEMAIL_SERVER_ENGINE_MAINTENANCE_H_
#define PRIVATEMAIL_SERVER_ENGINE_MAINTENANCE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/background_queue.h"
#include "server/engine/catalog.h"

namespace privatemail::server {

struct RebuildOptions {
  // A collection is due when its changes reach this share of its embedded items. 0: never.
  double share = 0;
  // A due collection is built after this time without changes, so that an upload is not embedded
  // repeatedly, and at the latest after kMaxQuietPeriods times this time.
  absl::Duration quiet = absl::Seconds(5);
  int64_t memory = std::numeric_limits<int64_t>::max();  // bytes, as in Catalog::Build
};

// These are the items that a collection has embedded, and the changes since.
struct EmbeddedItems {
  uint64_t items = 0;
  uint64_t changes = 0;
};

// Tries a read-only catalog every kRecoveryInterval until it takes writes, and never again after
// that. From then on polls it and rebuilds due collections, one at a time. Never runs a first
// build: only the operator knows whether the items are complete. Thread-safe.
class Maintenance {
 public:
  static constexpr int kMaxQuietPeriods = 12;
  static constexpr absl::Duration kRetryDelay = absl::Minutes(1);  // after a build that failed
  static constexpr absl::Duration kRecoveryInterval = absl::Seconds(2);
  static constexpr absl::Duration kQuestionInterval = absl::Seconds(5);  // Hooks::embedded

  struct Hooks {
    // Whether the collection may be built now; an error is reported as a failed build.
    std::function<absl::Status(const CollectionView&)> check;
    std::function<void(const std::string& collection, const absl::Status&)> ended;
    // Called by the constructor with the reason if the catalog is read-only, and with OK once it
    // takes writes; never if it takes them from the start.
    std::function<void(const absl::Status&)> read_only = nullptr;
    // On a front, whose catalog has no embeddings: those of its shards by the names of collections
    // that are built, nullopt while they cannot say; and a build of all shards. Null: those of the
    // catalog.
    using Cancelled = std::function<bool()>;
    std::function<std::optional<std::map<std::string, EmbeddedItems>>(const Cancelled&)> embedded =
        nullptr;
    std::function<absl::Status(const std::string& collection, const Cancelled&)> build = nullptr;
  };

  // The catalog and what the hooks use must outlive it. Destruction cancels a running build, which
  // leaves the former embedding in place.
  Maintenance(Catalog* catalog, const RebuildOptions& options, Hooks hooks);

  void SetOptions(const RebuildOptions& options);

 private:
  using Clock = std::chrono::steady_clock;

  struct DueCollection {
    uint64_t latest_version = 0;
    Clock::time_point since;       // when it became due
    Clock::time_point changed;     // when latest_version was first seen
    Clock::time_point not_before;  // after a build that failed
  };

  void QueueTry();
  void QueuePoll(absl::Duration delay);
  void Poll(const std::atomic<bool>& stopped);
  // The name of a collection that is to be built now; empty: none.
  std::string Next(const RebuildOptions& options, const std::atomic<bool>& stopped);
  std::optional<std::map<std::string, EmbeddedItems>> Embedded(
      const std::vector<CollectionView>& views, const std::atomic<bool>& stopped) const;
  void Build(const std::string& name, int64_t memory, const std::atomic<bool>& stopped);

  Catalog* const catalog_;
  const Hooks hooks_;
  std::map<std::string, DueCollection> due_;  // by UUID; used by jobs only
  Clock::time_point next_question_;           // to the shards of a front
  std::mutex mutex_;                          // guards options_
  RebuildOptions options_;
  // Last: its jobs use the other members. Builds lower their priority themselves.
  BackgroundQueue queue_{BackgroundQueue::Priority::kNormal};
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_MAINTENANCE_H_
