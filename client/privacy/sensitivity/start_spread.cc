#include "client/privacy/sensitivity/start_spread.h"

#include <algorithm>
#include <cmath>

#include "client/privacy/sensitivity/iteration_bounds.h"

namespace privatemail::client {

double WeightRange::Unevenness(double rows) const { return std::sqrt(rows * above * below); }

WeightRange WeightsWithin(double rows, double m, double span) {
  // most - 1/N and 1/N - least, without their cancellation.
  return {.most = 1 / (1 + (rows - 1) * m),
          .above = (rows - 1) * span / (rows * (1 + (rows - 1) * m)),
          .below = (rows - 1) * span / (rows * (m + (rows - 1)))};
}

StartSpread SpreadOf(const Matrix& start, double m, double span) {
  const auto others = static_cast<double>(start.rows() - 1);  // N
  const Matrix centred = start.rowwise() - start.colwise().mean();
  const double norm = iteration_bounds::OperatorNorm(centred);
  const WeightRange weights = WeightsWithin(others, m, span);

  StartSpread spread;
  spread.distance = centred.rowwise().norm();
  spread.radius = spread.distance.maxCoeff();
  spread.deviation = std::min(std::sqrt(weights.most) * norm, spread.radius);
  const double uneven = weights.Unevenness(others) * norm;
  spread.average = (uneven + spread.distance.array() / others).min(spread.radius).matrix();
  return spread;
}

}  // namespace privatemail::client
