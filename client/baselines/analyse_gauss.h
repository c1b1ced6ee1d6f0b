// Private principal component analysis by Gaussian noise on the second moments.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_ANALYSE_GAUSS_H_
#define PRIVATEMAIL_CLIENT_BASELINES_ANALYSE_GAUSS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/baselines/baseline.h"
#include "privatemail/bit_source.h"

namespace privatemail::client::baselines {

inline constexpr char kAnalyseGaussProtects[] =
    "each gallery row, from whoever sees the subspace; not the projected rows of gallery and "
    "targets, which are ranked as they are";

struct AnalyseGaussOptions {
  int64_t dimension = 2;  // of the subspace, 1 to d
};

// Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss: Optimal Bounds for Privacy-Preserving
// Principal Component Analysis", 2014: the `dimension` heaviest eigenvectors of the
// gallery's second moments with symmetric Gaussian noise; gallery and targets are projected on
// them. Rows are not centred. Eigenvectors and projection are post-processing.
//
// Protects each gallery row, against whoever sees the subspace. Neighbours: one gallery row
// replaced by any other unit row. NOT protected: the projected rows themselves, of the gallery and
// of the targets, which are ranked as they are. Proven: exact noise, calibrated after Balle and
// Wang 2018, for the sensitivity below.
//
// INVALID_ARGUMENT: CheckSplit's; a row that cannot be scaled to length 1; epsilon or delta out of
// the calibration's range. Otherwise the error of `bits`.
absl::StatusOr<BaselineResult> AnalyseGauss(const DataSplit& split,
                                            const AnalyseGaussOptions& options, const Cost& cost,
                                            BitSource& bits);

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

#endif  // PRIVATEMAIL_CLIENT_BASELINES_ANALYSE_GAUSS_H_
