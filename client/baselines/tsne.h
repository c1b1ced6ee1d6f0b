// t-SNE, and DP-dSNE, its variant with clipped and noised gradients.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_TSNE_H_
#define PRIVATEMAIL_CLIENT_BASELINES_TSNE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/statusor.h"
#include "client/baselines/baseline.h"
#include "client/privacy/mechanisms/mechanism.h"
#include "common/base/matrix.h"
#include "privatemail/bit_source.h"

namespace privatemail::client::baselines {

// van der Maaten and Hinton, "Visualizing Data using t-SNE", 2008, section 3.1: p_ij = (p_j|i +
// p_i|j) / (2 n), p_j|i proportional to exp(-b_i |x_i - x_j|^2), j != i, with b_i found by
// bisection so that the perplexity of row i is within 1e-10 of the one wanted. n x n, symmetric,
// zero diagonal, sums to 1; entries off the diagonal are at least 2^-52. O(n^2 d) time.
// INVALID_ARGUMENT: fewer than 3 rows, a value not finite, or perplexity outside (1, n - 1).
absl::StatusOr<Matrix> TsneAffinity(const Matrix& rows, double perplexity);

// A cache of the affinities computed last, for runs over the same rows that differ in their noise
// alone. Thread-safe; concurrent callers wait for a running computation.
class LastTsneAffinity {
 public:
  // Errors of TsneAffinity.
  absl::StatusOr<std::shared_ptr<const Matrix>> Of(const Matrix& rows, double perplexity);

 private:
  std::mutex mutex_;  // guards what follows
  Matrix rows_;
  double perplexity_ = 0;
  std::shared_ptr<const Matrix> affinity_;
};

// Maximum of gallery and target rows together: three matrices of that size squared, 1.2 GB.
inline constexpr int64_t kMaxTsneRows = 7000;

inline constexpr char kTsneProtects[] =
    "nothing: gallery and targets are embedded jointly by the party that has both";

struct TsneOptions {
  int64_t dimension = 2;           // of the embedding, 1 to d
  double perplexity = 30;          // how many neighbours count; in (1, n - 1)
  int64_t early_iterations = 250;  // with exaggerated affinities and momentum 0.5
  int64_t late_iterations = 500;   // with plain ones and momentum 0.8
  double exaggeration = 12;
  double learning_rate = 0;  // 0: max(n / exaggeration / 4, 50), as scikit-learn's "auto"
  double start_stddev = 1e-4;
  // Of runs that may have the same rows; null: affinities are computed for this one alone.
  std::shared_ptr<LastTsneAffinity> affinity = nullptr;
};

// van der Maaten and Hinton, "Visualizing Data using t-SNE", 2008, exact gradients; gains, momenta
// and exaggeration of scikit-learn 1.2. Gallery and targets are embedded jointly from a random
// start drawn from `bits`. Protects nothing. Time O(iterations n^2).
//
// INVALID_ARGUMENT: CheckSplit's; more than kMaxTsneRows rows; perplexity out of range; a number
// of iterations below 0 or above 100,000; exaggeration, learning rate or start not finite or out of
// range. Otherwise the error of `bits`.
absl::StatusOr<BaselineResult> Tsne(const DataSplit& split, const TsneOptions& options,
                                    BitSource& bits);

// The gradient of the Kullback-Leibler divergence (equation 5), n x k:
// 4 sum_j (e p_ij - q_ij) (y_i - y_j) / (1 + |y_i - y_j|^2)
// - q: as in equation 4, at least 2^-52; e: exaggeration.
// - affinity (p): n x n; embedding (y): n x k.
// - scratch: n x n values, reusable by later calls; null: allocated by the call.
Matrix TsneGradient(const Matrix& affinity, double exaggeration, const Matrix& embedding,
                    Matrix* scratch = nullptr);

// The gradient at an embedding, or something in its place.
using GradientFn =
    std::function<absl::StatusOr<Matrix>(double exaggeration, const Matrix& embedding)>;

// Gradient descent from `start` (n x k) in the two phases of the options.
// - Gains, one a coordinate (Jacobs 1988, as in the paper): + 0.2 when the gradient's sign differs
//   from that of the last move, times 0.8 otherwise; at least 0.01.
// - The second phase resets moves and gains.
// - Reads only the results of `gradient`. Errors: those of `gradient`.
absl::StatusOr<Matrix> DescendTsne(const Matrix& start, const TsneOptions& options,
                                   const GradientFn& gradient);

// INVALID_ARGUMENT as Tsne for the options, and more than kMaxTsneRows rows.
absl::Status CheckTsne(const TsneOptions& options, int64_t rows);

// Gallery rows, then target rows.
Matrix JointRows(const DataSplit& split);

inline constexpr char kDpDsneProtects[] =
    "gallery and targets, from anyone who sees the embedding and every gradient on the way, as any "
    "two inputs with as many rows: its noise hides all rows at once and not one record alone; not "
    "from the curator who has all features and embeds them";

struct DpDsneOptions {
  // Every iteration is paid for: the noise grows with the root of their number, which is why there
  // are fewer than without privacy.
  TsneOptions tsne = {.early_iterations = 20, .late_iterations = 80};
  // The Frobenius norm that a whole gradient is scaled down to. Noise is proportional to it, so
  // what it scales is how much of the gradient is lost, not how much noise hides the rest.
  double clip = .01;
};

// After Saha, Calhoun, Du, Fu, Panta, Kwon, Sarwate and Plis, "Privacy-Preserving Quality Control
// of Neuroimaging Datasets in Federated Environments", 2021. Differences to the paper:
// - One joint embedding of gallery and targets.
// - The whole gradient is clipped, not each site's.
// - Exact Gaussian composition instead of a moments accountant.
//
// - Protects gallery and targets against everyone who sees the embedding and every gradient; not
//   against the curator who computes it from all features.
// - Neighbours: any two inputs with as many rows: a clipped gradient moves by at most 2 clip.
// - Proven: each of T iterations is a Gaussian release of L2 sensitivity 2 clip with mu / sqrt(T),
//   mu that of (epsilon, delta) after Balle and Wang 2018; together they are mu-Gaussian-DP (Dong,
//   Roth and Su 2022). Momentum, gains and schedule are post-processing.
// - INVALID_ARGUMENT: as Tsne; no iterations at all; clip not in [1e-9, 1e9]; epsilon or delta out
//   of the calibration's range. Otherwise the error of `bits`.
absl::StatusOr<BaselineResult> DpDsne(const DataSplit& split, const DpDsneOptions& options,
                                      const Cost& cost, BitSource& bits);

// The noise steps of one embedding. Immutable and thread-safe.
class NoisyGradients {
 public:
  // clip: as above. iterations: how many are to share the cost, at least 1. values: entries of a
  // gradient. INVALID_ARGUMENT: as DpDsne.
  static absl::StatusOr<NoisyGradients> Make(double clip, int64_t iterations, int64_t values,
                                             const Cost& cost);

  // The gradient, scaled down to the clip where it is longer, with noise in every entry. A gradient
  // that is not finite is released as zero.
  absl::StatusOr<Matrix> Release(const Matrix& gradient, BitSource& bits) const;

  double noise_stddev() const { return mechanism_->noise_stddev(); }
  // Of all iterations together.
  const Guarantee& guarantee() const { return guarantee_; }

 private:
  NoisyGradients(double clip, std::shared_ptr<const Mechanism> mechanism, Guarantee guarantee)
      : clip_(clip), mechanism_(std::move(mechanism)), guarantee_(std::move(guarantee)) {}

  double clip_;
  std::shared_ptr<const Mechanism> mechanism_;
  Guarantee guarantee_;
};

}  // namespace privatemail::client::baselines

#endif  // PRIVATEMAIL_CLIENT_BASELINES_TSNE_H_
