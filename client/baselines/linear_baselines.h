// Baselines by linear maps: principal components, random projections, Analyze Gauss.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_LINEAR_BASELINES_H_
#define PRIVATEMAIL_CLIENT_BASELINES_LINEAR_BASELINES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/baselines/baseline.h"
#include "privatemail/bit_source.h"

namespace privatemail::client::baselines {

inline constexpr char kProtectsNothing[] = "nothing: the ranking party sees every target";

// Principal component analysis (Pearson 1901) of the gallery: rows minus the gallery's mean,
// projected on the `dimension` (1 to d) heaviest eigenvectors of its covariance. Protects nothing.
// Draws no bits. Errors: CheckSplit's.
absl::StatusOr<BaselineResult> Pca(const DataSplit& split, int64_t dimension);

inline constexpr char kRandomProjectionProtects[] =
    "each target's features, replaced by any others of length 1, from the server and anyone who "
    "sees the sketch; not the gallery, which stays with the server";

// Kenthapadi, Korolova, Mironov and Mishra, "Privacy via the Johnson-Lindenstrauss Transform",
// 2013: target x (1 x d) is released as x P + noise, P public with independent entries of N(0,
// 1/k), k = dimension. The server projects the gallery with the same P, without noise.
//
// - Protects each target's features against everyone who sees its sketch; not the gallery.
// - Neighbours: any two unit vectors (the paper's differ by at most 1 in one coordinate).
// - Proven: exact noise, calibrated after Balle and Wang 2018 for SketchSensitivity.
// - INVALID_ARGUMENT: CheckSplit's; a target that cannot be scaled to length 1; epsilon or delta
//   out of the calibration's range. Otherwise the error of `bits`.
absl::StatusOr<BaselineResult> RandomProjection(const DataSplit& split, int64_t dimension,
                                                const Cost& cost, BitSource& bits);

// The noise step: rows (m x d, scaled to length 1) times projection (d x k, public), with noise in
// every entry. The guarantee is that of each row by itself.
struct NoisySketch {
  Matrix rows;  // m x k
  double noise_stddev = 0;
  Guarantee guarantee;
};
absl::StatusOr<NoisySketch> ReleaseSketch(const Matrix& rows, const Matrix& projection,
                                          const Cost& cost, BitSource& bits);

// How far neighbours' sketches lie apart in L2, at most: |(x - y) P| <= 2 |P|_op, reached by plus
// and minus the singular vector. Rounding: 1e-9 of it for the singular value that is computed in
// double (its error is a small multiple of d u), and 4 (d + 4) u |P|_F for lengths and products of
// two neighbours.
double SketchSensitivity(const Matrix& projection);

inline constexpr char kAnalyseGaussProtects[] =
    "each gallery row, from anyone who sees the subspace; not the projected rows of gallery and "
    "targets, which are ranked as they are";

// Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss: Optimal Bounds for Privacy-Preserving
// Principal Component Analysis", 2014: gallery and targets are projected on the `dimension`
// heaviest eigenvectors of the gallery's second moments (not centred) with symmetric Gaussian
// noise.
//
// - Protects each gallery row against everyone who sees the subspace; not the projected rows.
// - Neighbours: one gallery row replaced by any other unit row.
// - Proven: exact noise, calibrated after Balle and Wang 2018 for SecondMomentSensitivity.
// - INVALID_ARGUMENT: CheckSplit's; a row that cannot be scaled to length 1; epsilon or delta out
//   of the calibration's range. Otherwise the error of `bits`.
absl::StatusOr<BaselineResult> AnalyseGauss(const DataSplit& split, int64_t dimension,
                                            const Cost& cost, BitSource& bits);

// The noise step: sum over rows of row^T row (d x d), with independent noise of one deviation on
// the diagonal and above it, and the same mirrored below. rows: n x d, scaled to length 1.
struct NoisySecondMoments {
  Matrix moments;           // d x d, symmetric
  double noise_stddev = 0;  // of every entry
  Guarantee guarantee;
};
absl::StatusOr<NoisySecondMoments> ReleaseSecondMoments(const Matrix& rows, const Cost& cost,
                                                        BitSource& bits);

// How far replacing one of n rows of dimension d moves the upper triangle in L2: sqrt(2), and what
// rounding adds.
//
// Proof. For unit x and y the move is M = x^T x - y^T y, and |M|_F^2 = 2 - 2 (x y^T)^2 <= 2. The
// upper triangle with the diagonal is no longer than M. Orthogonal unit vectors along two axes
// reach sqrt(2) in the diagonal alone. (Adding or removing a row, as in the paper: |x^T x|_F = 1,
// which an axis reaches.)
//
// Rounding. A row that was scaled to length 1 in double has a length within (d + 4) u of 1, u =
// 2^-53, so that its product is within 3 (d + 4) u of that of a unit row in Frobenius norm. A sum
// of n products in any order is off by at most 2 n u sum |x_i x_j| in each entry (n < 2^50), over
// all entries at most 2 n u sum |x|^2 <= 3 n^2 u. Each of two neighbours may be off by both.
double SecondMomentSensitivity(int64_t n, int64_t d);

}  // namespace privatemail::client::baselines

#endif  // PRIVATEMAIL_CLIENT_BASELINES_LINEAR_BASELINES_H_
