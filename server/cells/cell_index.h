// An index of a collection's items by the cells of its anchors.
#ifndef PRIVATEMAIL_SERVER_CELLS_CELL_INDEX_H_
#define PRIVATEMAIL_SERVER_CELLS_CELL_INDEX_H_

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/serial_miss_lru_cache.h"
#include "common/cells/cell_lists.h"
#include "common/cells/cell_quality.h"
#include "common/embedding/public_parameters.h"
#include "common/numerics/row_source.h"
#include "server/cells/cell_image.h"
#include "server/cells/quality_measurement.h"
#include "server/store/types.h"

namespace privatemail::server {

// A block of rows in the encoding of a caller, which this library never reads.
struct EncodedBlock {
  std::string bytes;
  uint64_t items = 0;
  std::shared_ptr<const void> hidden;  // identifies the rows left out; null: none
};

// An index of the items of one embedding by the cells of all partitions of its collection's
// anchors. Server side; of a searcher it sees the requested cells only. Immutable except for its
// caches; thread-safe. A new version comes with each embedding; deletions in between are hidden by
// the catalog.
class CellIndex {
 public:
  // Identifies a block of rows of one cell's list.
  struct BlockKey {
    size_t partition;
    double epsilon;  // as QuantiseEpsilon returns it
    uint32_t cell;
    bool with_payloads;
    int64_t first, last;  // positions in the list, last excluded

    // NOLINTNEXTLINE(modernize-use-nullptr): the generated code has a 0.
    auto operator<=>(const BlockKey&) const = default;
  };

  // Indexes a gallery of n items whose unit rows are `items` (UnitItems), read some MiB at a time.
  // O(sample n d) time. Errors of RowSource; CANCELLED: `stopped` became true.
  //   gallery:            of the embedding `embedding_version`; its features are not used.
  //   sample:             filled with queries for MeasureQuality, unless null.
  //   parameters:         have at least one partition.
  // Memory:
  //   | ids, labels, payloads       | as in the gallery                                         |
  //   | codes                       | n code_bytes                                              |
  //   | each partition              | 16 n bytes, and 16 for each (cell, item) its queries want |
  //   | cached lists                | max(128 n bytes, 1 MiB)                                   |
  //   | cached blocks               | max(2 n code_bytes, 1 MiB)                                |
  // A sample of the items serves as known queries; all of a small gallery.
  static absl::StatusOr<std::shared_ptr<const CellIndex>> Create(
      const PublicParameters& parameters, const Anchors& anchors, Gallery gallery,
      const RowSource& items, const std::atomic<bool>& stopped, uint64_t embedding_version,
      QualitySample* sample);
  // Rows of length 1, of features of which none is zero.
  static FloatMatrix UnitItems(FloatMatrix features);

  // An index that answers as the one whose contents these were. contents: of these parameters.
  static std::shared_ptr<const CellIndex> Restore(const PublicParameters& parameters,
                                                  CellContents contents);
  const CellContents& contents() const { return contents_; }

  // Bytes that Create takes for this many items in addition to the gallery and a source in memory,
  // or, if that is more and parameters.publish_quality, that MeasureQuality takes.
  static int64_t MemoryToCreate(const PublicParameters& parameters, int64_t items);

  // Approximate bytes of an index in addition to its gallery without features, with full caches.
  static int64_t MemoryToKeep(const PublicParameters& parameters, int64_t items);
  // MemoryToKeep and the gallery.
  int64_t memory() const { return memory_; }

  int64_t items() const { return static_cast<int64_t>(contents_.gallery.ids.size()); }
  // The version of the gallery.
  uint64_t items_version() const { return contents_.gallery.version; }
  uint64_t embedding_version() const { return contents_.embedding_version; }

  // The union of the first `length` (0 to items()) rows of each cell's list (CellOrder with
  // QuantiseEpsilon), in the order of the cells, each row once. Lists are cached; a miss computes
  // at low priority, one at a time, in O(n). CANCELLED: `cancelled` returned true.
  absl::StatusOr<std::vector<int32_t>> RowsFor(size_t partition, absl::Span<const uint32_t> cells,
                                               double epsilon, int64_t length,
                                               absl::FunctionRef<bool()> cancelled) const;

  // Maximum bytes that RowsFor takes in addition to the caches:
  //   4 min(cells length, n) + n / 8, and to compute one list 12 n + 8 (length rounded up).
  int64_t MemoryOfRows(int64_t cells, int64_t length) const;

  // Rows per block: about 512 KiB of records, at most 2 MiB unless one record is larger.
  int64_t RowsPerBlock(bool with_payloads) const { return rows_per_block_[with_payloads ? 1 : 0]; }

  // The cached block of these rows without the hidden ones, or the result of `encode`. `hidden`
  // (null: none) identifies them by its address, which a cached block keeps alive and so unique.
  // CANCELLED: `cancelled` returned true.
  absl::StatusOr<std::shared_ptr<const EncodedBlock>> BlockFor(
      const BlockKey& key, const std::shared_ptr<const void>& hidden,
      absl::FunctionRef<bool()> cancelled, absl::FunctionRef<EncodedBlock()> encode) const;

  const std::string& IdOf(int64_t row) const {
    return contents_.gallery.ids[static_cast<size_t>(row)];
  }
  int32_t LabelOf(int64_t row) const { return contents_.gallery.labels[static_cast<size_t>(row)]; }
  const std::string& PayloadOf(int64_t row) const {
    return contents_.gallery.payloads[static_cast<size_t>(row)];
  }
  absl::string_view CodeOf(int64_t row) const {
    return absl::string_view(contents_.codes)
        .substr(static_cast<size_t>(row) * code_bytes_, code_bytes_);
  }
  // Empty if the gallery has no such item.
  std::optional<int64_t> RowOf(const std::string& id) const;

 private:
  using List = std::shared_ptr<const std::vector<int32_t>>;  // rows

  using ListKey = std::tuple<size_t, double, uint32_t>;  // partition, epsilon and cell

  CellIndex(CellContents contents, int64_t memory_to_keep);

  // At least `length` rows.
  absl::StatusOr<List> ListFor(size_t partition, uint32_t cell, double epsilon, int64_t length,
                               absl::FunctionRef<bool()> cancelled) const;

  const CellContents contents_;
  const int64_t memory_;
  const size_t code_bytes_;
  const std::array<int64_t, 2> rows_per_block_;  // without and with payloads
  // A prefix of a list is the shorter list, so one entry serves all lengths up to its own.
  mutable SerialMissLruCache<ListKey, std::vector<int32_t>> lists_;
  mutable SerialMissLruCache<BlockKey, EncodedBlock> blocks_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CELLS_CELL_INDEX_H_
