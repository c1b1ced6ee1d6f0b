// Counts of the mixed load's calls, and faults among them.
#ifndef PRIVATEMAIL_TESTS_E2E_LOAD_OUTCOMES_H_
#define PRIVATEMAIL_TESTS_E2E_LOAD_OUTCOMES_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"

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

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_LOAD_OUTCOMES_H_
