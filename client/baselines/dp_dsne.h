// DP-dSNE: t-SNE by gradients that are clipped and noised in every iteration.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_DP_DSNE_H_
#define PRIVATEMAIL_CLIENT_BASELINES_DP_DSNE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "client/baselines/baseline.h"
#include "client/baselines/tsne.h"
#include "privatemail/bit_source.h"
#include "client/privacy/mechanisms/mechanism.h"

namespace privatemail::client::baselines {

inline constexpr char kDpDsneProtects[] =
    "gallery and targets, from whoever sees the embedding and every gradient on the way, as any "
    "two "
    "inputs with as many rows: its noise hides all rows at once and not one record alone; not from "
    "the curator who has all features and embeds them";

struct DpDsneOptions {
  // Every iteration is paid for: the noise grows with the root of their number, which is why there
  // are fewer than without privacy.
  TsneOptions tsne = {.early_iterations = 20, .late_iterations = 80};
  // The Frobenius norm that a whole gradient is scaled down to. Noise is proportional to it, so
  // what it scales is how much of the gradient is lost, not how much noise hides the rest.
  double clip = .01;
};

// After Saha, Calhoun, Du, Fu, Panta, Kwon, Sarwate and Plis, "Privacy-Preserving Quality Control
// of Neuroimaging Datasets in Federated Environments", 2021 (DP-dSNE): gradients of a shared t-SNE
// embedding are clipped, Gaussian noise is added in every iteration, and the embedding follows the
// noisy gradients. Differences to the paper, all of them stated so that nobody takes one for the
// other: the embedding is joint over gallery and targets, since t-SNE has no map for a row that it
// has not seen; the whole gradient is clipped, not each site's; the accounting is exact Gaussian
// composition instead of a moments accountant.
//
// Protects gallery and targets alike, against whoever sees the embedding and every gradient on the
// way to it, but not against the one who computes it: a curator who holds all features. Neighbours:
// any two inputs with as many rows, one row replaced or all of them, since a clipped gradient moves
// by at most 2 clip whatever moves it. Proven: each of T iterations is a Gaussian release of L2
// sensitivity 2 clip with mu / sqrt(T), mu that of (epsilon, delta) after Balle and Wang 2018;
// together they are mu-Gaussian-DP (Dong, Roth and Su 2022, Gaussian composition). Momentum,
// gains and schedule look at noisy gradients alone: post-processing.
//
// Expect little more than chance: the noise of one iteration is about 2 s sqrt(T n k) times as long
// as the clip, s the deviation for each unit of sensitivity. For epsilon 1, delta 1e-5 (s = 3.73),
// n = 1000 rows, k = 2 and T = 100 that is 3,300 times.
//
// INVALID_ARGUMENT: as Tsne; no iterations at all; clip not in [1e-9, 1e9]; epsilon or delta out of
// the calibration's range. Otherwise the error of `bits`.
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

#endif  // PRIVATEMAIL_CLIENT_BASELINES_DP_DSNE_H_
