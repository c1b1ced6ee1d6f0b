// A daemon without gRPC, which the thread sanitizer does not understand.
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
#include "server/engine/maintenance.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::testing {

using namespace server;  // NOLINT: every test of the server

// Calls take the steps of services/gate.cc: key, rate limit, admission, thread pool, audit log.
// Thread-safe.
class CoreCalls {
 public:
  CoreCalls();

  // Blocks. UNAUTHENTICATED, RESOURCE_EXHAUSTED (IsBusy or the key's rate), or the status of
  // `work`.
  absl::Status Call(const std::string& key_text, const std::function<absl::Status()>& work);

  // The reload of SIGHUP, with other limits each time.
  void Reload();

  // A new key for all collections; requests_per_second 0: no limit.
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
  std::unique_ptr<Maintenance> builds_;
  ThreadPool thread_pool_;  // last: what they do uses the others
};

// True if admission control refused the call.
bool IsBusy(const absl::Status& status);

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_ENGINE_CORE_CALLS_H_
