#include "server/cells/cell_index.h"

#include <algorithm>
#include <utility>

#include "common/protocol/cell_code.h"
#include "server/cells/cell_lists.h"
#include "server/index/k_means.h"

namespace privatemail {
namespace {

// Known queries are compared with all items. In few minutes of one core, of a large gallery too.
constexpr double kMostComparedValues = 2e12;
constexpr int64_t kFewestQueries = 1000;

constexpr size_t kKeptLists = 4;

FloatMatrix UnitRows(FloatMatrix features) {
  features.rowwise().normalize();
  return features;
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

std::string Encode(CellCode code, const FloatMatrix& rows) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(rows.rows() * CodeBytes(code, rows.cols())));
  for (Eigen::Index row = 0; row < rows.rows(); ++row) AppendCode(code, rows.row(row), &bytes);
  return bytes;
}

}  // namespace

CellIndex::CellIndex(Gallery gallery, std::vector<Partition> partitions, std::string codes)
    : gallery_(std::move(gallery)),
      partitions_(std::move(partitions)),
      codes_(std::move(codes)),
      code_bytes_(gallery_.ids.empty() ? 0 : codes_.size() / gallery_.ids.size()) {}

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
  if (stopped) return nullptr;
  return std::shared_ptr<const CellIndex>(new CellIndex(std::move(gallery), std::move(partitions),
                                                        Encode(*parameters.cell_code, items)));
}

std::shared_ptr<const CellIndex::Lists> CellIndex::ListsFor(size_t partition, double epsilon,
                                                            int64_t length) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
    return kept.partition == partition && kept.epsilon == epsilon && kept.length == length;
  });
  if (found != kept_.end()) {
    std::rotate(found, found + 1, kept_.end());
    return kept_.back().lists;
  }
  const Partition& of = partitions_[partition];
  auto lists = std::make_shared<const Lists>(CellLists(of.demand, of.lie, epsilon, length));
  if (kept_.size() == kKeptLists) kept_.erase(kept_.begin());
  kept_.push_back({partition, epsilon, length, lists});
  return lists;
}

std::optional<int64_t> CellIndex::RowOf(const std::string& id) const {
  const auto found = std::lower_bound(gallery_.ids.begin(), gallery_.ids.end(), id);
  if (found == gallery_.ids.end() || *found != id) return std::nullopt;
  return found - gallery_.ids.begin();
}

}  // namespace privatemail
