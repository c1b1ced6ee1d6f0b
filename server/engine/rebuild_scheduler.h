// A scheduler of automatic builds.
#ifndef PRIVATEMAIL_SERVER_ENGINE_REBUILD_SCHEDULER_H_
#define PRIVATEMAIL_SERVER_ENGINE_REBUILD_SCHEDULER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
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

// Polls the catalog and rebuilds due collections, one at a time, on its own thread. Not a
// BackgroundQueue: jobs are chosen by their state, and builds lower their priority themselves.
// Never runs a first build: only the operator knows whether the items are complete. Thread-safe.
class RebuildScheduler {
 public:
  static constexpr int kMaxQuietPeriods = 12;
  static constexpr absl::Duration kRetryDelay = absl::Minutes(1);  // after a build that failed

  struct Hooks {
    // Whether the collection may be built now; an error is reported as a failed build.
    std::function<absl::Status(const CollectionView&)> check;
    std::function<void(const std::string& collection, double share)> progress;  // 0 to 1
    std::function<void(const std::string& collection, const absl::Status&)> ended;
  };

  // The catalog and what the hooks use must outlive it.
  RebuildScheduler(Catalog* catalog, const RebuildOptions& options, Hooks hooks);
  // Cancels a running build, which leaves the former embedding in place.
  ~RebuildScheduler();

  void SetOptions(const RebuildOptions& options);

 private:
  using Clock = std::chrono::steady_clock;

  struct DueCollection {
    uint64_t latest_version = 0;
    Clock::time_point since;       // when it became due
    Clock::time_point changed;     // when latest_version was first seen
    Clock::time_point not_before;  // after a build that failed
  };

  void Run();
  // The name of a collection that is to be built now; empty: none.
  std::string Next(const RebuildOptions& options);
  void Build(const std::string& name, int64_t memory);

  Catalog* const catalog_;
  const Hooks hooks_;
  std::map<std::string, DueCollection> due_;  // by UUID; used by thread_ only
  std::mutex mutex_;                          // guards the following
  std::condition_variable wake_;
  RebuildOptions options_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_REBUILD_SCHEDULER_H_
