// A column store of payload values for filtering.
#ifndef PRIVATEMAIL_SERVER_ENGINE_PAYLOAD_COLUMNS_H_
#define PRIVATEMAIL_SERVER_ENGINE_PAYLOAD_COLUMNS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/cancellation.h"
#include "common/base/serial_miss_lru_cache.h"
#include "common/items/payload_filter.h"
#include "server/engine/hidden_rows.h"

namespace privatemail::server {

// Rows between two checks whether a filter's call was cancelled.
inline constexpr size_t kPollRows = 4096;

// An inverted index of rare paths, so that filters on paths of hardly any item read no other
// payload. Not thread-safe.
class PayloadPaths {
 public:
  // Paths of more items than this are common: their rows are not held.
  static constexpr size_t kMaxRareRows = 1000;
  // With more distinct paths the index is given up: every path is treated as common. So at most
  // about 33 MB.
  static constexpr size_t kMaxPaths = 4096;

  // Parses the payloads that earlier calls have not: about 3 us for one of a hundred bytes.
  // CANCELLED: the next call goes on from there.
  absl::Status Read(absl::Span<const std::string> payloads, const CancelledFunction& cancelled);

  // Rows with a value at the path, ascending; nullopt: the path is common. Read has
  // returned OK.
  std::optional<absl::Span<const int64_t>> RowsWith(const std::string& path) const;

 private:
  void Add(const std::string& path, int64_t row);

  std::map<std::string, std::optional<std::vector<int64_t>>> rows_;  // nullopt: common
  size_t next_ = 0;                                                  // payload
  bool given_up_ = false;
};

// Payloads of an embedding's items, in its order, and an LRU cache of columns: the values at one
// path of a filter, 16 bytes an item plus texts and arrays. So payloads are parsed once for a new
// path, not for every search. Thread-safe. Of a searcher it holds filter paths only, which are
// public.
class PayloadColumns {
 public:
  static constexpr size_t kMaxColumns = 16;  // cached, of one owner

  // capacity: maximum bytes of the cached columns, but for those of the last filter.
  explicit PayloadColumns(std::vector<std::string> payloads,
                          int64_t capacity = std::numeric_limits<int64_t>::max());
  ~PayloadColumns();

  const std::string& operator[](int64_t row) const { return payloads_[static_cast<size_t>(row)]; }

  struct Search {
    CancelledFunction cancelled = nullptr;
    int64_t memory = std::numeric_limits<int64_t>::max();  // maximum bytes of the filter's columns
    // Called with the bytes of new columns before they are made, in steps; null: only `memory`
    // bounds them. Its error ends the search.
    std::function<absl::Status(int64_t bytes)> reserve = nullptr;
    // Evicts its own columns first, and takes turns with others for new ones.
    std::string owner = "";
  };

  // The rows that match the filter and are not hidden (null: none), ascending. Errors: CANCELLED;
  // RESOURCE_EXHAUSTED: `memory`. About 2 us an item for new paths (PayloadPaths: none for rare
  // ones), 20 ns an item and condition for cached ones.
  absl::StatusOr<std::vector<int64_t>> MatchingRows(const PayloadFilter& filter,
                                                    const HiddenRows* hidden,
                                                    const Search& search) const;

  // Returns those of the paths that no item has which is not hidden. Cost and errors as above.
  absl::StatusOr<std::vector<std::string>> UnknownPaths(const std::vector<std::string>& paths,
                                                        const HiddenRows* hidden,
                                                        const Search& search) const;

 private:
  struct Column {
    std::vector<nlohmann::json> values;
    std::optional<std::vector<int64_t>> rows = std::nullopt;  // of the values; nullopt: all
    int64_t bytes = 0;

    int64_t Add(nlohmann::json value);  // returns its bytes
    const nlohmann::json& At(size_t row) const;
  };

  // The columns of these paths, from the cache or new.
  absl::StatusOr<std::vector<std::shared_ptr<const Column>>> ColumnsOf(
      const std::vector<std::string>& paths, const Search& search) const;
  absl::StatusOr<std::vector<Column>> Parse(const std::vector<std::string>& paths,
                                            const Search& search) const;

  const std::vector<std::string> payloads_;
  const int64_t capacity_;
  mutable SerialMissLruCache<std::string, Column> columns_;  // by path
  mutable PayloadPaths paths_;  // read and used by one computation of columns_ at a time
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_PAYLOAD_COLUMNS_H_
