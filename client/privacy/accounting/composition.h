// Shares of a cost for several releases, and the names of the composition theorems.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_COMPOSITION_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_COMPOSITION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace privatemail::client {

// Theorems, as sources name them.
inline constexpr absl::string_view kBasicComposition =
    "basic composition (Dwork and Roth 2014, theorem 3.16)";
inline constexpr absl::string_view kStrongComposition =
    "strong composition (Kairouz, Oh and Viswanath 2015, theorem 3.4)";
inline constexpr absl::string_view kGaussianComposition =
    "exact Gaussian composition (Dong, Roth and Su 2022)";

struct EpsilonShare {
  double epsilon = 0;  // of each release, rounded down
  double delta = 0;    // cost of all releases together: 0 for basic composition
  absl::string_view theorem;
};
// The largest epsilon of each of `times` pure releases, chosen adaptively, that together have
// (epsilon, delta): by strong composition with all of delta as slack,
//   epsilon = sqrt(2 times ln(1/delta)) each + times each (e^each - 1)/(e^each + 1),
// or by basic composition if that allows more, as it does for delta 0. Proven. V1 section 6.2
// misprints the fraction as (e^each - 1)/(e^each - 1) = 1. INVALID_ARGUMENT: epsilon not finite and
// positive, delta outside [0, 1), times outside [1, 10,000].
absl::StatusOr<EpsilonShare> EpsilonPerRelease(double epsilon, double delta, int64_t times);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_COMPOSITION_H_
