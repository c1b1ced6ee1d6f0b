// Which inputs a mechanism of a value makes hard to tell apart, in words that differ wherever the
// inputs do: guarantees compose, and a ledger adds up, only what is said alike (composition.h). So
// every number is told exactly (common/base/exactly.h). Not installed.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_NEIGHBOURS_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_NEIGHBOURS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace privatemail::client {

// "any two inputs whose values differ by at most 0.5 in L2"; norm: "L2".
std::string NeighboursOfValue(double sensitivity, absl::string_view norm);

// "any two inputs whose values, clipped to the box [0, 1]^3 x [-2, 2], differ by at most 0.5 in
// L2": sides in their order, equal ones that follow each other once. As many ends of either kind.
std::string NeighboursInBox(absl::Span<const double> lower, absl::Span<const double> upper,
                            double l2_sensitivity);

// The same where the widths are all that is known of the box: "clipped to a box with the widths 1^3
// x 4".
std::string NeighboursInWidths(absl::Span<const double> widths, double l2_sensitivity);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_NEIGHBOURS_H_
