// A caller who copies a collection by way of snapshots, and remembers what the server acknowledged.
#ifndef PRIVATEMAIL_TESTS_E2E_SNAPSHOTTER_H_
#define PRIVATEMAIL_TESTS_E2E_SNAPSHOTTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "privatemail/transport.h"
#include "privatemail/v1/collections.pb.h"
#include "tests/e2e/writers.h"

namespace privatemail::e2e {

// What is stored in a collection, by id.
using Stored = std::map<std::string, v1::Item>;

// Takes a snapshot, restores it under another name and deletes an earlier copy, again and again.
// Not thread-safe.
class Snapshotter {
 public:
  explicit Snapshotter(std::string collection) : collection_(std::move(collection)) {}

  // Until a call fails; what that one has done is open from then on. Returns its status. DATA_LOSS:
  // a snapshot that the server says is complete is not.
  absl::Status WorkUntilFailure(const Transport& transport);

  // Compares the copies with what was acknowledged, and settles what is open: a copy that was being
  // restored or deleted must be there as a whole or not at all. Returns what is wrong, a line each.
  std::vector<std::string> Check(const Transport& transport);

  int64_t snapshots() const { return snapshots_; }
  int64_t restored() const { return restored_; }

 private:
  absl::Status WorkOnce(const Transport& transport);
  absl::Status Take(const Transport& transport, std::string* bytes, Stored* items);
  std::string CheckCopy(const Transport& transport, const std::string& name,
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
