// Draws from Bingham laws, in floating point.
//
// For baselines that follow a paper whose own sampler is approximate, and for nothing else: normal
// and uniform numbers come from the exact samplers, but what is computed from them, and every
// acceptance, passes through floating point with private numbers in it. No guarantee rests on this.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_BINGHAM_H_
#define PRIVATEMAIL_CLIENT_BASELINES_BINGHAM_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "privatemail/bit_source.h"
#include "common/base/matrix.h"

namespace privatemail::client::baselines {

// A unit vector v (1 x q) with density proportional to exp(v B v^T) on the sphere, by acceptance
// and rejection under an angular central Gaussian (Kent, Ganeiber and Mardia, "A new method to
// simulate the Bingham and related distributions in directional data analysis with applications",
// 2013): draws are independent. Time O(q^3) for a tridiagonal form, O(q) a proposal.
// B: q x q, symmetric. INVALID_ARGUMENT: not finite. Otherwise the error of `bits`.
absl::StatusOr<RowVector> SampleBingham(const Matrix& b, BitSource& bits);

// A d x k matrix V of orthonormal columns with density proportional to exp(tr V^T B V), 1 <= k <=
// d. For k = 1, and as one draw, SampleBingham. For more, `sweeps` rounds of a Gibbs sampler over
// columns (Hoff, "Simulation of the Matrix Bingham-von Mises-Fisher Distribution", 2009), each
// drawn given all others, from the heaviest eigenvectors on: how near the law is to the one wanted
// after so many rounds is not known. Errors as above.
absl::StatusOr<Matrix> SampleMatrixBingham(const Matrix& b, int64_t k, int64_t sweeps,
                                           BitSource& bits);

}  // namespace privatemail::client::baselines

#endif  // PRIVATEMAIL_CLIENT_BASELINES_BINGHAM_H_
