// Lists of items that answer for cells, kept for the next who asks for the same.
#ifndef PRIVATEMAIL_SERVER_CELLS_KEPT_LISTS_H_
#define PRIVATEMAIL_SERVER_CELLS_KEPT_LISTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/one_at_a_time.h"

namespace privatemail {

// The lists that were asked for last, in bounded memory. A list's beginning is the list for fewer
// rows, so that one is kept for all lengths. Thread-safe.
class KeptLists {
 public:
  using List = std::shared_ptr<const std::vector<int32_t>>;  // rows
  struct Key {
    size_t partition;
    double epsilon;
    int64_t cell;

    bool operator<(const Key& other) const {
      return std::tie(partition, epsilon, cell) <
             std::tie(other.partition, other.epsilon, other.cell);
    }
  };

  // most_rows: of all kept lists together.
  explicit KeptLists(int64_t most_rows) : most_rows_(most_rows) {}

  // At least `length` rows, kept or made. `make` is called for one list at a time, whoever asks:
  // who calls with many different wishes has one core at most. Those that are kept are had
  // meanwhile. CANCELLED: `cancelled`, which is asked again while the call waits, was true.
  absl::StatusOr<List> Get(const Key& key, int64_t length, absl::FunctionRef<bool()> cancelled,
                           absl::FunctionRef<std::vector<int32_t>()> make);

 private:
  struct Entry {
    List list;
    std::list<Key>::iterator place;
  };

  List Find(const Key& key, int64_t length);
  void Keep(const Key& key, List list);

  const int64_t most_rows_;
  OneAtATime making_;
  std::mutex mutex_;  // guards what follows
  std::map<Key, Entry> entries_;
  std::list<Key> by_use_;  // latest last
  int64_t rows_ = 0;       // of all entries
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_CELLS_KEPT_LISTS_H_
