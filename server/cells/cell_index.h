// What answers for the cells of a collection.
#ifndef PRIVATEMAIL_SERVER_CELLS_CELL_INDEX_H_
#define PRIVATEMAIL_SERVER_CELLS_CELL_INDEX_H_

#include <atomic>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/cells/cell_lists.h"
#include "common/embedding/public_parameters.h"
#include "server/cells/kept.h"
#include "server/store/types.h"

namespace privatemail::server {

// Some rows that answer for a cell, as they are sent.
struct CellBlock {
  std::string message;  // the bytes of a v1.RetrieveCellsResponse
  uint64_t items = 0;
  std::shared_ptr<const void> hidden;  // what was left out; null: nothing
};

// Where a gallery and its collection's anchors lie in one embedding, as precisely as it leaves.
struct CellCoordinates {
  uint64_t embedding_version = 0;
  FloatMatrix items;    // n x embedding_dim, in the order of the gallery
  FloatMatrix anchors;  // anchors x embedding_dim, in the published order
};

// One gallery, ready to answer for the cells of all partitions of its collection's anchors. Knows
// nothing of a searcher but what is asked for. Immutable but for what it keeps; thread-safe.
class CellIndex {
 public:
  // Which of a cell's list are meant, and how they are sent.
  struct BlockKey {
    size_t partition;
    double epsilon;  // as QuantiseEpsilon gives it
    uint32_t cell;
    bool with_payloads;
    int64_t first, last;  // places in the list; without the last

    // NOLINTNEXTLINE(modernize-use-nullptr): what the compiler makes of it has a 0.
    auto operator<=>(const BlockKey&) const = default;
  };

  // parameters with a code and at least one partition; anchors and gallery are theirs. Some of the
  // items serve as the queries that are known, more than a sample needs of none. Null when
  // `stopped` became true meanwhile. O(sample n d) time; beside ids, labels and payloads the codes,
  // for each partition 16 bytes a row and as many for each pair of a cell and an item that its
  // known queries want, and what is kept: 128 bytes a row of lists at most, and of blocks, payloads
  // and all, twice what the codes take; 1 MiB of each where that is more. coordinates: given
  // exactly where the code is none, to be sent in place of codes.
  static std::shared_ptr<const CellIndex> Make(
      const PublicParameters& parameters, const Anchors& anchors, Gallery gallery,
      const std::atomic<bool>& stopped, std::optional<CellCoordinates> coordinates = std::nullopt);

  // Bytes that Make takes for so many items beside the gallery, most of which it keeps.
  static int64_t MemoryToMake(const PublicParameters& parameters, int64_t items);

  int64_t items() const { return static_cast<int64_t>(gallery_.ids.size()); }
  // Of the gallery.
  uint64_t items_version() const { return gallery_.version; }
  // Of which the coordinates are that are sent, and where the anchors lie in it; 0 and none where
  // it is codes.
  uint64_t embedding_version() const { return embedding_version_; }
  const FloatMatrix& anchor_coordinates() const { return anchor_coordinates_; }

  // The rows that answer for these cells of a partition, each once: of the list of each cell, most
  // wanted first (CellList with QuantiseEpsilon), the first `length` (0 to items()), in the order of
  // the cells. Lists are kept for whoever asks for the same; otherwise they are made at low
  // priority, one at a time, O(n) each. No more than one of them is held on to. CANCELLED:
  // `cancelled` became true meanwhile.
  absl::StatusOr<std::vector<int32_t>> RowsFor(size_t partition, absl::Span<const uint32_t> cells,
                                               double epsilon, int64_t length,
                                               absl::FunctionRef<bool()> cancelled) const;

  // Bytes that RowsFor takes at most, beside what is kept: 4 a row that answers and a bit a row
  // that there is, and making one list.
  int64_t MemoryOfRows(int64_t cells, int64_t length) const;

  // How many rows are best sent together: about 512 KiB, and 2 MiB at most unless one row is more.
  int64_t RowsOfBlock(bool with_payloads) const {
    return with_payloads ? rows_of_block_with_payloads_ : rows_of_block_;
  }

  // The block of these rows but for those that `hidden` stands for (null: none): made once and kept
  // for whoever asks for the same. Whatever was hidden by another pointer is something else; a
  // block holds on to its own, so that nothing else comes to have that address. CANCELLED:
  // `cancelled` became true meanwhile.
  absl::StatusOr<std::shared_ptr<const CellBlock>> BlockFor(
      const BlockKey& key, const std::shared_ptr<const void>& hidden,
      absl::FunctionRef<bool()> cancelled, absl::FunctionRef<CellBlock()> make) const;

  const std::string& IdOf(int64_t row) const { return gallery_.ids[static_cast<size_t>(row)]; }
  int32_t LabelOf(int64_t row) const { return gallery_.labels[static_cast<size_t>(row)]; }
  const std::string& PayloadOf(int64_t row) const {
    return gallery_.payloads[static_cast<size_t>(row)];
  }
  absl::string_view CodeOf(int64_t row) const {
    return absl::string_view(codes_).substr(static_cast<size_t>(row) * code_bytes_, code_bytes_);
  }
  // Nothing when the gallery has no such item.
  std::optional<int64_t> RowOf(const std::string& id) const;

 private:
  using List = std::shared_ptr<const std::vector<int32_t>>;  // rows

  struct Partition {
    ItemCells lie;
    Demand demand;
  };

  struct ListKey {
    size_t partition;
    double epsilon;
    int64_t cell;

    // NOLINTNEXTLINE(modernize-use-nullptr)
    auto operator<=>(const ListKey&) const = default;
  };

  CellIndex(Gallery gallery, std::vector<Partition> partitions, std::string codes,
            CellCoordinates coordinates);

  // `length` rows and perhaps more, which are not meant.
  absl::StatusOr<List> ListFor(size_t partition, uint32_t cell, double epsilon, int64_t length,
                               absl::FunctionRef<bool()> cancelled) const;

  Gallery gallery_;  // without features
  std::vector<Partition> partitions_;
  std::string codes_;
  size_t code_bytes_;
  const uint64_t embedding_version_;
  const FloatMatrix anchor_coordinates_;
  const int64_t rows_of_block_;
  const int64_t rows_of_block_with_payloads_;
  // A list's beginning is the list for fewer rows, so that one is kept for all lengths.
  mutable Kept<ListKey, std::vector<int32_t>> lists_;
  mutable Kept<BlockKey, CellBlock> blocks_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CELLS_CELL_INDEX_H_
