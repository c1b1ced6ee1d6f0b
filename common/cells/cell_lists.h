// The lists of items that a server returns for each cell.
//
// - Cell: the region of feature space nearest to one of a collection's public centroids.
// - Searchers choose cells by a differentially private mechanism over cell numbers (PRIVACY.md
//   section 5).
// - The server chooses the items of a list at no cost of privacy: this code knows the gallery and
//   nothing of a searcher.
#ifndef PRIVATEMAIL_COMMON_CELLS_CELL_LISTS_H_
#define PRIVATEMAIL_COMMON_CELLS_CELL_LISTS_H_

#include <cstdint>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail {

// The nearest centroid of each item.
struct ItemCells {
  std::vector<int64_t> cells;
  std::vector<float> squared_distances;  // to that centroid
};

// Queries with known results, e.g. the gallery's items without themselves among their neighbours.
struct KnownQueries {
  std::vector<std::vector<int64_t>> nearest;  // gallery rows of each query, nearest first
  std::vector<int64_t> cells;                 // of each query
};

// The expected demand for items by queries from each cell. Every known query adds 1, spread over
// its neighbours with weights that fall by a factor of e every 20 ranks.
class Demand {
 public:
  static constexpr int64_t kRanks = 64;  // useful number of neighbours of a known query

  // The weights of a query's neighbours, nearest first; their sum is 1.
  static std::vector<float> Weights(size_t neighbours);

  struct ItemWeight {
    int64_t item;
    float weight;
  };

  Demand(const KnownQueries& queries, int64_t cells, int64_t items);
  // of_cells: as FromCell returns them.
  Demand(std::vector<std::vector<ItemWeight>> of_cells, int64_t items);

  int64_t cells() const { return static_cast<int64_t>(from_cell_.size()); }
  // The demand of the queries in a cell: items ascending, each once.
  const std::vector<ItemWeight>& FromCell(int64_t cell) const {
    return from_cell_[static_cast<size_t>(cell)];
  }
  // The demand of queries weighted 1 in `cell` and `other` in each other cell, one value an item.
  Eigen::RowVectorXf ForCell(int64_t cell, float other) const;

 private:
  std::vector<std::vector<ItemWeight>> from_cell_;
  Eigen::RowVectorXf total_;  // the demand from all cells, one value an item
};

// The items of one partition and the demand for them, from which its lists are made.
struct PartitionDemand {
  ItemCells item_cells;  // of the gallery
  Demand demand;
};

// The epsilons for which servers make lists, ascending: 1/16 to 32 in steps of a factor sqrt(2).
std::vector<double> ListEpsilons();
// The nearest of them by its logarithm; lists of close epsilons differ little. epsilon: finite.
double QuantiseEpsilon(double epsilon);

// The order of the gallery's rows in a cell's list, highest demand first.
// - Searchers request their own cell with e^epsilon times the probability of any other. So the
//   demand of this cell is weighted e^epsilon against 1 for each other cell: at small epsilon the
//   list holds items of high overall demand, at large epsilon those of the cell.
// - Ties: items in the cell first, by distance to its centroid, then by row.
class CellOrder {
 public:
  // The vectors must outlive it. epsilon > 0, public. O(n) time.
  CellOrder(const Demand& demand, const ItemCells& item_cells, int64_t cell, double epsilon);

  // The weight of a query in another cell against 1 for one in this cell.
  float other() const { return other_; }
  float demand(int64_t row) const { return demand_[row]; }
  // Whether row a comes before row b if these are their demands.
  bool IsBefore(int64_t a, float demand_a, int64_t b, float demand_b) const;
  // The first `length` rows, 0 to n. O(n + length log length) time.
  std::vector<int64_t> First(int64_t length) const;

 private:
  const ItemCells* item_cells_;
  int64_t cell_;
  float other_;
  Eigen::RowVectorXf demand_;
};

// The first `length` rows of every cell's order.
std::vector<std::vector<int64_t>> CellLists(const Demand& demand, const ItemCells& item_cells,
                                            double epsilon, int64_t length);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_CELL_LISTS_H_
