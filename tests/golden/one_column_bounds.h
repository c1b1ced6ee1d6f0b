// The bounds of the joint release in plain loops, for a start of one column: written from
// PRIVACY.md and the headers' proofs, with nothing of the code under test.
#ifndef PRIVATEMAIL_TESTS_GOLDEN_ONE_COLUMN_BOUNDS_H_
#define PRIVATEMAIL_TESTS_GOLDEN_ONE_COLUMN_BOUNDS_H_

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail::one_column {

inline constexpr double kBandwidth = 1;
inline constexpr double kAlpha = .6;
inline constexpr double kC = 2 * kBandwidth * kBandwidth;  // the kernel's denominator
inline constexpr int kSlots = 4;
inline constexpr int kAnchors = 20;
inline constexpr int kRows = kSlots + kAnchors;
inline constexpr int kSeed = 7;

inline double Norm(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

// What --seed draws.
inline std::vector<double> Start(int values) {
  std::mt19937_64 generator(kSeed);
  std::normal_distribution<double> normal;
  std::vector<double> start;
  for (int i = 0; i < values; ++i) start.push_back(normal(generator));
  return start;
}

// The public side of the cases with one column: labels go round the slots, L_Y is one-hot.
struct OneColumn {
  std::vector<double> q = Start(kRows);
  std::vector<double> g;  // |alpha (L_Y Q)_i|
  double m = std::exp(-4 / kC);

  OneColumn() {
    for (int i = 0; i < kRows; ++i) {
      double pull = 0;
      for (int j = 0; j < kRows; ++j) {
        if (j != i) pull += (i % kSlots == j % kSlots ? 1 : std::exp(-2 / kC)) * (q[i] - q[j]);
      }
      g.push_back(kAlpha * std::abs(pull));
    }
  }

  double Mean(int from, int to) const {
    double sum = 0;
    for (int i = from; i < to; ++i) sum += q[i];
    return sum / (to - from);
  }
  std::vector<double> Distances(int from, int to, double mean) const {
    std::vector<double> distances;
    for (int i = from; i < to; ++i) distances.push_back(std::abs(q[i] - mean));
    return distances;
  }
  double LargestPullOfSlots() const { return *std::max_element(g.begin(), g.begin() + kSlots); }
};

// D <= 1/2 sqrt(sum A^2 + t B^2), and 1/2 (sum A + t B) in L1, where there is one column.
struct Norms {
  double l2;
  double l1;
};
inline Norms InBothNorms(const std::vector<double>& stays, double changes, double t) {
  double sum = 0;
  for (const double a : stays) sum += a;
  return {std::sqrt(Norm(stays) * Norm(stays) + t * changes * changes) / 2,
          (sum + t * changes) / 2};
}

// PRIVACY.md section 4.
inline Norms ReplaceTarget(const OneColumn& in, double t) {
  const double n = kRows;
  const double m = in.m;
  double rho = 0;
  for (const double q : in.q) rho = std::max(rho, std::abs(q));
  std::vector<double> stays;
  for (const double g : in.g) {
    stays.push_back(t * (1 - m) * (2 * rho + g / ((n - 1) * m)) / ((n - 1) * m));
  }
  const double u = 1 / (1 + (n - 2) * m) - m / (m + n - 2);
  const double spread = std::sqrt(n - 1) * u * Norm(in.Distances(0, kRows, in.Mean(0, kRows)));
  const double changes =
      in.LargestPullOfSlots() * (std::exp(4 / kC) - 1) / (n - 1) + std::min(2 * rho, spread);
  return InBothNorms(stays, changes, t);
}

// known_anchors_sensitivity.h.
inline Norms KnownAnchors(const OneColumn& in, const Matrix& anchors, double t) {
  const double m = in.m;
  const double mu = in.Mean(kSlots, kRows);
  std::vector<double> sums(static_cast<size_t>(anchors.cols()));
  for (int j = 0; j < kAnchors; ++j) {
    for (int d = 0; d < anchors.cols(); ++d) sums[d] += (in.q[kSlots + j] - mu) * anchors(j, d);
  }
  std::vector<double> mean;
  for (int d = 0; d < anchors.cols(); ++d) mean.push_back(anchors.col(d).sum() / kAnchors);
  const std::vector<double> far = in.Distances(0, kRows, mu);
  const std::vector<double> far_slots(far.begin(), far.begin() + kSlots);
  const double rest = std::exp(2 / kC) - 1 - 2 / kC;
  const double of_anchors =
      2 * std::exp(-2 / kC) *
      (2 / kC * Norm(sums) + rest * std::sqrt(kAnchors) * Norm(in.Distances(kSlots, kRows, mu)));
  const double of_slots = std::sqrt(kSlots) * Norm(far_slots);
  const double move = of_anchors + (1 - m) * of_slots;
  const double size =
      of_anchors / 2 +
      (1 + m) / 2 *
          (std::abs(kSlots * (in.Mean(0, kSlots) - mu)) + *std::ranges::max_element(far_slots)) +
      (1 - m) / 2 * of_slots;
  const double reach = Norm(mean);
  const double low = std::max(
      std::exp(-2 / kC) * kAnchors * std::exp(-2 * reach / kC) + (kSlots - 1) * m, (kRows - 1) * m);
  const double high = std::min(
      std::exp(-2 / kC) * kAnchors * (std::cosh(2 / kC) + reach * std::sinh(2 / kC)) + (kSlots - 1),
      kRows - 1.);
  const double changes = move / low + (in.LargestPullOfSlots() + size) * (1 / low - 1 / high);
  std::vector<double> largest = far_slots;
  std::ranges::sort(largest, std::greater<>());
  const double of_changed = largest[0] + (t == 2 ? largest[1] : 0);
  const double e = std::max(low - 1, (kRows - 1) * m);
  std::vector<double> stays;
  for (int i = 0; i < kRows; ++i) {
    stays.push_back((1 - m) / e * (of_changed + t * (in.g[i] + size + far[i]) / e));
  }
  return InBothNorms(stays, changes, t);
}

// lipschitz.h and start_spread.h.
inline Norms Lipschitz(const OneColumn& in) {
  const double m = in.m;
  const double others = kRows - 1;
  const std::vector<double> far = in.Distances(0, kRows, in.Mean(0, kRows));
  const double radius = *std::ranges::max_element(far);
  const double p_min = m / (m + others - 1);
  const double p_max = 1 / (1 + (others - 1) * m);
  const double deviation = std::min(radius, std::sqrt(p_max) * Norm(far));
  const double uneven = std::sqrt(others * (p_max - 1 / others) * (1 / others - p_min)) * Norm(far);
  const double moment = std::sqrt(kC / (2 * std::numbers::e));  // c <= 8
  Norms worst{0, 0};
  for (int a = 0; a < kSlots; ++a) {
    const double pull = in.g[a] / (others * m);
    const double own = (pull * pull >= 3 * deviation * deviation
                            ? 2 * std::sqrt(deviation * deviation + pull * pull)
                            : deviation + std::sqrt(3) * pull) /
                       kC;
    double squares = own * own;
    double sum = own;
    for (int i = 0; i < kRows; ++i) {
      const double average = std::min(radius, far[i] / others + uneven);
      const double moved = moment * (far[a] + average + in.g[i] / (others * m)) / (kC * others * m);
      squares += moved * moved;
      sum += moved;
    }
    worst = {std::max(worst.l2, std::sqrt(squares)), std::max(worst.l1, sum)};
  }
  return worst;
}

}  // namespace privatemail::one_column

#endif  // PRIVATEMAIL_TESTS_GOLDEN_ONE_COLUMN_BOUNDS_H_
