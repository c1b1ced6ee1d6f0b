// The second paper's sensitivity, as published: V2, appendix B, equations 7, 8 and 29.
//
// NOT a proven sensitivity (PRIVACY.md section 2): its proof supports sqrt(M (n+1)) / 2 |Q|_F at
// best, and a product of negative lower bounds is none. Kept so that the published figures can be
// reproduced, under a name that says so.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_GAUSSIAN_SENSITIVITY_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_GAUSSIAN_SENSITIVITY_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace privatemail::client {

// M = n M_ij + M_ii and D = M sqrt(n+1) / 2 |Q|_F.
struct PublishedGaussianBound {
  double m_ij = 0;
  double m_ii = 0;
  double m = 0;
  double sensitivity_as_printed = 0;
  double sensitivity_its_proof_supports = 0;  // NaN when M is negative
};
// n >= 1 rows with labels 0 .. largest_label, bandwidth s of the convention 2 s^2, frobenius_norm
// of Q. INVALID_ARGUMENT naming a field that is not finite or out of range; FAILED_PRECONDITION
// when the printed formula gives no finite positive number.
absl::StatusOr<PublishedGaussianBound> PublishedGaussianSensitivity(int64_t n, double alpha,
                                                                    double bandwidth,
                                                                    int64_t largest_label,
                                                                    double frobenius_norm);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_GAUSSIAN_SENSITIVITY_H_
