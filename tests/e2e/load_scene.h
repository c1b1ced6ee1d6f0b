// The daemon of the mixed load, and what its callers share.
#ifndef PRIVATEMAIL_TESTS_E2E_LOAD_SCENE_H_
#define PRIVATEMAIL_TESTS_E2E_LOAD_SCENE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "privatemail/transport.h"
#include "tests/e2e/load_certificates.h"
#include "tests/e2e/load_outcomes.h"
#include "tests/e2e/programs.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::e2e {

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
  absl::StatusOr<Transport> Connect(const std::string& key_file) const;
  // Creates a connection without key that trusts one certificate.
  absl::StatusOr<Transport> ConnectPinned(const std::string& fingerprint) const;

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
  const Transport& admin() const { return *admin_; }
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
  std::optional<Transport> admin_;
  Outcomes outcomes_;
  std::atomic<bool> ended_ = false;
};

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_LOAD_SCENE_H_
