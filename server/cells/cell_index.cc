#include "server/cells/cell_index.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/low_priority.h"
#include "common/base/status_macros.h"
#include "common/cells/cell_lists.h"
#include "common/protocol/item_code.h"
#include "server/cells/find_item_cells.h"
#include "server/index/k_means.h"

namespace privatemail {
namespace {

// Known queries are compared with all items. In few minutes of one core, of a large gallery too.
constexpr double kMostComparedValues = 2e12;
constexpr int64_t kFewestQueries = 1000;

// Of kept lists, for each item: about what its code takes.
constexpr int64_t kKeptRowsPerItem = 32;

constexpr int64_t kShortestList = 64;

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

// Every so manieth item: ids have no order that neighbours could have.
std::vector<Eigen::Index> ChooseQueries(const FloatMatrix& items) {
  const auto affordable =
      static_cast<int64_t>(kMostComparedValues / static_cast<double>(items.size() + 1));
  const int64_t count = std::min(items.rows(), std::max(affordable, kFewestQueries));
  std::vector<Eigen::Index> queries;
  for (int64_t i = 0; i < count; ++i) queries.push_back(i * items.rows() / count);
  return queries;
}

// Without the queries themselves.
std::vector<std::vector<int64_t>> NeighborsOf(const std::vector<Eigen::Index>& queries,
                                              const FloatMatrix& items,
                                              const std::atomic<bool>& stopped) {
  std::vector<std::vector<int64_t>> nearest =
      NearestItems(items(queries, Eigen::all), items, Demand::kRanks + 1, stopped);
  for (size_t query = 0; query < nearest.size(); ++query) {
    std::vector<int64_t>& rows = nearest[query];  // none after it was stopped
    const auto self = std::find(rows.begin(), rows.end(), queries[query]);
    if (!rows.empty()) rows.erase(self != rows.end() ? self : rows.end() - 1);
  }
  return nearest;
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

}  // namespace

CellIndex::CellIndex(Gallery gallery, std::vector<Partition> partitions, std::string codes)
    : gallery_(std::move(gallery)),
      partitions_(std::move(partitions)),
      codes_(std::move(codes)),
      code_bytes_(gallery_.ids.empty() ? 0 : codes_.size() / gallery_.ids.size()),
      kept_(kKeptRowsPerItem * items()) {}

std::shared_ptr<const CellIndex> CellIndex::Make(const PublicParameters& parameters,
                                                 const Anchors& anchors, Gallery gallery,
                                                 const std::atomic<bool>& stopped) {
  const FloatMatrix items = UnitRows(std::exchange(gallery.features, {}));
  const Matrix unit_anchors = UnitRows(anchors.features).cast<double>();
  const std::vector<Eigen::Index> queries = ChooseQueries(items);
  const std::vector<std::vector<int64_t>> nearest = NeighborsOf(queries, items, stopped);
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
  std::string codes = Encode(parameters, items, stopped);
  if (stopped) return nullptr;
  return std::shared_ptr<const CellIndex>(
      new CellIndex(std::move(gallery), std::move(partitions), std::move(codes)));
}

absl::StatusOr<std::vector<KeptLists::List>> CellIndex::ListsFor(
    size_t partition, absl::Span<const uint32_t> cells, double epsilon, int64_t length,
    absl::FunctionRef<bool()> cancelled) const {
  const Partition& of = partitions_[partition];
  const double listed = ListedEpsilon(epsilon);
  std::vector<KeptLists::List> lists;
  for (const uint32_t cell : cells) {
    const auto make = [&] {
      std::vector<int64_t> rows;
      AtLowPriority(
          [&] { rows = CellList(of.demand, of.lie, cell, listed, LengthToMake(length, items())); });
      return std::vector<int32_t>(rows.begin(), rows.end());
    };
    PM_ASSIGN_OR_RETURN(lists.emplace_back(),
                        kept_.Get({partition, listed, cell}, length, cancelled, make));
  }
  return lists;
}

int64_t CellIndex::MemoryOfLists(int64_t lists, int64_t length) const {
  constexpr int64_t kMakingBytes = sizeof(float) + sizeof(int64_t);
  return lists * LengthToMake(length, items()) * static_cast<int64_t>(sizeof(int32_t)) +
         items() * kMakingBytes;
}

std::optional<int64_t> CellIndex::RowOf(const std::string& id) const {
  const auto found = std::lower_bound(gallery_.ids.begin(), gallery_.ids.end(), id);
  if (found == gallery_.ids.end() || *found != id) return std::nullopt;
  return found - gallery_.ids.begin();
}

}  // namespace privatemail
