#include "server/cells/cell_index.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/low_priority.h"
#include "common/base/status_macros.h"
#include "common/cells/cell_lists.h"
#include "common/cells/item_code.h"
#include "common/index/k_means.h"

namespace privatemail::server {
namespace {

// Known queries are compared with all items. In few minutes of one core, of a large gallery too.
constexpr double kMostComparedValues = 2e12;
constexpr int64_t kFewestQueries = 1000;

// Of what is kept.
constexpr int64_t kListBytesPerItem = 128;
constexpr int64_t kBlockBytesPerCodeByte = 2;
constexpr int64_t kAlwaysKeptBytes = 1 << 20;

constexpr int64_t kShortestList = 64;

// Large enough for little overhead, small enough to begin at once and to bound memory.
constexpr int64_t kBlockBytes = 1 << 19;
constexpr int64_t kLargestBlockBytes = 1 << 21;

// In double: squares of small floats would vanish. Rows are no zeros.
FloatMatrix UnitRows(FloatMatrix features) {
  for (Eigen::Index row = 0; row < features.rows(); ++row) {
    features.row(row) = features.row(row).cast<double>().normalized().cast<float>();
  }
  return features;
}

// What is made, so that one list serves nearly equal lengths.
int64_t LengthToMake(int64_t length, int64_t items) {
  const auto power = std::bit_ceil(static_cast<uint64_t>(std::max(length, kShortestList)));
  return std::min(static_cast<int64_t>(power), items);
}

// So many lists of this length hold no more different ones.
int64_t MostRows(int64_t lists, int64_t length, int64_t items) {
  return std::min(lists * length, items);
}

int64_t QueriesAmong(int64_t items, int64_t dim) {
  const double values = static_cast<double>(items) * static_cast<double>(dim) + 1;
  return std::min(items,
                  std::max(static_cast<int64_t>(kMostComparedValues / values), kFewestQueries));
}

// Every so manieth item: ids have no order that neighbours could have.
std::vector<Eigen::Index> ChooseQueries(const FloatMatrix& items) {
  const int64_t count = QueriesAmong(items.rows(), items.cols());
  std::vector<Eigen::Index> queries;
  for (int64_t i = 0; i < count; ++i) queries.push_back(i * items.rows() / count);
  return queries;
}

std::string Encode(const PublicParameters& parameters, const FloatMatrix& rows,
                   const std::atomic<bool>& stopped) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(rows.rows() * ItemCodeBytes(parameters)));
  for (Eigen::Index row = 0; row < rows.rows() && !stopped; ++row) {
    AppendItemCode(parameters, rows.row(row), &bytes);
  }
  return bytes;
}

// About the bytes of a row in a message.
int64_t BytesOfRow(const Gallery& gallery, size_t row, int64_t code_bytes, bool with_payloads) {
  constexpr size_t kLabelAndLengths = 12;
  const size_t texts = gallery.ids[row].size() + (with_payloads ? gallery.payloads[row].size() : 0);
  return code_bytes + static_cast<int64_t>(texts + kLabelAndLengths);
}

// Of usual rows as many as a block is to hold, but also of the largest none too many.
int64_t RowsOfBlockOf(const Gallery& gallery, int64_t code_bytes, bool with_payloads) {
  int64_t sum = 1, largest = 1;
  for (size_t row = 0; row < gallery.ids.size(); ++row) {
    const int64_t bytes = BytesOfRow(gallery, row, code_bytes, with_payloads);
    sum += bytes;
    largest = std::max(largest, bytes);
  }
  const int64_t usual = kBlockBytes * std::ssize(gallery.ids) / sum;
  return std::max<int64_t>(1, std::min(usual, kLargestBlockBytes / largest));
}

}  // namespace

CellIndex::CellIndex(Gallery gallery, std::vector<Partition> partitions, std::string codes,
                     CellCoordinates coordinates)
    : gallery_(std::move(gallery)),
      partitions_(std::move(partitions)),
      codes_(std::move(codes)),
      code_bytes_(gallery_.ids.empty() ? 0 : codes_.size() / gallery_.ids.size()),
      embedding_version_(coordinates.embedding_version),
      anchor_coordinates_(std::move(coordinates.anchors)),
      rows_of_block_(RowsOfBlockOf(gallery_, static_cast<int64_t>(code_bytes_), false)),
      rows_of_block_with_payloads_(
          RowsOfBlockOf(gallery_, static_cast<int64_t>(code_bytes_), true)),
      lists_(std::max(kAlwaysKeptBytes, kListBytesPerItem * items()),
             [](const std::vector<int32_t>& list) {
               return std::ssize(list) * static_cast<int64_t>(sizeof(int32_t));
             }),
      blocks_(std::max(kAlwaysKeptBytes, kBlockBytesPerCodeByte * std::ssize(codes_)),
              // What is hidden is a bit an item, which a block may be the last to hold on to.
              [items = items()](const CellBlock& block) {
                return std::ssize(block.message) + (block.hidden == nullptr ? 0 : items / 8);
              }) {}

std::shared_ptr<const CellIndex> CellIndex::Make(const PublicParameters& parameters,
                                                 const Anchors& anchors, Gallery gallery,
                                                 const std::atomic<bool>& stopped,
                                                 std::optional<CellCoordinates> coordinates) {
  const FloatMatrix items = UnitRows(std::exchange(gallery.features, {}));
  const Matrix unit_anchors = UnitRows(anchors.features).cast<double>();
  const std::vector<Eigen::Index> queries = ChooseQueries(items);
  const std::vector<std::vector<int64_t>> nearest =
      NearestOthers(items, queries, Demand::kRanks, stopped);
  std::vector<Partition> partitions;
  for (const CellPartition& partition : parameters.cell_partitions) {
    if (stopped) return nullptr;
    const FloatMatrix centroids = CellCentroids(partition, unit_anchors).cast<float>();
    ItemCells lie = FindItemCells(items, centroids, &stopped);
    KnownQueries known{.nearest = nearest, .cells = {}};
    for (const Eigen::Index query : queries) {
      known.cells.push_back(lie.cells[static_cast<size_t>(query)]);
    }
    Demand demand(known, partition.cells, items.rows());
    partitions.push_back({std::move(lie), std::move(demand)});
  }
  CellCoordinates sent = std::move(coordinates).value_or(CellCoordinates{});
  std::string codes =
      Encode(parameters, parameters.SendsCoordinates() ? sent.items : items, stopped);
  if (stopped) return nullptr;
  return std::shared_ptr<const CellIndex>(
      new CellIndex(std::move(gallery), std::move(partitions), std::move(codes), std::move(sent)));
}

int64_t CellIndex::MemoryToMake(const PublicParameters& parameters, int64_t items) {
  constexpr int64_t kValue = sizeof(float), kRow = sizeof(int64_t);
  const int64_t dim = parameters.feature_dim;
  const auto partitions = std::ssize(parameters.cell_partitions);
  // NearestOthers: its lists with a quarter of the features, and the queries' and what it finds.
  const int64_t of_item = 3 * kRow + dim * kValue / 4;
  const int64_t of_query = dim * kValue + (Demand::kRanks + 1) * kRow;
  // ItemCells and the sum of Demand, and what of it a query brings.
  const int64_t of_item_in_partition = kRow + 2 * kValue;
  const int64_t of_query_in_partition = Demand::kRanks * 2 * kRow;
  // CellCoordinates, of which the codes are copies.
  const int64_t of_coordinates =
      parameters.SendsCoordinates() ? parameters.settings.embedding_dim * kValue : 0;
  return items * (of_item + ItemCodeBytes(parameters) + of_coordinates +
                  partitions * of_item_in_partition) +
         QueriesAmong(items, dim) * (of_query + partitions * of_query_in_partition) +
         parameters.anchor_count * of_coordinates;
}

absl::StatusOr<CellIndex::List> CellIndex::ListFor(size_t partition, uint32_t cell, double epsilon,
                                                   int64_t length,
                                                   absl::FunctionRef<bool()> cancelled) const {
  const Partition& of = partitions_[partition];
  const double listed = QuantiseEpsilon(epsilon);
  const auto make = [&] {
    std::vector<int64_t> rows;
    AtLowPriority(
        [&] { rows = CellList(of.demand, of.lie, cell, listed, LengthToMake(length, items())); });
    return std::vector<int32_t>(rows.begin(), rows.end());
  };
  const auto serves = [&](const std::vector<int32_t>& list) { return std::ssize(list) >= length; };
  return lists_.Get({partition, listed, cell}, serves, cancelled, make);
}

absl::StatusOr<std::vector<int32_t>> CellIndex::RowsFor(size_t partition,
                                                        absl::Span<const uint32_t> cells,
                                                        double epsilon, int64_t length,
                                                        absl::FunctionRef<bool()> cancelled) const {
  std::vector<int32_t> rows;
  rows.reserve(static_cast<size_t>(MostRows(std::ssize(cells), length, items())));
  std::vector<bool> taken(static_cast<size_t>(items()));
  for (const uint32_t cell : cells) {
    // Let go of before the next: those of a whole request can take many times what is kept.
    PM_ASSIGN_OR_RETURN(const List list, ListFor(partition, cell, epsilon, length, cancelled));
    for (const int32_t row : absl::MakeConstSpan(*list).first(static_cast<size_t>(length))) {
      if (!taken[static_cast<size_t>(row)]) rows.push_back(row);
      taken[static_cast<size_t>(row)] = true;
    }
    if (std::ssize(rows) == items()) break;  // no other list has another
  }
  return rows;
}

int64_t CellIndex::MemoryOfRows(int64_t cells, int64_t length) const {
  constexpr int64_t kAnswered = sizeof(int32_t);
  constexpr int64_t kMaking = sizeof(float) + sizeof(int64_t), kMade = sizeof(int64_t);
  return MostRows(cells, length, items()) * kAnswered + items() / 8 + items() * kMaking +
         LengthToMake(length, items()) * kMade;
}

absl::StatusOr<std::shared_ptr<const CellBlock>> CellIndex::BlockFor(
    const BlockKey& key, const std::shared_ptr<const void>& hidden,
    absl::FunctionRef<bool()> cancelled, absl::FunctionRef<CellBlock()> make) const {
  const auto serves = [&](const CellBlock& block) { return block.hidden == hidden; };
  const auto make_without = [&] {
    CellBlock block = make();
    block.hidden = hidden;
    return block;
  };
  return blocks_.Get(key, serves, cancelled, make_without);
}

std::optional<int64_t> CellIndex::RowOf(const std::string& id) const {
  const auto found = std::lower_bound(gallery_.ids.begin(), gallery_.ids.end(), id);
  if (found == gallery_.ids.end() || *found != id) return std::nullopt;
  return found - gallery_.ids.begin();
}

}  // namespace privatemail::server
