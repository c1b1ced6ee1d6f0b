// The fields of a Guarantee: ranges of epsilon and delta, and the text of the neighbour relation.
// Not installed.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_GUARANTEE_FIELDS_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_GUARANTEE_FIELDS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace privatemail::client {

// Range that the calibrations are proven for. INVALID_ARGUMENT naming the field, unless epsilon is
// in [1e-9, 1e6], and delta in [1e-300, 1).
absl::Status CheckEpsilon(double epsilon);
absl::Status CheckDelta(double delta);
// Checks the delta of a charge or a grant, which is 0 for pure releases. INVALID_ARGUMENT, unless
// it is in [0, 1).
absl::Status CheckSpentDelta(double delta);

// Text of Guarantee::neighbours for a mechanism of a value. Composition and the ledger compare it,
// so every number is printed exactly (common/base/printable.h): different relations, different
// text.

// Schemes that hide the target and its class. Usable: what Release accepts; the server may learn
// that nothing was sent for any other.
inline constexpr char kAnyTargetNeighbours[] =
    "the target, feature and class, replaced by any other usable target";

// "any two inputs whose values differ by at most 0.5 in L2"; norm: "L2".
std::string NeighboursOfValue(double sensitivity, absl::string_view norm);

// "any two inputs whose values, clipped to the box [0, 1]^3 x [-2, 2], differ by at most 0.5 in
// L2": sides in order, equal neighbouring sides as a power. lower and upper: of equal length.
std::string NeighboursInBox(absl::Span<const double> lower, absl::Span<const double> upper,
                            double l2_sensitivity);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_GUARANTEE_FIELDS_H_
