// Payloads of an embedding's items, ready to be filtered.
#ifndef PRIVATEMAIL_SERVER_ENGINE_PAYLOAD_COLUMNS_H_
#define PRIVATEMAIL_SERVER_ENGINE_PAYLOAD_COLUMNS_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/one_at_a_time.h"
#include "common/wire/payload_filter.h"
#include "server/engine/hidden_rows.h"

namespace privatemail::server {

// Payloads in the order of the embedding, and for each path that a filter has lately asked for the
// values found there: a payload is parsed when a path is new, not for every search. A column takes
// 16 bytes an item and what texts and arrays take; kMaxColumns of them are kept. Thread-safe, and
// to its callers immutable. Holds nothing of a searcher but the paths of filters, which are sent in
// clear.
class PayloadColumns {
 public:
  static constexpr size_t kMaxColumns = 16;

  explicit PayloadColumns(std::vector<std::string> payloads);
  ~PayloadColumns();

  const std::string& operator[](int64_t row) const { return payloads_[static_cast<size_t>(row)]; }

  // Rows whose payload fits, ascending, without those that are hidden (null: none). CANCELLED as
  // soon as `cancelled`, which may be empty, says so. RESOURCE_EXHAUSTED: its columns take more
  // than `memory` bytes, which also bounds what is kept of them. About 2 us an item the first time
  // that a path is asked for, about 20 ns a condition afterwards.
  absl::StatusOr<std::vector<int64_t>> RowsThatFit(const PayloadFilter& filter,
                                                   const HiddenRows* hidden,
                                                   const std::function<bool()>& cancelled,
                                                   int64_t memory) const;

 private:
  struct Column;
  using Columns = std::vector<std::shared_ptr<const Column>>;

  // Those of the paths that are kept; null for the others. The latest used come first afterwards.
  Columns Kept(const std::vector<std::string>& paths) const;
  void Keep(const std::vector<std::string>& paths, const Columns& columns, int64_t memory) const;
  // Of paths that have none yet.
  absl::StatusOr<Columns> Parse(const std::vector<std::string>& paths,
                                const std::function<bool()>& cancelled, int64_t memory) const;
  absl::StatusOr<Columns> ColumnsOf(const std::vector<std::string>& paths,
                                    const std::function<bool()>& cancelled, int64_t memory) const;

  const std::vector<std::string> payloads_;
  mutable OneAtATime parsing_;
  mutable std::mutex mutex_;  // guards the list
  mutable std::list<std::pair<std::string, std::shared_ptr<const Column>>> columns_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_PAYLOAD_COLUMNS_H_
