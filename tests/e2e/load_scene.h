// What the callers of a load have in common.
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

// A daemon with TLS and keys and the collection "things" in it, built once. Few places and a short
// queue, so that two cores' worth of callers are more than it takes. Thread-safe but for daemon().
class Scene {
 public:
  // Items that stay as they are; their ids begin with "base-".
  static constexpr int kBaseItems = 1000;

  // postgres: a libpq connection string; empty: SQLite. Errors: those of the calls, and what the
  // daemon said when it does not listen.
  static absl::StatusOr<std::unique_ptr<Scene>> Start(const std::string& program,
                                                      const std::string& postgres);

  // A connection of its own, which trusts the authority of the certificates.
  absl::StatusOr<Transport> Connect(const std::string& key_file) const;
  // The same that trusts one certificate and shows no key.
  absl::StatusOr<Transport> ConnectPinned(const std::string& fingerprint) const;

  struct Key {
    std::string id;
    std::string file;
  };
  // For "things". Its file is named after `name`, and replaces one of that name.
  absl::StatusOr<Key> MakeKey(const std::string& name, v1::KeyScope scope);

  // Calls until the server is not too busy for it, and counts every attempt.
  absl::Status Persist(const char* rpc, const std::function<absl::Status()>& call,
                       KeyState key = KeyState::kValid);
  // What a refused caller does before the next call.
  static void Pause();

  // Whether callers are to go on. After so many faults nothing is learnt from more.
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
