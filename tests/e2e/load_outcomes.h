// What became of the calls of a load.
#ifndef PRIVATEMAIL_TESTS_E2E_LOAD_OUTCOMES_H_
#define PRIVATEMAIL_TESTS_E2E_LOAD_OUTCOMES_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace privatemail::e2e {

// What the caller's key was when the call ended.
enum class KeyState { kValid, kBeingRevoked, kRevoked };

// Counts every call and keeps what must not have been. Thread-safe.
//
// Beside an answer these are in order: RESOURCE_EXHAUSTED of a server that is busy, ABORTED of a
// build of what is being built, UNAUTHENTICATED of a key that is or is being revoked, which of a
// revoked key is the only one in order.
class Outcomes {
 public:
  // Counts a call and says whether it was answered.
  bool Count(const std::string& rpc, const absl::Status& status, KeyState key = KeyState::kValid);

  // Something else that must not have been.
  void AddFault(const std::string& what);

  // Compares with what a daemon wrote of the same calls. Sees what a client's repetitions hide, and
  // calls that were done without an answer.
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

// Whether a call was refused before anything of it was done, because others are.
bool IsBusy(const absl::Status& status);

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_LOAD_OUTCOMES_H_
