// Baselines without privacy: what the features themselves give, and what chance gives.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_NON_PRIVATE_H_
#define PRIVATEMAIL_CLIENT_BASELINES_NON_PRIVATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/baselines/baseline.h"
#include "privatemail/bit_source.h"

namespace privatemail::client::baselines {

inline constexpr char kProtectsNothing[] = "nothing: whoever ranks sees every target";
inline constexpr char kRandomGuessProtects[] =
    "everything: the rows are drawn without a look at the features";

// The features as they are. Protects nothing: whoever ranks sees every target. Draws no bits.
// Errors: CheckSplit's.
absl::StatusOr<BaselineResult> Features(const DataSplit& split);

struct PcaOptions {
  int64_t dimension = 2;  // of the subspace, 1 to d; fewer lose more of the features
};

// Principal component analysis (Pearson 1901) of the gallery: rows minus the gallery's mean,
// projected on the `dimension` heaviest eigenvectors of its covariance. Protects nothing. Draws no
// bits. Errors: CheckSplit's.
absl::StatusOr<BaselineResult> Pca(const DataSplit& split, const PcaOptions& options);

// Rows that are drawn without a look at the features: every order of the gallery is as likely for
// every target. Protects everything, (0, 0)-differentially private for any two inputs with as many
// rows. Errors: CheckSplit's, and that of `bits`.
absl::StatusOr<BaselineResult> RandomGuess(const DataSplit& split, BitSource& bits);

// What RandomGuess is expected to reach: the mean over targets of the chance that at least one of k
// different gallery rows drawn uniformly has the target's label, 1 - (n - n_c choose k) / (n choose
// k). INVALID_ARGUMENT: k outside [1, n], or no targets.
absl::StatusOr<double> RandomGuessRecall(const std::vector<int32_t>& gallery_labels,
                                         const std::vector<int32_t>& target_labels, int64_t k);

}  // namespace privatemail::client::baselines

#endif  // PRIVATEMAIL_CLIENT_BASELINES_NON_PRIVATE_H_
