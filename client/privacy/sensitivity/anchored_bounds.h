// Sensitivity bounds of the anchored release: how far a slot's row moves with the target in it.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ANCHORED_BOUNDS_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ANCHORED_BOUNDS_H_

#include "absl/status/statusor.h"
#include "common/base/matrix.h"

namespace privatemail::client {

// The public side of an anchored release (PRIVACY.md section 5). With P anchors p_j whose public
// coordinates are q_j, the row of slot a with the unit row x in it is
//   z_a(x) = 1/2 (l_a + sum_j w_j q_j) / D,  w_j = exp(-|x - p_j|^2 / c),  D = sum_j w_j,
// every sum over the anchors alone: no other slot, and no other row of the release, depends on x.
struct AnchoredInputs {
  const Matrix& coordinates;      // q, P x k
  const Matrix& anchors;          // p, P x d, rows of length 1
  const Matrix& pull;             // l, C x k: the label term of each slot, as computed
  double kernel_denominator = 0;  // c
};

// Per slot, C entries each. From public values only.
struct AnchoredBounds {
  Vector speed;     // |z_a(x) - z_a(x')| <= speed |x - x'|, in L2
  Vector range;     // |z_a(x) - z_a(x')| <= range, for all unit x, x'
  Vector rounding;  // |z^_a(x) - z_a(x)| <= rounding, z^ computed in double precision
};

// Proven, for unit rows x and x'. Write h = 2/c, F = 2 z, mu and pbar for the plain means of q and
// p, Q and X for the rows q_j - mu and p_j - pbar, m = exp(-4/c), g_a = |l_a|.
//
// *Form without a distance.* For unit x, w_j = e^-h exp(h x.p_j), so that with E = sum_j
// exp(h x.p_j)
//   F_a(x) = (e^h l_a + sum_j exp(h x.p_j) q_j) / E.                                           (1)
// Take (1) as F on the whole unit ball, where the straight line from x to x' lies. The weights
// exp(h y.p_j) are within a factor e^2h = 1/m of each other there, so the p~_j = exp(h y.p_j) / E
// lie within [1/P - below, 1/P + above] (WeightRange), and with D = e^-h E, by Jensen's
// inequality and the chord of exp on [-h, h],
//   D_low = P e^(-h - h |pbar|) <= D <= D_high = P min(1, e^-h (cosh h + |pbar| sinh h)).
//
// *Speed.* Along a unit direction e, with means under p~ written with a tilde,
//   dF = h [ sum_j p~_j (q_j - q~)(p_j - p~).e - (l_a / D) (p~.e) ].                            (2)
// The sum is Cov e with Cov = Q'X/P + sum_j (p~_j - 1/P)(q_j - mu)(p_j - pbar)' - (q~ - mu)(p~ -
// pbar)', hence
//   |Cov| <= |Q'X|/P + max(above, below) |Q| |X| + P above below |Q| |X|,
// operator norms all: the last term by |q~ - mu| <= sqrt(P above below) |Q| (Bhatia and Davis) and
// the same of p. By Cauchy and Schwarz |Cov| is also at most the product of the largest deviations,
// min(sqrt(1/P + above) |Q|, max |q_j - mu|) and min(sqrt(1/P + above) |X|, 1). And |p~| <= min(1,
// |pbar| + sqrt(P above below) |X|). So row a of z moves by at most
//   speed_a = (|Cov| + |p~| g_a / D_low) / c
// for each unit that x moves.
//
// *Range.* At most 2 speed_a, since x and x' are no more than 2 apart. And, by the two parts of F
// (PRIVACY.md section 4's changed row with n - 1 := P), at most
//   1/2 [ g_a (1/D_low - 1/D_high) + min(2 max |q_j - mu|, sqrt(P) (above + below) |Q|) ],
// which is the smaller one for narrow kernels. Replacing the target, class included, changes two
// rows, each by at most its range: root(range_a^2 + range_b^2) in L2.
//
// *Rounding.* By the proof of IterationRoundingError with the P terms of these sums for the n of
// those: (t / (1-t) + 3u) (max |q_j| + g_a / (P m)). l and q are public values, equal for both
// neighbours, and count as computed; p_j are the anchors scaled to length 1 exactly.
//
// The code takes the root of |X'X|'s Frobenius norm as an upper bound on |X|. Tests record how near
// gradient ascent over x, x', anchors and coordinates comes to the bounds. Time: O(P d min(P, d)).
//
// - INVALID_ARGUMENT: shapes that do not match; no anchor; an anchor whose length differs from 1 by
//   more than the rounding of UnitRows; c outside (0, 1e12]; max |q_ji| outside [1e-100, 1e100];
//   max |l_ai| above 1e100, or not finite.
// - FAILED_PRECONDITION: m below 1e-150; a bound not finite; or max |q_j| + g_a / (P m), whose
//   square is a row's squared length, above 1e150.
absl::StatusOr<AnchoredBounds> BoundAnchoredRows(const AnchoredInputs& inputs);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ANCHORED_BOUNDS_H_
