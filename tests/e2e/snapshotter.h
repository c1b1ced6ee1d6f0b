// A caller who copies a collection through snapshots and records what the server acknowledged.
#ifndef PRIVATEMAIL_TESTS_E2E_SNAPSHOTTER_H_
#define PRIVATEMAIL_TESTS_E2E_SNAPSHOTTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "privatemail/admin_client.h"
#include "privatemail/v1/collections.pb.h"
#include "tests/e2e/writers.h"

namespace privatemail::e2e {

// Items of a collection by id.
using Stored = std::map<std::string, v1::Item>;

// Repeatedly takes a snapshot, restores it under another name and deletes an earlier copy.
// Not thread-safe.
class Snapshotter {
 public:
  explicit Snapshotter(std::string collection) : collection_(std::move(collection)) {}

  // Works until a call fails; its effect is open from then on. Returns its status, or DATA_LOSS if
  // a snapshot is incomplete although its call succeeded.
  absl::Status WorkUntilFailure(const AdminClient& transport);

  // Compares the copies with what was acknowledged. An open copy must exist as a whole or not at
  // all; it is settled then. Returns a line for each difference.
  std::vector<std::string> Check(const AdminClient& transport);

  int64_t snapshots() const { return snapshots_; }
  int64_t restored() const { return restored_; }

 private:
  absl::Status WorkOnce(const AdminClient& transport);
  absl::Status Take(const AdminClient& transport, std::string* bytes, Stored* items);
  std::string CheckCopy(const AdminClient& transport, const std::string& name,
                        const Stored& expected) const;

  const std::string collection_;
  std::map<std::string, Stored> copies_;                // acknowledged
  std::optional<std::pair<std::string, Stored>> open_;  // being restored or deleted
  int64_t snapshots_ = 0;
  int64_t restored_ = 0;
  int64_t names_ = 0;
};

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_SNAPSHOTTER_H_
