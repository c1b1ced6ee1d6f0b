// What several guarantees promise together. Pure functions from guarantees to a guarantee.
//
// All composition but ComposeOverDisjointRecords holds for releases chosen adaptively, one after
// the other, by someone who sees the earlier ones. Every sum and bound is rounded up, however many
// parts there are. What goes in must speak of the same neighbours
// (and metric): INVALID_ARGUMENT naming both otherwise, for an empty list, and for a guarantee that
// Validate refuses. Radii may differ; the smallest holds for all. The result is proven when every
// part is, and its source names the theorem and the parts' sources. FAILED_PRECONDITION when
// nothing is left to promise: epsilon not finite or delta not below 1.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_COMPOSITION_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_COMPOSITION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "privatemail/guarantee.h"

namespace privatemail::client {

// How a source names what it was composed by.
inline constexpr absl::string_view kBasicComposition =
    "basic composition (Dwork and Roth 2014, theorem 3.16)";
inline constexpr absl::string_view kStrongComposition =
    "strong composition (Kairouz, Oh and Viswanath 2015, theorem 3.4)";
inline constexpr absl::string_view kGaussianComposition =
    "exact Gaussian composition (Dong, Roth and Su 2022)";

// The guarantee of anything computed from the release without the private input: the same.
Guarantee AfterPostProcessing(Guarantee guarantee);

// Sums of epsilon and delta (Dwork and Roth 2014, theorem 3.16). Where every part carries a
// gaussian_mu, the result carries the root of the sum of their squares.
absl::StatusOr<Guarantee> ComposeBasic(absl::Span<const Guarantee> parts);

// The two printed forms of strong composition for `times` releases of the same (epsilon, delta):
// sqrt(2 times ln(1/slack)) epsilon + times * (mean loss), times delta + slack, where the mean loss
// of one release is at most
enum class StrongForm {
  kDworkRothblumVadhan,  // epsilon (e^epsilon - 1): "Boosting and Differential Privacy", 2010
  kKairouzOhViswanath,   // epsilon (e^epsilon - 1)/(e^epsilon + 1): "The Composition Theorem for
                         // Differential Privacy", 2015, theorem 3.4; never above the other
};
// V1 section 6.2 prints the fraction as (e^epsilon - 1)/(e^epsilon - 1), which is 1 and so no
// better than basic composition. delta_slack in (0, 1); times >= 1; INVALID_ARGUMENT otherwise.
absl::StatusOr<Guarantee> ComposeStrong(const Guarantee& each, int64_t times, double delta_slack,
                                        StrongForm form);

// What each of several releases may spend, and the theorem by which they keep the whole.
struct EpsilonShare {
  double epsilon = 0;  // rounded down
  double delta = 0;    // what all of them together cost of delta: none by the plain sum
  absl::string_view theorem;
};
// The largest epsilon of one of `times` (1 to 10,000) pure releases that together keep (epsilon,
// delta): by strong composition after Kairouz, Oh and Viswanath with all of delta as its slack, or
// by the plain sum where that allows more, as it does for delta 0. Proven. INVALID_ARGUMENT:
// epsilon not finite and positive, delta outside [0, 1), times out of range.
absl::StatusOr<EpsilonShare> EpsilonOfEachRelease(double epsilon, double delta, int64_t times);

// Different (epsilon_i, delta_i), Kairouz, Oh and Viswanath 2015, theorem 3.5: with m = sum
// epsilon_i tanh(epsilon_i / 2) and v = sum epsilon_i^2, epsilon is the smallest of sum epsilon_i,
// m + sqrt(2 v ln(e + sqrt(v) / slack)) and m + sqrt(2 v ln(1 / slack)); delta is sum delta_i +
// slack (or without the slack where the plain sum wins). delta_slack in (0, 1).
absl::StatusOr<Guarantee> ComposeHeterogeneous(absl::Span<const Guarantee> parts,
                                               double delta_slack);

// Every part reads its own chunk of ONE private input, and the whole input may change: sums, and
// the smallest radius (Tian and Tandon, parallel composition).
absl::StatusOr<Guarantee> ComposeOverChunksOfOneInput(absl::Span<const Guarantee> parts);

// Every part reads its own records, and neighbours differ in the value of ONE record that stays
// where it is: the largest epsilon, delta and mu (McSherry, "Privacy Integrated Queries", 2009,
// theorem 4). Not for neighbours whose record may move from one part to another: that changes two.
absl::StatusOr<Guarantee> ComposeOverDisjointRecords(absl::Span<const Guarantee> parts);

// Releases that all carry gaussian_mu, or are epsilon-DP with delta = 0 and epsilon >= 1e-9 (then
// mu of GaussianMuOfPureDp): together mu = sqrt(sum mu_i^2) exactly (Dong, Roth, Su 2022),
// stated as the epsilon that belongs to `delta`. INVALID_ARGUMENT naming the part that has
// neither; delta outside (0, 1) or below 1e-300; mu outside [1e-6, 1e6].
absl::StatusOr<Guarantee> ComposeGaussian(absl::Span<const Guarantee> parts, double delta);

// Where inputs live, which decides how many steps lead from one to another.
enum class InputDomain {
  kConvex,      // the straight line between two inputs consists of inputs
  kUnitSphere,  // metric l2 (chords), at least two dimensions: steps follow the great circle
};
// A guarantee for inputs `radius` apart from one for inputs guarantee.radius apart: over h steps,
// (h epsilon, delta (e^(h epsilon) - 1)/(e^epsilon - 1), h mu), h = ceil(radius / guarantee.radius)
// on a convex domain (Tian and Tandon, chaining), h = ceil(asin(radius/2) /
// asin(guarantee.radius/2)) on the unit sphere, since n chords of one length span n times its arc.
// INVALID_ARGUMENT: the guarantee has no radius, radius is not finite and positive, or above 2 on
// the sphere, or the sphere's metric is not l2.
absl::StatusOr<Guarantee> ChainToRadius(const Guarantee& guarantee, double radius,
                                        InputDomain domain);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_COMPOSITION_H_
