// Calls of a daemon without gRPC.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_ENGINE_CORE_CALLS_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_ENGINE_CORE_CALLS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/thread_pool.h"
#include "server/access/admission.h"
#include "server/access/audit_log.h"
#include "server/access/key_ring.h"
#include "server/access/limits.h"
#include "server/engine/catalog.h"
#include "server/engine/rebuild_scheduler.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::testing {

// All that the daemon is made of but gRPC, which no thread sanitizer understands. A call takes the
// way that services/gate.cc leads it: key, rate, place, worker, audit log. Thread-safe.
class CoreCalls {
 public:
  CoreCalls();

  // Waits for its end. UNAUTHENTICATED, RESOURCE_EXHAUSTED (IsBusy or of the key's rate), or what
  // `work` returns.
  absl::Status Call(const std::string& key_text, const std::function<absl::Status()>& work);

  // What SIGHUP makes the daemon do, with other limits every time.
  void Reload();

  // Text of a new key for all collections; requests_per_second 0: as many as it likes.
  NewAccessKey MakeKey(Scopes scopes, double requests_per_second = 0);

  KeyRing& keys() { return *keys_; }
  Catalog& catalog() { return *catalog_; }
  int64_t calls() const { return calls_; }
  int64_t audit_lines() const;

 private:
  absl::Status Work(Admission::Ticket* ticket, const std::function<absl::Status()>& work);

  const TemporaryFolder folder_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<KeyRing> keys_;
  std::unique_ptr<AuditLog> audit_;
  RateLimiter rates_;
  std::atomic<int64_t> calls_ = 0;
  std::atomic<int64_t> reloads_ = 0;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<RebuildScheduler> builds_;
  ThreadPool thread_pool_;  // last: what they do uses the others
};

// Whether a call was refused because others are worked on or wait.
bool IsBusy(const absl::Status& status);

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_ENGINE_CORE_CALLS_H_
