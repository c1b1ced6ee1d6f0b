// Private random projections: a Johnson-Lindenstrauss sketch of a target with Gaussian noise.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_BASELINES_RANDOM_PROJECTION_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_BASELINES_RANDOM_PROJECTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/evaluation/baselines/baseline.h"
#include "client/privacy/bit_source.h"

namespace privatemail::baselines {

struct RandomProjectionOptions {
  // Which two targets the noise makes hard to tell apart.
  enum class Neighbours {
    kAnyTwoTargets,  // any two unit vectors: what the joint release hides, too
    kOneCoordinate,  // one coordinate changes by at most 1, as in the paper: hides much less
  };
  int64_t dimension = 2;  // of the sketch, 1 to d; more keep distances better and need more noise
  Neighbours neighbours = Neighbours::kAnyTwoTargets;
};

// Kenthapadi, Korolova, Mironov and Mishra, "Privacy via the Johnson-Lindenstrauss Transform",
// 2013, algorithm 1: target x (1 x d) is released as x P + noise, P public with independent entries
// of N(0, 1/k), k = dimension. The server projects the gallery with the same P, without noise.
//
// Protects the features of each target, against the server and whoever else sees the sketch: each
// target row is a release of its own, by the searcher who holds it. Neighbours: options.neighbours.
// NOT protected: the gallery, which stays with the server. Proven: the noise is exact and
// calibrated after Balle and Wang 2018, theorem 8, which needs less than the paper's theorem 1, for
// the sensitivity below.
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
                                          RandomProjectionOptions::Neighbours neighbours,
                                          const Cost& cost, BitSource& bits);

// How far neighbours' sketches lie apart in L2, at most.
// kAnyTwoTargets: |(x - y) P| <= 2 |P|_op, reached by plus and minus the singular vector.
// kOneCoordinate: |t e_j P| <= max_j |row j of P|, the paper's w_2(P) (definition 4).
// Rounding: 1e-9 of it for the singular value or norm that is computed in double (its error is a
// small multiple of d u), and 4 (d + 4) u |P|_F for lengths and products of two neighbours.
double SketchSensitivity(const Matrix& projection, RandomProjectionOptions::Neighbours neighbours);

}  // namespace privatemail::baselines

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_BASELINES_RANDOM_PROJECTION_H_
