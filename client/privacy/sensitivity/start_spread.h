// How far averages of the start's rows can lie from their mean, whatever the features are.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_START_SPREAD_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_START_SPREAD_H_

#include "common/base/matrix.h"

namespace privatemail::client {

// What averages of N rows can be when each weight w lies within [m, 1], 0 < m <= 1, before the
// weights are scaled to the sum 1: every p = w / sum w lies between 1/N - below and 1/N + above.
struct WeightRange {
  double most = 1;  // 1 / (1 + (N - 1) m)
  double above = 0;
  double below = 0;

  // p - 1/N sums to zero, so its mean square is a variance of values within [-below, above], at
  // most above * below (Bhatia and Davis): the length of p - 1/N is at most this.
  double Unevenness(double rows) const;
};

// rows: N >= 1; affinity_span: 1 - smallest_affinity, which a wide kernel would lose in the
// subtraction.
WeightRange WeightsWithin(double rows, double smallest_affinity, double affinity_span);

// Public quantities of the start Q (n x k, n >= 2) under weights p = w / sum w over the n - 1 rows
// other than one's own, each w within [m, 1], 0 < m <= 1: the kernel's range on unit rows. Every p
// then lies between p_min = m / (m + n - 2) and p_max = 1 / (1 + (n - 2) m).
struct StartSpread {
  Vector distance;       // n: |q_j - mean Q|
  double radius = 0;     // the largest of them
  double deviation = 0;  // at least the deviation of u.q under p, for every unit u and every p
  Vector average;        // n: at least |average of q under p - mean Q|, row i's own row left out
};

// Proof. Let N = n - 1 and Qc = Q - mean Q. *Deviation:* Var_p(u.q) <= sum p_j (u.(q_j - mean))^2
// <= p_max |Qc u|^2, and at most radius^2. *Average:* the coefficients p_j - 1/N sum to zero, so
// their mean square is a variance of values within [p_min - 1/N, p_max - 1/N], at most (p_max -
// 1/N) (1/N - p_min) (Bhatia and Davis). Hence |sum_j (p_j - 1/N)(q_j - mean Q)| <= sqrt(N (p_max -
// 1/N) (1/N - p_min)) |Qc|_op; the plain average over the other rows is |q_i - mean Q| / N from
// mean Q. The average of points within the radius is itself within it.
//
// affinity_span: as above.
StartSpread SpreadOf(const Matrix& start, double smallest_affinity, double affinity_span);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_START_SPREAD_H_
