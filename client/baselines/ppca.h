// Private principal component analysis by the exponential mechanism over subspaces.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_PPCA_H_
#define PRIVATEMAIL_CLIENT_BASELINES_PPCA_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/baselines/baseline.h"
#include "common/base/matrix.h"
#include "privatemail/bit_source.h"

namespace privatemail::client::baselines {

// A unit vector v (1 x q) with density proportional to exp(v B v^T) on the sphere, by rejection
// sampling (Kent, Ganeiber and Mardia, "A new method to simulate the Bingham and related
// distributions in directional data analysis with applications", 2013). O(q^3) time.
// Computed in floating point: no guarantee rests on it.
// B: q x q, symmetric. INVALID_ARGUMENT: not finite. Otherwise the error of `bits`.
absl::StatusOr<RowVector> SampleBingham(const Matrix& b, BitSource& bits);

// A d x k matrix V of orthonormal columns with density proportional to exp(tr V^T B V), 1 <= k <=
// d. k = 1: SampleBingham. k > 1: `sweeps` rounds of a Gibbs sampler over columns (Hoff,
// "Simulation of the Matrix Bingham-von Mises-Fisher Distribution", 2009), whose distance from the
// law is not known.
absl::StatusOr<Matrix> SampleMatrixBingham(const Matrix& b, int64_t k, int64_t sweeps,
                                           BitSource& bits);

// Both baselines choose a subspace V (d x k, orthonormal columns) with a chance proportional to
// exp(epsilon / 2 q(V)), q(V) = sum |x V|^2 over gallery rows x (not centred), and project on it.
//
// - Pure epsilon: replacing row x by y moves q by |y V|^2 - |x V|^2, both in [0, 1], so q has
//   sensitivity 1 (McSherry and Talwar, "Mechanism Design via Differential Privacy", 2007).
// - Protect each gallery row against everyone who sees the subspace; not the projected rows.
// - Neighbours: one gallery row replaced by any other unit row.

inline constexpr char kPpcaProtects[] =
    "each gallery row, from anyone who sees the subspace; not the projected rows of gallery and "
    "targets, which are ranked as they are";

struct PublishedPpcaOptions {
  int64_t dimension = 2;  // of the subspace, 1 to d
  int64_t sweeps = 20;    // of the Gibbs sampler, 1 to 10,000; none is needed for dimension 1
};

// PPCA: V among all subspaces, a matrix Bingham law. Chaudhuri, Sarwate and Sinha, "A Near-Optimal
// Algorithm for Differentially-Private Principal Components", 2013.
//
// - PUBLISHED, not proven: the theorem needs an exact draw, but nobody has bounded the Gibbs
//   sampler's distance from the law, and it computes in floating point. Never for a
//   release.
// - INVALID_ARGUMENT: CheckSplit's; a row that cannot be scaled to length 1; epsilon outside [1e-9,
//   1e6]; sweeps out of range. Otherwise the error of `bits`. Time O(sweeps k d^3).
absl::StatusOr<BaselineResult> PublishedPpca(const DataSplit& split,
                                             const PublishedPpcaOptions& options, const Cost& cost,
                                             BitSource& bits);

// Its noise step: V for the rows (n x d).
absl::StatusOr<Matrix> DrawPublishedSubspace(const Matrix& rows,
                                             const PublishedPpcaOptions& options, const Cost& cost,
                                             BitSource& bits);

struct CandidatePpcaOptions {
  int64_t dimension = 2;      // of the subspace, 1 to d
  int64_t candidates = 256;   // 1 to 2^20: more hold a better one, of which chance picks less often
  int64_t anchors_each = 32;  // that a candidate is fitted to, `dimension` to all anchors
};

// The exponential mechanism over finitely many public subspaces: the principal axes of random
// samples of the anchors. Our exact counterpart of PublishedPpca.
//
// - Proven: candidates do not depend on the gallery, scores are integers, and the choice among them
//   is drawn exactly (SampleExponentialMechanism, client/privacy/sampling/exact_sampling.h).
// - INVALID_ARGUMENT as above, and for epsilon below 1e-6, anchors of another dimension, candidates
//   or anchors_each out of range. Time O(n d^2 + candidates d^2 k).
absl::StatusOr<BaselineResult> CandidatePpca(const DataSplit& split,
                                             const CandidatePpcaOptions& options, const Cost& cost,
                                             BitSource& bits);

// Its noise step: the index of the chosen subspace. candidates: d x k each, orthonormal columns up
// to rounding, at least one. Scores are counted in steps of 2^-20, rounded, and sensitivity grows
// by what that and double precision add.
absl::StatusOr<int64_t> ChooseSubspace(const Matrix& rows, const std::vector<Matrix>& candidates,
                                       const Cost& cost, BitSource& bits);

// The two guarantees for this cost.
Guarantee PublishedPpcaGuarantee(const Cost& cost);
Guarantee CandidatePpcaGuarantee(const Cost& cost);

}  // namespace privatemail::client::baselines

#endif  // PRIVATEMAIL_CLIENT_BASELINES_PPCA_H_
