// Private random projections: a Johnson-Lindenstrauss sketch of a target with Gaussian noise.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_RANDOM_PROJECTION_H_
#define PRIVATEMAIL_CLIENT_BASELINES_RANDOM_PROJECTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/baselines/baseline.h"
#include "privatemail/bit_source.h"

namespace privatemail::client::baselines {

inline constexpr char kRandomProjectionProtects[] =
    "each target's features, replaced by any others of length 1, from the server and whoever sees "
    "the sketch; not the gallery, which stays with the server";

struct RandomProjectionOptions {
  int64_t dimension = 2;  // of the sketch, 1 to d; more keep distances better and need more noise
};

// Kenthapadi, Korolova, Mironov and Mishra, "Privacy via the Johnson-Lindenstrauss Transform",
// 2013: target x (1 x d) is released as x P + noise, P public with independent entries
// of N(0, 1/k), k = dimension. The server projects the gallery with the same P, without noise.
//
// Protects the features of each target, against the server and whoever else sees the sketch: each
// target row is a release of its own, by the searcher who holds it. Neighbours: any two unit
// vectors, as for the joint release; the paper's, which differ by at most 1 in one coordinate, hide
// much less, and are no neighbours of rows that are scaled to length 1, where one coordinate moves
// all. NOT protected: the gallery, which stays with the server. Proven: the noise is exact and
// calibrated after Balle and Wang 2018, which needs less than the paper's own, for the sensitivity
// below.
//
// INVALID_ARGUMENT: CheckSplit's; a target that cannot be scaled to length 1; epsilon or delta out
// of the calibration's range. Otherwise the error of `bits`.
absl::StatusOr<BaselineResult> RandomProjection(const DataSplit& split,
                                                const RandomProjectionOptions& options,
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

}  // namespace privatemail::client::baselines

#endif  // PRIVATEMAIL_CLIENT_BASELINES_RANDOM_PROJECTION_H_
