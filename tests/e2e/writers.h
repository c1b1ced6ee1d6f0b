// A caller who writes to a collection and records what the server acknowledged.
#ifndef PRIVATEMAIL_TESTS_E2E_WRITERS_H_
#define PRIVATEMAIL_TESTS_E2E_WRITERS_H_

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "privatemail/admin_client.h"
#include "privatemail/v1/collections.pb.h"
#include "tests/e2e/programs.h"

namespace privatemail::e2e {

// The number of the last write under each id. An item depends on its id and that number only.
using Contents = std::map<std::string, uint64_t>;

// The item that write `number` stores under an id.
v1::Item ItemOf(const std::string& id, uint64_t number);

// Whether all fields of an item are those of this write.
bool IsOfWrite(const v1::Item& item, uint64_t number);

// All items of a collection by id. Returns errors of the calls.
absl::StatusOr<std::map<std::string, v1::Item>> StoredItems(const AdminClient& transport,
                                                            const std::string& collection);

// Makes random calls, one after another: deletions, and upserts in streams of up to three messages.
// Its ids are its own. Not thread-safe.
class Writer {
 public:
  Writer(const std::string& name, const std::string& collection, unsigned seed);

  // Makes calls until one fails; its effect is open from then on. Returns its status.
  absl::Status WriteUntilFailure(const AdminClient& transport);
  // Makes `calls` calls; stops at the first that fails.
  absl::Status Write(const AdminClient& transport, int calls);
  // A single call of either kind.
  absl::Status Upsert(const AdminClient& transport);
  absl::Status Delete(const AdminClient& transport);

  // Compares the items under the writer's ids with what was acknowledged. Of an open stream the
  // first messages must be stored, each as a whole; it is settled then. Returns a line for each
  // difference.
  std::vector<std::string> Check(const std::map<std::string, v1::Item>& stored);

  // Whether an id is one of this writer's.
  bool Owns(const std::string& id) const;

  int64_t acknowledged_messages() const { return acknowledged_messages_; }

 private:
  // The write of each id of one message; 0 deletes it.
  using Change = std::map<std::string, uint64_t>;

  absl::Status WriteOnce(const AdminClient& transport);
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
};

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_WRITERS_H_
