// The Gaussian trade-off: exact (epsilon, delta) of N(0, 1) against N(mu, 1), behind every Gaussian
// guarantee. The pair satisfies (epsilon, delta) exactly when delta is at least
//   delta(epsilon; mu) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)
// (Balle and Wang 2018, theorem 8; Dong, Roth, Su, "Gaussian Differential Privacy", 2022, corollary
// 1). Gaussian noise of standard deviation s on an L2 sensitivity D has mu = D / s.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_GAUSSIAN_TRADEOFF_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_GAUSSIAN_TRADEOFF_H_

#include "absl/status/statusor.h"

namespace privatemail::client {

// Results are rounded towards less privacy: never below the true value, and above it by at most one
// part in 10^8.

// The smallest epsilon >= 0 at delta. INVALID_ARGUMENT: mu outside [1e-6, 1e6], delta outside
// [1e-300, 1).
absl::StatusOr<double> GaussianEpsilon(double mu, double delta);

// The smallest mu such that every epsilon-DP mechanism (delta = 0) is mu-Gaussian-DP:
// mu = -2 Phi^-1(1 / (1 + e^epsilon)).
//
// Proof. For a test that tells neighbours apart with error a of the first kind, epsilon-DP bounds
// the error of the second kind from below by f(a) = max(1 - e^epsilon a, e^-epsilon (1 - a)): two
// segments from (0, 1) to (1, 0) that meet at the kink (p, p), p = 1 / (1 + e^epsilon). The
// Gaussian curve G(a) = Phi(Phi^-1(1 - a) - mu) is convex, runs from (0, 1) to (1, 0) and passes
// (p, p) for this mu, since there Phi^-1(1 - p) = mu/2. A convex curve lies below its chords, and f
// is made of two of them, so G <= f everywhere: no test does better than against the Gaussian pair.
// A smaller mu would lie above f at the kink. INVALID_ARGUMENT: epsilon outside [1e-9, 1e6].
absl::StatusOr<double> GaussianMuOfPureDp(double epsilon);

// ln delta(epsilon; mu) in extended precision, for calibrations that search; epsilon >= 0, mu > 0.
// 0 if delta differs from 1 by less than 10^-2000, minus infinity if it vanishes.
long double LnGaussianDelta(long double epsilon, long double mu);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_GAUSSIAN_TRADEOFF_H_
