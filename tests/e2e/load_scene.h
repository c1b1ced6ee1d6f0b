// The daemon of the mixed load, and the record of its callers' calls.
#ifndef PRIVATEMAIL_TESTS_E2E_LOAD_SCENE_H_
#define PRIVATEMAIL_TESTS_E2E_LOAD_SCENE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "privatemail/admin_client.h"
#include "tests/e2e/load_certificates.h"
#include "tests/e2e/programs.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::e2e {

// State of the caller's key when the call ended.
enum class KeyState { kValid, kBeingRevoked, kRevoked };

// Counts calls and records faults. Thread-safe. Besides OK these outcomes are no faults:
//   RESOURCE_EXHAUSTED  the server is busy
//   ABORTED             a build during another one
//   UNAUTHENTICATED     the key is being revoked or is revoked; the only right outcome in the
//   latter case
class Outcomes {
 public:
  // Counts a call; returns whether it succeeded.
  bool Count(const std::string& rpc, const absl::Status& status, KeyState key = KeyState::kValid);

  // Records a fault that is not the status of a call.
  void AddFault(const std::string& what);

  // Compares the counts with a daemon's audit log, which also shows retries and lost answers.
  void CompareWith(const std::string& audit_log);

  int64_t faults() const;
  std::vector<std::string> first_faults() const;
  int64_t answered() const { return Total("OK"); }
  int64_t refused_as_busy() const { return Total("RESOURCE_EXHAUSTED"); }
  // "Retrieve 90 OK 3 RESOURCE_EXHAUSTED, RevokeKey ...".
  std::string Summary() const;

 private:
  using Counts = std::map<std::string, std::map<std::string, int64_t>>;  // by RPC and status

  int64_t Total(const std::string& code) const;

  mutable std::mutex mutex_;  // guards the following
  Counts counts_;
  int64_t faults_ = 0;
  std::vector<std::string> first_faults_;
};

// Whether a call was refused without any effect, because the server is busy.
bool IsBusy(const absl::Status& status);

// A daemon with TLS, keys and the built collection "things". It admits few calls, so that two cores
// can overload it. Thread-safe except for daemon().
class Scene {
 public:
  // Items that never change; their ids begin with "base-".
  static constexpr int kBaseItems = 1000;

  // postgres: a libpq connection string; empty for SQLite. Returns errors of the calls, and
  // INTERNAL with the daemon's output if it does not listen.
  static absl::StatusOr<std::unique_ptr<Scene>> Start(const std::string& program,
                                                      const std::string& postgres);

  // Creates a connection that trusts the authority.
  absl::StatusOr<AdminClient> Connect(const std::string& key_file) const;
  // Creates a connection without key that trusts one certificate.
  absl::StatusOr<AdminClient> ConnectPinned(const std::string& fingerprint) const;

  struct Key {
    std::string id;
    std::string file;
  };
  // Creates a key for "things" and (over)writes the file NAME.key.
  absl::StatusOr<Key> MakeKey(const std::string& name, v1::KeyScope scope);

  // Repeats a call while the server is busy, and counts every attempt.
  absl::Status Persist(const char* rpc, const std::function<absl::Status()>& call,
                       KeyState key = KeyState::kValid);
  // Backs off after a refusal.
  static void Pause();

  // False after End() or 100 faults.
  bool GoesOn() const { return !ended_ && outcomes_.faults() < 100; }
  void End() { ended_ = true; }

  Daemon& daemon() { return *daemon_; }
  const AdminClient& admin() const { return *admin_; }
  const Certificates& certificates() const { return *certificates_; }
  Outcomes& outcomes() { return outcomes_; }
  std::string audit_log() const { return folder_ / "data/audit.jsonl"; }

 private:
  Scene() = default;

  absl::Status StartDaemon(const std::string& program, const std::string& postgres);
  absl::Status FillThings();

  const TemporaryFolder folder_;
  std::optional<Certificates> certificates_;
  std::unique_ptr<Daemon> daemon_;
  std::optional<AdminClient> admin_;
  Outcomes outcomes_;
  std::atomic<bool> ended_ = false;
};

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_LOAD_SCENE_H_
