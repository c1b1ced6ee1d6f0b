// Builds collections again by itself when enough of their items have changed.
#ifndef PRIVATEMAIL_SERVER_ENGINE_AUTOMATIC_BUILDS_H_
#define PRIVATEMAIL_SERVER_ENGINE_AUTOMATIC_BUILDS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/engine/catalog.h"

namespace privatemail::server {

struct AutomaticBuildOptions {
  // Changes, as a share of the embedded items, from which a collection is due. 0: never.
  double share = 0;
  // A collection that is due is built when nothing of it has changed for so long, so that an upload
  // is not embedded over and over, and in any case after kLongestWait times as long.
  absl::Duration quiet = absl::Seconds(5);
  // Bytes that a build may take before it keeps features in a file (Catalog::Build).
  int64_t memory = std::numeric_limits<int64_t>::max();
};

// One build at a time, on a thread of its own. Never the first build of a collection: whether its
// items are complete only its operator knows. Thread-safe.
class AutomaticBuilds {
 public:
  static constexpr int kLongestWait = 12;
  static constexpr absl::Duration kAfterFailure = absl::Minutes(1);

  struct Hooks {
    // Whether this collection may be built now; a reason against it is reported as a failure.
    std::function<absl::Status(const CollectionView&)> check;
    std::function<void(const std::string& collection, double done)> progress;  // 0 to 1
    std::function<void(const std::string& collection, const absl::Status&)> ended;
  };

  // The catalog and what the hooks use must outlive it.
  AutomaticBuilds(Catalog* catalog, const AutomaticBuildOptions& options, Hooks hooks);
  // Ends a build under way, which leaves the former embedding in place.
  ~AutomaticBuilds();

  void SetOptions(const AutomaticBuildOptions& options);

 private:
  using Clock = std::chrono::steady_clock;  // goes on when somebody sets the machine's time

  // What was seen of a collection since its changes crossed the share.
  struct Due {
    uint64_t latest_version = 0;
    Clock::time_point since;       // when it became due
    Clock::time_point changed;     // when latest_version was seen first
    Clock::time_point not_before;  // after a build that failed
  };

  void Run();
  // The name of a collection whose time has come; empty: none.
  std::string Next(const AutomaticBuildOptions& options);
  void Build(const std::string& name, int64_t memory);

  Catalog* const catalog_;
  const Hooks hooks_;
  std::map<std::string, Due> due_;  // by UUID; the thread's alone
  std::mutex mutex_;                // guards the following
  std::condition_variable wake_;
  AutomaticBuildOptions options_;
  bool stopping_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_AUTOMATIC_BUILDS_H_
