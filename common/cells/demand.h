// How often each item of a gallery is among the nearest of queries from each cell.
//
// A cell is a region of feature space: where one of a collection's public centroids is nearest. A
// searcher asks for cells, chosen by a differentially private mechanism over their numbers alone
// (PRIVACY.md section 5); which items answer for a cell is the server's affair, and costs no
// privacy. Knows the gallery, nothing of a searcher.
#ifndef PRIVATEMAIL_COMMON_CELLS_DEMAND_H_
#define PRIVATEMAIL_COMMON_CELLS_DEMAND_H_

#include <cstdint>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail {

// For queries that are known, each with the rows of the gallery that are nearest to it, nearest
// first. The gallery's own items are such queries, without themselves among their neighbours.
struct KnownQueries {
  std::vector<std::vector<int64_t>> nearest;  // one list a query
  std::vector<int64_t> cells;                 // one a query
};

// The expected demand of queries from a cell: every known one brings 1, spread over its neighbours
// with weights that fall with their rank, e-fold in kRanksPerFold ranks, so that an item counts
// which was nearly among the few nearest.
class Demand {
 public:
  static constexpr double kRanksPerFold = 20;
  static constexpr int64_t kRanks = 64;  // neighbours of a known query that are worth giving

  // What each of so many neighbours of one query counts, nearest first, together 1.
  static std::vector<float> Weights(size_t neighbours, double ranks_per_fold = kRanksPerFold);

  // ranks_per_fold: another than kRanksPerFold where these items stand in for more or fewer.
  Demand(const KnownQueries& queries, int64_t cells, int64_t items,
         double ranks_per_fold = kRanksPerFold);

  int64_t cells() const { return static_cast<int64_t>(from_cell_.size()); }
  int64_t items() const { return total_.size(); }
  // Of one who comes from each other cell with the weight `other`, and from this with 1: one an
  // item.
  Eigen::RowVectorXf Around(int64_t cell, float other) const;
  // From all cells together, one an item.
  const Eigen::RowVectorXf& total() const { return total_; }

 private:
  struct Wanted {
    int64_t item;
    float weight;
  };
  std::vector<std::vector<Wanted>> from_cell_;  // items in ascending order, each once
  Eigen::RowVectorXf total_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_DEMAND_H_
