#include "client/evaluation/cell_filling.h"

#include <algorithm>
#include <set>

namespace privatemail::client {

std::vector<int64_t> RowsOf(const std::vector<Neighbor>& neighbors) {
  std::vector<int64_t> rows;
  rows.reserve(neighbors.size());
  for (const Neighbor& neighbor : neighbors) rows.push_back(neighbor.row);
  return rows;
}

CellContents FileUnderNearest(const Matrix& items, const Matrix& centroids, int64_t overlap) {
  std::vector<std::vector<Neighbor>> filed(static_cast<size_t>(centroids.rows()));
  const std::vector<std::vector<Neighbor>> nearest = NearestRows(items, centroids, overlap);
  for (size_t item = 0; item < nearest.size(); ++item) {
    for (const Neighbor& cell : nearest[item]) {
      filed[static_cast<size_t>(cell.row)].push_back(
          {static_cast<int64_t>(item), cell.squared_distance});
    }
  }
  CellContents contents;
  for (std::vector<Neighbor>& list : filed) {
    std::stable_sort(list.begin(), list.end(), [](const Neighbor& a, const Neighbor& b) {
      return a.squared_distance < b.squared_distance;
    });
    contents.push_back(RowsOf(list));
  }
  return contents;
}

KnownQueries WantedBy(const Matrix& queries, const std::vector<std::vector<int64_t>>& nearest,
                      const Matrix& centroids, int64_t focus) {
  KnownQueries wanted;
  const std::vector<std::vector<Neighbor>> cells = NearestRows(queries, centroids, focus);
  for (size_t query = 0; query < nearest.size(); ++query) {
    for (const Neighbor& cell : cells[query]) {
      wanted.nearest.push_back(nearest[query]);
      wanted.cells.push_back(cell.row);
    }
  }
  return wanted;
}

int64_t CellsWithin(double share, int64_t cells, int64_t overlap) {
  double stays = 1;  // none of an item's cells is asked for
  int64_t ask = 0;
  for (; ask + 1 < cells; ++ask) {
    stays *= static_cast<double>(std::max<int64_t>(0, cells - overlap - ask)) /
             static_cast<double>(cells - ask);
    if (1 - stays > share + 1e-9) break;
  }
  return ask;
}

std::vector<int64_t> MergedContents(const CellContents& contents, const std::vector<int64_t>& asked,
                                    int64_t length) {
  std::vector<int64_t> merged;
  std::set<int64_t> taken;
  bool more = true;
  for (size_t place = 0; more; ++place) {
    more = false;
    for (const int64_t cell : asked) {
      const std::vector<int64_t>& list = contents[static_cast<size_t>(cell)];
      if (place >= list.size()) continue;
      if (std::ssize(merged) == length) return merged;
      more = true;
      if (taken.insert(list[place]).second) merged.push_back(list[place]);
    }
  }
  return merged;
}

}  // namespace privatemail::client
