// The planner that chooses the cheapest affinity operator within a tolerance.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_PLAN_AFFINITY_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_PLAN_AFFINITY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/embedding/affinity.h"
#include "common/numerics/exp_polynomial.h"
#include "common/numerics/point_source.h"

namespace privatemail {

struct AffinityTask {
  Eigen::Index rows = 0;          // n
  Eigen::Index cols = 0;          // d
  double kernel_denominator = 0;  // c > 0
  Eigen::Index columns = 1;       // of the operand
  int products = 1;               // expected number of products
  bool in_memory = false;         // the points are a matrix
  // Upper bound of the squared lengths of rows; kUnitSquaredLength for rows scaled to length 1.
  double max_squared_length = 0;
  // Allowed relative error of an affinity; 0: exact up to rounding.
  double tolerance = 0;
};

// Bound for rows scaled to length 1 in double: covers the roundings for up to a million
// coordinates.
inline constexpr double kUnitSquaredLength = 1 + 1e-9;

struct AffinityPlan {
  enum class Kind { kTiled, kFactored, kLowDimensional };
  Kind kind = Kind::kTiled;
  ExpPolynomial polynomial;  // if kFactored
  int taylor_degree = 0;     // if kLowDimensional
  // |W~ v - W v|_i <= relative_error ((W |v|)_i + |v_i|), proven, rounding included; 0 if tiled.
  double relative_error = 0;
  std::string why;  // "factored, degree 2: proven relative error 9e-07, 1e-06 allowed"
};

// Chooses the operator with the fewest operations within the tolerance:
// - points in memory of at most 3 coordinates: low-dimensional or tiled
// - others: factored of degree 0, 1 or 2, or tiled
// - always tiled if that takes about ten milliseconds (1,000 rows of 128 coordinates)
AffinityPlan PlanAffinity(const AffinityTask& task);

// Upper bound in bytes of the memory of any planned operator over points in memory. A
// series that needs more than kMaxSeriesBytes is not planned.
inline constexpr int64_t kMaxSeriesBytes = int64_t{1} << 28;
int64_t MaxAffinityBytes(Eigen::Index rows, Eigen::Index cols);

// The operator of a plan for points in memory.
std::unique_ptr<AffinityOperator> MakeAffinity(const AffinityPlan& plan, Matrix points,
                                               double kernel_denominator, int products);
// The operator of a plan made with in_memory = false.
std::unique_ptr<AffinityOperator> MakeAffinity(const AffinityPlan& plan,
                                               std::shared_ptr<const PointSource> points,
                                               double kernel_denominator);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_PLAN_AFFINITY_H_
