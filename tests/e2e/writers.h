// Callers who write to a collection and remember what the server acknowledged.
#ifndef PRIVATEMAIL_TESTS_E2E_WRITERS_H_
#define PRIVATEMAIL_TESTS_E2E_WRITERS_H_

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "privatemail/transport.h"
#include "privatemail/v1/collections.pb.h"
#include "tests/e2e/programs.h"

namespace privatemail::e2e {

// What is stored under each id: an item of that write, all of which depends on id and number.
using Contents = std::map<std::string, uint64_t>;  // the number of the last write

// The item that write `number` stores under an id: label, payload and features are all of it.
v1::Item ItemOf(const std::string& id, uint64_t number);

// Whether an item is wholly the one of this write.
bool Is(const v1::Item& item, uint64_t number);

// All items of a collection by id, page after page. Errors of the calls pass through.
absl::StatusOr<std::map<std::string, v1::Item>> StoredItems(const Transport& transport,
                                                            const std::string& collection);

// A writer of ids of its own: upserts in streams of up to three messages and deletions, at random,
// one call after another. Not thread-safe.
class Writer {
 public:
  Writer(const std::string& name, const std::string& collection, unsigned seed);

  // Makes calls until one fails; what that one has done is open from then on. Returns its status.
  absl::Status WriteUntilFailure(const Transport& transport);
  // The same for `calls` calls; OK after the last.
  absl::Status Write(const Transport& transport, int calls);
  // A single call of either kind.
  absl::Status Upsert(const Transport& transport);
  absl::Status Delete(const Transport& transport);
  // The call that failed was refused as a whole: nothing of it is open. Only then may calls go on
  // after a failure without a check.
  void TakeRefusal() { open_.clear(); }

  // Compares what is stored under the writer's ids with what was acknowledged, and settles what is
  // open: its messages must be there as far as one of them, each whole. Returns what is wrong, a
  // line each.
  std::vector<std::string> Check(const std::map<std::string, v1::Item>& stored);

  // Whose ids these are.
  bool Owns(const std::string& id) const;

  int64_t acknowledged_messages() const { return acknowledged_messages_; }
  int64_t acknowledged_items() const { return acknowledged_items_; }
  // Messages that were open at a check: how many were found stored, and how many not.
  int64_t open_there() const { return open_there_; }
  int64_t open_not_there() const { return open_not_there_; }

 private:
  // What one message does to each of its ids; 0: deletes it.
  using Change = std::map<std::string, uint64_t>;

  absl::Status WriteOnce(const Transport& transport);
  absl::Status Settle(const absl::Status& status);
  Change NewChange(bool deletes);
  void Acknowledge();
  static void Apply(const Change& change, Contents* contents);
  std::string Differences(const Contents& expected,
                          const std::map<std::string, v1::Item>& stored) const;

  const std::string name_;
  const std::string collection_;
  std::mt19937 bits_;
  uint64_t writes_ = 0;
  Contents acknowledged_;
  std::vector<Change> open_;
  int64_t acknowledged_messages_ = 0;
  int64_t acknowledged_items_ = 0;
  int64_t open_there_ = 0;
  int64_t open_not_there_ = 0;
};

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_WRITERS_H_
