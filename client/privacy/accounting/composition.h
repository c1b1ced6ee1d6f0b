// Composition of guarantees. Pure functions from guarantees to a guarantee.
//
// Common to all functions:
// - They hold for releases chosen adaptively by someone who sees the earlier ones, except
//   ComposeOverDisjointRecords.
// - Every sum and bound is rounded up, for any number of parts.
// - Parts must have the same neighbours and metric. Radii may differ; the smallest holds for all.
// - The result is proven if every part is; its source names the theorem and the parts' sources.
// - INVALID_ARGUMENT: different neighbours or metrics (naming both), no parts, or a part that
//   Validate refuses.
// - FAILED_PRECONDITION: the result promises nothing: epsilon not finite, or delta not below 1.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_COMPOSITION_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_COMPOSITION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "privatemail/guarantee.h"

namespace privatemail::client {

// Theorems, as sources name them.
inline constexpr absl::string_view kBasicComposition =
    "basic composition (Dwork and Roth 2014, theorem 3.16)";
inline constexpr absl::string_view kStrongComposition =
    "strong composition (Kairouz, Oh and Viswanath 2015, theorem 3.4)";
inline constexpr absl::string_view kGaussianComposition =
    "exact Gaussian composition (Dong, Roth and Su 2022)";

// Sums of epsilon and delta (Dwork and Roth 2014, theorem 3.16). If every part has a gaussian_mu,
// the result has the root of the sum of their squares.
absl::StatusOr<Guarantee> ComposeBasic(absl::Span<const Guarantee> parts);

// Strong composition of `times` releases of the same (epsilon, delta), two printed forms:
//   epsilon' = sqrt(2 times ln(1/slack)) epsilon + times mean_loss, delta' = times delta + slack,
// where mean_loss bounds the mean privacy loss of one release.
enum class StrongForm {
  kDworkRothblumVadhan,  // epsilon (e^epsilon - 1): "Boosting and Differential Privacy", 2010
  kKairouzOhViswanath,   // epsilon (e^epsilon - 1)/(e^epsilon + 1): "The Composition Theorem for
                         // Differential Privacy", 2015, theorem 3.4; never above the other
};
// V1 section 6.2 misprints the fraction as (e^epsilon - 1)/(e^epsilon - 1) = 1, which is no better
// than basic composition. INVALID_ARGUMENT: delta_slack outside (0, 1), times < 1.
absl::StatusOr<Guarantee> ComposeStrong(const Guarantee& each, int64_t times, double delta_slack,
                                        StrongForm form);

struct EpsilonShare {
  double epsilon = 0;  // of each release, rounded down
  double delta = 0;    // cost of all releases together: 0 for basic composition
  absl::string_view theorem;
};
// The largest epsilon of each of `times` pure releases that together have (epsilon, delta): by
// strong composition (Kairouz, Oh and Viswanath) with all of delta as slack, or by basic
// composition if that allows more, as it does for delta 0. Proven. INVALID_ARGUMENT: epsilon not
// finite and positive, delta outside [0, 1), times outside [1, 10,000].
absl::StatusOr<EpsilonShare> EpsilonPerRelease(double epsilon, double delta, int64_t times);

// Different (epsilon_i, delta_i), Kairouz, Oh and Viswanath 2015, theorem 3.5. With
// m = sum epsilon_i tanh(epsilon_i / 2) and v = sum epsilon_i^2, epsilon is the smallest of
// - sum epsilon_i,
// - m + sqrt(2 v ln(e + sqrt(v) / slack)),
// - m + sqrt(2 v ln(1 / slack)),
// and delta is sum delta_i, plus slack unless the first wins. delta_slack in (0, 1).
absl::StatusOr<Guarantee> ComposeHeterogeneous(absl::Span<const Guarantee> parts,
                                               double delta_slack);

// Each part reads its own chunk of ONE private input, all of which may change: sums, and the
// smallest radius (Tian and Tandon, parallel composition).
absl::StatusOr<Guarantee> ComposeOverInputChunks(absl::Span<const Guarantee> parts);

// Each part reads its own records, and neighbours differ in the value of ONE record that stays in
// its part: the largest epsilon, delta and mu (McSherry, "Privacy Integrated Queries", 2009,
// theorem 4). Not for neighbours whose record may move between parts, which changes two.
absl::StatusOr<Guarantee> ComposeOverDisjointRecords(absl::Span<const Guarantee> parts);

// Parts with a gaussian_mu, or with delta = 0 and epsilon >= 1e-9 (mu by GaussianMuOfPureDp):
// mu = sqrt(sum mu_i^2) exactly (Dong, Roth, Su 2022), stated as the epsilon at `delta`.
// INVALID_ARGUMENT: a part has neither (named); delta outside [1e-300, 1); mu outside [1e-6, 1e6].
absl::StatusOr<Guarantee> ComposeGaussian(absl::Span<const Guarantee> parts, double delta);

// Input space of a chain of neighbours.
enum class InputDomain {
  kConvex,      // contains the straight line between two inputs
  kUnitSphere,  // metric l2 (chords), at least two dimensions: steps follow the great circle
};
// Extends a guarantee to inputs `radius` apart, over h steps (Tian and Tandon, chaining):
//   (h epsilon, delta (e^(h epsilon) - 1)/(e^epsilon - 1), h mu), where
//   h = ceil(radius / guarantee.radius) on a convex domain,
//   h = ceil(asin(radius/2) / asin(guarantee.radius/2)) on the unit sphere, as n chords of one
//       length span n times its arc.
// INVALID_ARGUMENT: the guarantee has no radius; radius not finite and positive, or above 2 on the
// sphere; a metric other than l2 on the sphere.
absl::StatusOr<Guarantee> ChainToRadius(const Guarantee& guarantee, double radius,
                                        InputDomain domain);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_COMPOSITION_H_
