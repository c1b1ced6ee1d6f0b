#include "common/numerics/exp_polynomial.h"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace privatemail {
namespace {

// e is a difference of numbers near 1 and may be 1e-16: double is too short.
using Extended = long double;
static_assert(std::numeric_limits<Extended>::digits >= 64);

using Coefficients = std::array<Extended, 3>;

Extended RelativeError(const Coefficients& p, Extended rate, Extended t) {
  return (p[0] + t * (p[1] + t * p[2])) * std::exp(-rate * t) - 1;
}

// The solutions of p' = rate p within (-radius, radius), ascending.
std::vector<Extended> InnerExtrema(const Coefficients& p, Extended rate, Extended radius) {
  const Extended a = -rate * p[2], b = 2 * p[2] - rate * p[1], c = p[1] - rate * p[0];
  std::vector<Extended> roots;
  if (a == 0) {
    if (b != 0) roots = {-c / b};
  } else if (const Extended discriminant = b * b - 4 * a * c; discriminant >= 0) {
    // The form of the quadratic formula without cancellation.
    const Extended q = -(b + std::copysign(std::sqrt(discriminant), b)) / 2;
    roots = {q / a};
    if (q != 0) roots.push_back(c / q);
  }
  std::erase_if(roots, [&](Extended t) { return !(std::abs(t) < radius); });
  std::sort(roots.begin(), roots.end());
  return roots;
}

// The coefficients whose relative errors at degree + 2 points are equal with alternating signs.
Coefficients SolveEquioscillation(int degree, Extended rate, const std::vector<Extended>& points) {
  using System = Eigen::Matrix<Extended, Eigen::Dynamic, Eigen::Dynamic>;
  const auto size = static_cast<Eigen::Index>(points.size());
  System system(size, size);
  System values(size, 1);
  for (Eigen::Index i = 0; i < size; ++i) {
    const Extended value = std::exp(rate * points[i]);
    for (int power = 0; power <= degree; ++power) system(i, power) = std::pow(points[i], power);
    system(i, degree + 1) = i % 2 == 0 ? value : -value;
    values(i, 0) = value;
  }
  const System solution = system.fullPivLu().solve(values);
  Coefficients p = {};
  for (int power = 0; power <= degree; ++power) p[power] = solution(power, 0);
  return p;
}

// The Remez exchange for exp(range u) on [-1, 1].
Coefficients RemezExchange(int degree, Extended range) {
  std::vector<Extended> points;
  const Extended pi = std::acos(Extended{-1});
  for (int i = 0; i <= degree + 1; ++i) points.push_back(-std::cos(pi * i / (degree + 1)));
  Coefficients p = SolveEquioscillation(degree, range, points);
  // Quadratic convergence: from these points three rounds reach the last bit.
  for (int round = 0; round < 8; ++round) {
    const std::vector<Extended> inner = InnerExtrema(p, range, 1);
    // The error is below rounding.
    if (inner.size() + 2 != points.size()) break;
    std::copy(inner.begin(), inner.end(), points.begin() + 1);
    p = SolveEquioscillation(degree, range, points);
  }
  return p;
}

}  // namespace

ExpPolynomial FitExp(int degree, double rate, double radius) {
  const Coefficients unit = RemezExchange(degree, static_cast<Extended>(rate) * radius);
  ExpPolynomial fit{.degree = degree};
  Coefficients stored = {};
  for (int power = 0; power <= degree; ++power) {
    // radius 0: only the constant matters.
    const bool matters = power == 0 || radius > 0;
    fit.coefficients[power] =
        matters ? static_cast<double>(unit[power] / std::pow(Extended{radius}, power)) : 0;
    stored[power] = fit.coefficients[power];
  }
  std::vector<Extended> candidates = InnerExtrema(stored, rate, radius);
  candidates.insert(candidates.end(), {-Extended{radius}, Extended{radius}});
  Extended largest = 0;
  for (const Extended t : candidates) {
    largest = std::max(largest, std::abs(RelativeError(stored, rate, t)));
  }
  fit.relative_error = static_cast<double>(largest) + 0x1p-53;
  return fit;
}

}  // namespace privatemail
