#include "client/privacy/start_spread.h"

#include <algorithm>
#include <cmath>

#include "client/privacy/iteration_bounds.h"

namespace privatemail {

StartSpread SpreadOf(const Matrix& start, double m, double span) {
  const auto others = static_cast<double>(start.rows() - 1);  // N
  const Matrix centred = start.rowwise() - start.colwise().mean();
  const double norm = iteration_bounds::OperatorNorm(centred);
  const double p_max = 1 / (1 + (others - 1) * m);
  // p_max - 1/N and 1/N - p_min, without their cancellation.
  const double above = (others - 1) * span / (others * (1 + (others - 1) * m));
  const double below = (others - 1) * span / (others * (m + (others - 1)));

  StartSpread spread;
  spread.distance = centred.rowwise().norm();
  spread.radius = spread.distance.maxCoeff();
  spread.deviation = std::min(std::sqrt(p_max) * norm, spread.radius);
  const double uneven = std::sqrt(others * above * below) * norm;
  spread.average = (uneven + spread.distance.array() / others).min(spread.radius).matrix();
  return spread;
}

}  // namespace privatemail
