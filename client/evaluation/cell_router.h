// Which cells are best for a query, by a table that everybody has.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_CELL_ROUTER_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_CELL_ROUTER_H_

#include <cstdint>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail::client {

// Points of feature space, and around each how well each cell answers. Public; a cell is wherever
// it answers best, which need not be one convex region. PRIVACY.md section 5 leaves open how a
// searcher ranks the cells: the guarantee is that of the choice among their numbers.
struct CellRouter {
  static constexpr int64_t kBlended = 8;

  FloatMatrix prototypes;  // m x d
  FloatMatrix answered;    // m x cells: the share that a query near the prototype finds there
  // Of squared distances: of the kBlended prototypes nearest to a query, one that is farther than
  // the nearest by so much counts e-fold less.
  double bandwidth = 0;
};

// The prototypes that speak for a query (d values), and with what weight, together 1.
struct PrototypeWeight {
  int64_t prototype = 0;
  float weight = 0;
};
std::vector<PrototypeWeight> Blend(const CellRouter& router, const RowVector& query);

// What each cell is expected to answer, one a cell.
Eigen::RowVectorXf ExpectedAnswers(const CellRouter& router,
                                   const std::vector<PrototypeWeight>& blend);

// All cells, those first that are expected to answer most of a query, of equal ones the smaller
// number.
std::vector<int64_t> RankedCells(const CellRouter& router, const RowVector& query);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_CELL_ROUTER_H_
