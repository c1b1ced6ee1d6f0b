// Oracle of the joint release's bounds in plain loops, for a start of one column: written from
// PRIVACY.md and the headers' proofs, without the code under test. In double, or in a type of more
// digits for tests of rounding direction.
#ifndef PRIVATEMAIL_TESTS_GOLDEN_ONE_COLUMN_BOUNDS_H_
#define PRIVATEMAIL_TESTS_GOLDEN_ONE_COLUMN_BOUNDS_H_

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <type_traits>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail::client::one_column {

inline constexpr double kBandwidth = 1;
inline constexpr double kAlpha = .6;
inline constexpr double kC = 2 * kBandwidth * kBandwidth;  // the kernel's denominator
inline constexpr int kSlots = 4;
inline constexpr int kAnchors = 20;
inline constexpr int kRows = kSlots + kAnchors;
inline constexpr int kSeed = 7;

template <typename Real>
Real LengthOf(const std::vector<Real>& values) {
  Real squares = 0;
  for (const Real value : values) squares += value * value;
  return std::sqrt(squares);
}

// The start that `--seed` draws.
inline std::vector<double> Start(int values) {
  std::mt19937_64 generator(kSeed);
  std::normal_distribution<double> normal;
  std::vector<double> start;
  for (int i = 0; i < values; ++i) start.push_back(normal(generator));
  return start;
}

// Public inputs of the one-column cases: labels cycle through the slots, L_Y is one-hot.
template <typename Real>
struct OneColumnIn {
  std::vector<Real> q;
  std::vector<Real> g;  // |alpha (L_Y Q)_i|
  Real c;               // the kernel's denominator
  Real m;               // its smallest value

  OneColumnIn(double alpha, double bandwidth)
      : c(2 * static_cast<Real>(bandwidth) * bandwidth), m(std::exp(-4 / c)) {
    for (const double value : Start(kRows)) q.push_back(value);
    for (int i = 0; i < kRows; ++i) {
      Real pull = 0;
      for (int j = 0; j < kRows; ++j) {
        if (j != i) pull += (i % kSlots == j % kSlots ? 1 : std::exp(-2 / c)) * (q[i] - q[j]);
      }
      g.push_back(alpha * std::abs(pull));
    }
  }

  Real Mean(int from, int to) const {
    Real sum = 0;
    for (int i = from; i < to; ++i) sum += q[i];
    return sum / (to - from);
  }
  std::vector<Real> Distances(int from, int to, Real mean) const {
    std::vector<Real> distances;
    for (int i = from; i < to; ++i) distances.push_back(std::abs(q[i] - mean));
    return distances;
  }
  Real LargestPullOfSlots() const { return *std::max_element(g.begin(), g.begin() + kSlots); }
};

struct OneColumn : OneColumnIn<double> {
  explicit OneColumn(double alpha = kAlpha, double bandwidth = kBandwidth)
      : OneColumnIn(alpha, bandwidth) {}
};

// D <= 1/2 sqrt(sum A^2 + t B^2), and 1/2 (sum A + t B) in L1 for one column.
template <typename Real>
struct NormsIn {
  Real l2;
  Real l1;
};
using Norms = NormsIn<double>;
template <typename Real>
NormsIn<Real> InBothNorms(const std::vector<Real>& stays, Real changes, Real t) {
  Real sum = 0;
  for (const Real a : stays) sum += a;
  return {std::sqrt(LengthOf(stays) * LengthOf(stays) + t * changes * changes) / 2,
          (sum + t * changes) / 2};
}

// PRIVACY.md section 4.
template <typename Real>
NormsIn<Real> ReplaceTarget(const OneColumnIn<Real>& in, std::type_identity_t<Real> t) {
  const Real n = kRows;
  const Real m = in.m;
  const Real c = in.c;
  Real rho = 0;
  for (const Real q : in.q) rho = std::max(rho, std::abs(q));
  std::vector<Real> stays;
  for (const Real g : in.g) {
    stays.push_back(t * (1 - m) * (2 * rho + g / ((n - 1) * m)) / ((n - 1) * m));
  }
  const Real u = 1 / (1 + (n - 2) * m) - m / (m + n - 2);
  const Real spread = std::sqrt(n - 1) * u * LengthOf(in.Distances(0, kRows, in.Mean(0, kRows)));
  const Real changes =
      in.LargestPullOfSlots() * (std::exp(4 / c) - 1) / (n - 1) + std::min(2 * rho, spread);
  return InBothNorms(stays, changes, t);
}

// known_anchors_sensitivity.h.
template <typename Real>
NormsIn<Real> KnownAnchors(const OneColumnIn<Real>& in, const Matrix& anchors,
                           std::type_identity_t<Real> t) {
  const Real m = in.m;
  const Real c = in.c;
  const Real mu = in.Mean(kSlots, kRows);
  std::vector<Real> sums(static_cast<size_t>(anchors.cols()));
  std::vector<Real> mean(sums.size());
  for (int j = 0; j < kAnchors; ++j) {
    for (int d = 0; d < anchors.cols(); ++d) {
      sums[d] += (in.q[kSlots + j] - mu) * anchors(j, d);
      mean[d] += static_cast<Real>(anchors(j, d)) / kAnchors;
    }
  }
  const std::vector<Real> far = in.Distances(0, kRows, mu);
  const std::vector<Real> far_slots(far.begin(), far.begin() + kSlots);
  const Real rest = std::exp(2 / c) - 1 - 2 / c;
  const Real of_anchors = 2 * std::exp(-2 / c) *
                          (2 / c * LengthOf(sums) + rest * std::sqrt(Real{kAnchors}) *
                                                        LengthOf(in.Distances(kSlots, kRows, mu)));
  const Real of_slots = std::sqrt(Real{kSlots}) * LengthOf(far_slots);
  const Real move = of_anchors + (1 - m) * of_slots;
  const Real size =
      of_anchors / 2 +
      (1 + m) / 2 *
          (std::abs(kSlots * (in.Mean(0, kSlots) - mu)) + *std::ranges::max_element(far_slots)) +
      (1 - m) / 2 * of_slots;
  const Real reach = LengthOf(mean);
  const Real low = std::max(
      std::exp(-2 / c) * kAnchors * std::exp(-2 * reach / c) + (kSlots - 1) * m, (kRows - 1) * m);
  const Real high = std::min(
      std::exp(-2 / c) * kAnchors * (std::cosh(2 / c) + reach * std::sinh(2 / c)) + (kSlots - 1),
      Real{kRows - 1});
  const Real changes = move / low + (in.LargestPullOfSlots() + size) * (1 / low - 1 / high);
  std::vector<Real> largest = far_slots;
  std::ranges::sort(largest, std::greater<>());
  const Real of_changed = largest[0] + (t == 2 ? largest[1] : 0);
  const Real e = std::max<Real>(low - 1, (kRows - 1) * m);
  std::vector<Real> stays;
  for (int i = 0; i < kRows; ++i) {
    stays.push_back((1 - m) / e * (of_changed + t * (in.g[i] + size + far[i]) / e));
  }
  return InBothNorms(stays, changes, t);
}

// lipschitz.h, and StartSpread of lipschitz.cc.
template <typename Real>
NormsIn<Real> Lipschitz(const OneColumnIn<Real>& in) {
  const Real m = in.m;
  const Real c = in.c;
  const Real others = kRows - 1;
  const std::vector<Real> far = in.Distances(0, kRows, in.Mean(0, kRows));
  const Real radius = *std::ranges::max_element(far);
  const Real p_min = m / (m + others - 1);
  const Real p_max = 1 / (1 + (others - 1) * m);
  const Real deviation = std::min(radius, std::sqrt(p_max) * LengthOf(far));
  const Real uneven =
      std::sqrt(others * (p_max - 1 / others) * (1 / others - p_min)) * LengthOf(far);
  const Real moment = c <= 8 ? std::sqrt(c / (2 * std::numbers::e_v<Real>)) : 2 * m;
  NormsIn<Real> worst{0, 0};
  for (int a = 0; a < kSlots; ++a) {
    const Real pull = in.g[a] / (others * m);
    const Real own = (pull * pull >= 3 * deviation * deviation
                          ? 2 * std::sqrt(deviation * deviation + pull * pull)
                          : deviation + std::sqrt(Real{3}) * pull) /
                     c;
    Real squares = own * own;
    Real sum = own;
    for (int i = 0; i < kRows; ++i) {
      const Real average = std::min(radius, far[i] / others + uneven);
      const Real moved = moment * (far[a] + average + in.g[i] / (others * m)) / (c * others * m);
      squares += moved * moved;
      sum += moved;
    }
    worst = {std::max(worst.l2, std::sqrt(squares)), std::max(worst.l1, sum)};
  }
  return worst;
}

}  // namespace privatemail::client::one_column

#endif  // PRIVATEMAIL_TESTS_GOLDEN_ONE_COLUMN_BOUNDS_H_
