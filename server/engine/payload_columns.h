// A column store of payload values for filtering.
#ifndef PRIVATEMAIL_SERVER_ENGINE_PAYLOAD_COLUMNS_H_
#define PRIVATEMAIL_SERVER_ENGINE_PAYLOAD_COLUMNS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/single_flight_lru_cache.h"
#include "common/items/payload_filter.h"
#include "server/engine/hidden_rows.h"

namespace privatemail::server {

// Payloads of an embedding's items, in its order, and an LRU cache of columns: the values at one
// path of a filter, 16 bytes an item plus texts and arrays. So payloads are parsed once for a new
// path, not for every search. Thread-safe. Of a searcher it holds filter paths only, which are
// public.
class PayloadColumns {
 public:
  static constexpr size_t kMaxColumns = 16;  // cached

  explicit PayloadColumns(std::vector<std::string> payloads);
  ~PayloadColumns();

  const std::string& operator[](int64_t row) const { return payloads_[static_cast<size_t>(row)]; }

  // The rows that match the filter and are not hidden (null: none), ascending.
  //   cancelled:  polled; may be empty.
  //   memory:     maximum bytes of the filter's columns, and of the cache afterwards.
  // CANCELLED: `cancelled` returned true. RESOURCE_EXHAUSTED: `memory`.
  // About 2 us an item for new paths, 20 ns an item and condition for cached ones.
  absl::StatusOr<std::vector<int64_t>> MatchingRows(const PayloadFilter& filter,
                                                    const HiddenRows* hidden,
                                                    const std::function<bool()>& cancelled,
                                                    int64_t memory) const;

 private:
  struct Column {
    std::vector<nlohmann::json> values;  // one a row
    int64_t bytes = 0;
  };

  absl::StatusOr<std::vector<Column>> Parse(const std::vector<std::string>& paths,
                                            const std::function<bool()>& cancelled,
                                            int64_t memory) const;

  const std::vector<std::string> payloads_;
  mutable SingleFlightLruCache<std::string, Column> columns_;  // by path
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_PAYLOAD_COLUMNS_H_
