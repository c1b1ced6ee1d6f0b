#include "server/cells/cell_index.h"

#include <algorithm>
#include <utility>

#include "common/base/background_queue.h"
#include "common/base/cancellation.h"
#include "common/base/status_macros.h"
#include "common/base/stratified_sample.h"
#include "common/cells/cell_lists.h"
#include "common/index/k_means.h"
#include "common/index/nearest_others.h"
#include "common/items/item_code.h"

namespace privatemail::server {
namespace {

// Bounds the comparison of known queries with all items to a few minutes of one core.
constexpr double kMaxComparedValues = 2e12;
constexpr int64_t kMinQueries = 1000;
// A large gallery has at least one query for this many items, to which an approximate comparison is
// linear. With fewer queries most items would be requested by none, and lists would find less.
constexpr int64_t kMaxItemsOfQuery = 64;

// Capacities of the caches.
constexpr int64_t kListBytesPerItem = 128;
constexpr int64_t kBlockBytesPerCodeByte = 2;
constexpr int64_t kMinCacheBytes = 1 << 20;
constexpr int64_t kEntryOverheadBytes = 256;

constexpr int64_t kMinListLength = 64;

// Large enough for little overhead, small enough to begin at once and to bound memory.
constexpr int64_t kBlockBytes = 1 << 19;
constexpr int64_t kMaxBlockBytes = 1 << 21;

// Rounded up to a power of two, so that one list serves similar lengths.
int64_t LengthToCompute(int64_t length, int64_t items) {
  const auto power = std::bit_ceil(static_cast<uint64_t>(std::max(length, kMinListLength)));
  return std::min(static_cast<int64_t>(power), items);
}

// Distinct rows in this many lists.
int64_t MaxRows(int64_t lists, int64_t length, int64_t items) {
  return std::min(lists * length, items);
}

int64_t QueryCount(int64_t items, int64_t dim) {
  const double values = static_cast<double>(items) * static_cast<double>(dim) + 1;
  const auto compared = static_cast<int64_t>(kMaxComparedValues / values);
  return std::min(items, std::max({compared, items / kMaxItemsOfQuery, kMinQueries}));
}

void AppendCodes(const PublicParameters& parameters, const FloatMatrix& rows,
                 const std::atomic<bool>& stopped, std::string* codes) {
  for (Eigen::Index row = 0; row < rows.rows() && !stopped; ++row) {
    AppendItemCode(parameters, rows.row(row), codes);
  }
}

void Append(const ItemCells& part, ItemCells* all) {
  all->cells.insert(all->cells.end(), part.cells.begin(), part.cells.end());
  all->squared_distances.insert(all->squared_distances.end(), part.squared_distances.begin(),
                                part.squared_distances.end());
}

// kBlockBytes of average records and at most kMaxBlockBytes of the largest.
int64_t CountRowsPerBlock(const Gallery& gallery, size_t code_bytes, bool with_payloads) {
  constexpr size_t kLabelAndLengthBytes = 12;
  int64_t sum = 1, largest = 1;
  for (size_t row = 0; row < gallery.ids.size(); ++row) {
    const size_t texts =
        gallery.ids[row].size() + (with_payloads ? gallery.payloads[row].size() : 0);
    const auto bytes = static_cast<int64_t>(code_bytes + texts + kLabelAndLengthBytes);
    sum += bytes;
    largest = std::max(largest, bytes);
  }
  const int64_t average = kBlockBytes * std::ssize(gallery.ids) / sum;
  return std::max<int64_t>(1, std::min(average, kMaxBlockBytes / largest));
}

}  // namespace

CellIndex::CellIndex(CellContents contents, int64_t memory_to_keep)
    : contents_(std::move(contents)),
      memory_(memory_to_keep + BytesOf(contents_.gallery)),
      code_bytes_(items() == 0 ? 0 : contents_.codes.size() / contents_.gallery.ids.size()),
      rows_per_block_{CountRowsPerBlock(contents_.gallery, code_bytes_, false),
                      CountRowsPerBlock(contents_.gallery, code_bytes_, true)},
      lists_({.bytes = std::max(kMinCacheBytes, kListBytesPerItem * items())},
             [](const std::vector<int32_t>& list) {
               return kEntryOverheadBytes +
                      std::ssize(list) * static_cast<int64_t>(sizeof(int32_t));
             }),
      blocks_(
          {.bytes = std::max(kMinCacheBytes, kBlockBytesPerCodeByte * std::ssize(contents_.codes))},
          // A block may be the last owner of its hidden rows, one bit an item.
          [items = items()](const EncodedBlock& block) {
            return kEntryOverheadBytes + std::ssize(block.bytes) +
                   (block.hidden == nullptr ? 0 : items / 8);
          }) {}

// In double, because squares of small floats vanish.
FloatMatrix CellIndex::UnitItems(FloatMatrix features) {
  for (Eigen::Index row = 0; row < features.rows(); ++row) {
    features.row(row) = features.row(row).cast<double>().normalized().cast<float>();
  }
  return features;
}

absl::StatusOr<std::shared_ptr<const CellIndex>> CellIndex::Create(
    const PublicParameters& parameters, const Anchors& anchors, Gallery gallery,
    const RowSource& items, const std::atomic<bool>& stopped, uint64_t embedding_version,
    QualitySample* sample) {
  const Matrix unit_anchors = UnitItems(anchors.features).cast<double>();
  const auto partitions = parameters.cell_partitions.size();
  std::vector<FloatMatrix> centroids;
  for (const CellPartition& partition : parameters.cell_partitions) {
    centroids.push_back(CellCentroids(partition, unit_anchors).cast<float>());
  }
  const auto n = static_cast<size_t>(items.rows());
  std::vector<ItemCells> item_cells(partitions);
  for (ItemCells& cells : item_cells) {
    cells.cells.reserve(n);
    cells.squared_distances.reserve(n);
  }
  std::string codes;
  codes.reserve(n * static_cast<size_t>(ItemCodeBytes(parameters)));
  PM_RETURN_IF_ERROR(VisitBlocks(items, [&](Eigen::Index /*first*/, const FloatMatrix& block) {
    for (size_t partition = 0; partition < partitions && !stopped; ++partition) {
      Append(FindItemCells(block, centroids[partition], &stopped), &item_cells[partition]);
    }
    AppendCodes(parameters, block, stopped, &codes);
    return CheckNotStopped(stopped);
  }));
  const std::vector<Eigen::Index> queries =
      StratifiedSample(items.rows(), QueryCount(items.rows(), items.cols()));
  PM_ASSIGN_OR_RETURN(const std::vector<std::vector<int64_t>> nearest,
                      NearestOthers(items, queries, Demand::kRanks, stopped));
  CellContents contents{.gallery = std::move(gallery),
                        .codes = std::move(codes),
                        .embedding_version = embedding_version};
  for (size_t partition = 0; partition < partitions; ++partition) {
    KnownQueries known{.nearest = nearest, .cells = {}};
    for (const Eigen::Index query : queries) {
      known.cells.push_back(item_cells[partition].cells[static_cast<size_t>(query)]);
    }
    Demand demand(known, parameters.cell_partitions[partition].cells, items.rows());
    contents.partitions.push_back({std::move(item_cells[partition]), std::move(demand)});
  }
  if (sample != nullptr) {
    PM_ASSIGN_OR_RETURN(*sample, SampleQueries(items, queries, nearest));
  }
  return Restore(parameters, std::move(contents));
}

std::shared_ptr<const CellIndex> CellIndex::Restore(const PublicParameters& parameters,
                                                    CellContents contents) {
  const int64_t memory = MemoryToKeep(parameters, std::ssize(contents.gallery.ids));
  return std::shared_ptr<const CellIndex>(new CellIndex(std::move(contents), memory));
}

int64_t CellIndex::MemoryToKeep(const PublicParameters& parameters, int64_t items) {
  constexpr int64_t kOfItemInPartition = 16, kOfPair = 16;
  const int64_t code_bytes = items * ItemCodeBytes(parameters);
  const auto partitions = std::ssize(parameters.cell_partitions);
  return code_bytes +
         partitions * (items * kOfItemInPartition +
                       QueryCount(items, parameters.feature_dim) * Demand::kRanks * kOfPair) +
         std::max(kMinCacheBytes, kListBytesPerItem * items) +
         std::max(kMinCacheBytes, kBlockBytesPerCodeByte * code_bytes);
}

int64_t CellIndex::MemoryToCreate(const PublicParameters& parameters, int64_t items) {
  constexpr int64_t kValue = sizeof(float), kRow = sizeof(int64_t);
  const int64_t dim = parameters.feature_dim;
  const auto partitions = std::ssize(parameters.cell_partitions);
  // NearestOthers, and the rows of the queries.
  const int64_t queries = QueryCount(items, dim);
  const int64_t nearest =
      MemoryOfNearestOthers(items, dim, queries, Demand::kRanks) + queries * kRow;
  // ItemCells, and Demand by items and by queries.
  const int64_t of_item_in_partition = kRow + 2 * kValue;
  const int64_t of_query_in_partition = Demand::kRanks * 2 * kRow;
  const int64_t create = nearest +
                         items * (ItemCodeBytes(parameters) + partitions * of_item_in_partition) +
                         queries * partitions * of_query_in_partition;
  return parameters.publish_quality ? std::max(create, MemoryToMeasure(parameters, items)) : create;
}

absl::StatusOr<CellIndex::List> CellIndex::ListFor(size_t partition, uint32_t cell, double epsilon,
                                                   int64_t length,
                                                   absl::FunctionRef<bool()> cancelled) const {
  const PartitionDemand& of = contents_.partitions[partition];
  const double listed = QuantiseEpsilon(epsilon);
  const auto compute = [&] {
    std::vector<int64_t> rows;
    RunAtLowPriority([&] {
      rows =
          CellOrder(of.demand, of.item_cells, cell, listed).First(LengthToCompute(length, items()));
    });
    return std::vector<int32_t>(rows.begin(), rows.end());
  };
  const auto is_usable = [&](const std::vector<int32_t>& list) {
    return std::ssize(list) >= length;
  };
  return lists_.Get({partition, listed, cell}, is_usable, cancelled, compute);
}

absl::StatusOr<std::vector<int32_t>> CellIndex::RowsFor(size_t partition,
                                                        absl::Span<const uint32_t> cells,
                                                        double epsilon, int64_t length,
                                                        absl::FunctionRef<bool()> cancelled) const {
  std::vector<int32_t> rows;
  rows.reserve(static_cast<size_t>(MaxRows(std::ssize(cells), length, items())));
  std::vector<bool> taken(static_cast<size_t>(items()));
  for (const uint32_t cell : cells) {
    // Released before the next: the lists of one request can exceed the cache many times.
    PM_ASSIGN_OR_RETURN(const List list, ListFor(partition, cell, epsilon, length, cancelled));
    for (const int32_t row : absl::MakeConstSpan(*list).first(static_cast<size_t>(length))) {
      if (!taken[static_cast<size_t>(row)]) rows.push_back(row);
      taken[static_cast<size_t>(row)] = true;
    }
    if (std::ssize(rows) == items()) break;
  }
  return rows;
}

int64_t CellIndex::MemoryOfRows(int64_t cells, int64_t length) const {
  constexpr int64_t kRow = sizeof(int32_t);
  constexpr int64_t kScored = sizeof(float) + sizeof(int64_t), kListed = sizeof(int64_t);
  return MaxRows(cells, length, items()) * kRow + items() / 8 + items() * kScored +
         LengthToCompute(length, items()) * kListed;
}

absl::StatusOr<std::shared_ptr<const EncodedBlock>> CellIndex::BlockFor(
    const BlockKey& key, const std::shared_ptr<const void>& hidden,
    absl::FunctionRef<bool()> cancelled, absl::FunctionRef<EncodedBlock()> encode) const {
  const auto is_usable = [&](const EncodedBlock& block) { return block.hidden == hidden; };
  const auto compute = [&] {
    EncodedBlock block = encode();
    block.hidden = hidden;
    return block;
  };
  return blocks_.Get(key, is_usable, cancelled, compute);
}

std::optional<int64_t> CellIndex::RowOf(const std::string& id) const {
  const std::vector<std::string>& ids = contents_.gallery.ids;
  const auto found = std::lower_bound(ids.begin(), ids.end(), id);
  if (found == ids.end() || *found != id) return std::nullopt;
  return found - ids.begin();
}

}  // namespace privatemail::server
