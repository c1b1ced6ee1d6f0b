// Which affinity operator is the right one.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_PLAN_AFFINITY_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_PLAN_AFFINITY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/embedding/affinity_operator.h"
#include "common/numerics/exp_polynomial.h"
#include "common/numerics/point_source.h"
#include "common/numerics/row_share.h"

namespace privatemail {

// What is known before a plan is made.
struct AffinityTask {
  Eigen::Index rows = 0;          // n
  Eigen::Index cols = 0;          // d
  double kernel_denominator = 0;  // c > 0
  Eigen::Index columns = 1;       // of what is multiplied
  int products = 1;               // how many of them will be asked for
  bool in_memory = false;         // the points are a matrix
  // At least the squared length of every row. Rows scaled to length 1 in double are within
  // kUnitSquaredLength.
  double max_squared_length = 0;
  // Greatest relative error of an affinity that is allowed; 0: exact, up to rounding.
  double tolerance = 0;
};

// A row divided by its computed length, or multiplied by the inverse, has a squared length within a
// few roundings of 1; this leaves room for a million coordinates.
inline constexpr double kUnitSquaredLength = 1 + 1e-9;

struct AffinityPlan {
  enum class Kind { kTiled, kFactored, kLowDimensional };
  Kind kind = Kind::kTiled;
  ExpPolynomial polynomial;  // of FactoredAffinity
  int taylor_degree = 0;     // of LowDimensionalAffinity
  // |W~ v - W v|_i <= relative_error ((W |v|)_i + |v_i|): proven, rounding included. 0 when tiled.
  double relative_error = 0;
  std::string why;  // "factored, degree 2: proven relative error 9e-07, 1e-06 allowed"
};

// The operator that needs the fewest operations among those within the tolerance: for points in
// memory of at most 3 coordinates low-dimensional or tiled, for others factored of degree 0, 1 or
// 2, or tiled; tiled also where that takes some ten milliseconds only (1,000 rows of 128
// coordinates).
AffinityPlan PlanAffinity(const AffinityTask& task);

// Bytes that an operator over points in memory keeps at the most, whatever is planned: half of a
// small matrix, or a series of so many features a row, which is not planned where it would take
// more than kMaxSeriesBytes.
inline constexpr int64_t kMaxSeriesBytes = int64_t{1} << 28;
int64_t MaxAffinityBytes(Eigen::Index rows, Eigen::Index cols);

// The operator of a plan for points in memory.
std::unique_ptr<AffinityOperator> MakeAffinity(const AffinityPlan& plan, Matrix points,
                                               double kernel_denominator, int products);
// The same for points wherever they are kept, of a plan for such. share: null for all rows; only a
// factored operator can do with some of them (`points`).
std::unique_ptr<AffinityOperator> MakeAffinity(const AffinityPlan& plan,
                                               std::shared_ptr<const PointSource> points,
                                               double kernel_denominator,
                                               std::shared_ptr<const RowShare> share = nullptr);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_PLAN_AFFINITY_H_
