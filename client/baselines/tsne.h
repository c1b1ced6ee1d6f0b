// t-SNE: the unsupervised embedding that the second paper compares with.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_TSNE_H_
#define PRIVATEMAIL_CLIENT_BASELINES_TSNE_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "client/baselines/baseline.h"
#include "client/baselines/tsne_affinity.h"
#include "privatemail/bit_source.h"

namespace privatemail::client::baselines {

// The most rows, gallery and targets together: three matrices of so many squared, 1.2 GB.
inline constexpr int64_t kMostTsneRows = 7000;

inline constexpr char kTsneProtects[] =
    "nothing: gallery and targets are embedded jointly by whoever has both";

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

// van der Maaten and Hinton, "Visualizing Data using t-SNE", 2008, exact gradients. Gains,
// momenta and exaggeration are scikit-learn 1.2's; unlike there, 500 iterations follow the first
// 250 instead of 750, none is left out when there is little progress, and the start is random
// instead of principal components. t-SNE has no map for rows that it has not seen, so gallery and
// targets are embedded jointly. Protects nothing. The start is drawn from `bits`, and the same bits
// give the same embedding.
//
// INVALID_ARGUMENT: CheckSplit's; more than kMostTsneRows rows; perplexity out of range; a
// number of iterations below 0 or above 100,000; exaggeration, learning rate or start not finite or
// out of range. Otherwise the error of `bits`. Time O(iterations n^2): a second of one core
// or so for 250 iterations of 1000 rows.
absl::StatusOr<BaselineResult> Tsne(const DataSplit& split, const TsneOptions& options,
                                    BitSource& bits);

// The gradient of the Kullback-Leibler divergence (equation 5): 4 sum_j (e p_ij - q_ij) (y_i - y_j)
// / (1 + |y_i - y_j|^2), q with the heavy tails of equation 4 and at least 2^-52, e the
// exaggeration. affinity: n x n. embedding: n x k; returns n x k. room: for n x n values, which
// many gradients in turn may use; null: it takes its own.
Matrix TsneGradient(const Matrix& affinity, double exaggeration, const Matrix& embedding,
                    Matrix* room = nullptr);

// sum p_ij ln(p_ij / q_ij), what the gradient is of for e = 1.
double TsneDivergence(const Matrix& affinity, const Matrix& embedding);

// The gradient at an embedding, or something in its place.
using GradientFn =
    std::function<absl::StatusOr<Matrix>(double exaggeration, const Matrix& embedding)>;

// Gradient descent from `start` (n x k) in the two phases of the options. A gain for each
// coordinate grows by 0.2 when its gradient changes sign against the last move and shrinks by a
// fifth otherwise, at least 0.01 (Jacobs 1988, as in the paper); moves and gains begin anew with
// the second phase. Looks at nothing but what `gradient` returns. Errors: those of `gradient`.
absl::StatusOr<Matrix> DescendTsne(const Matrix& start, const TsneOptions& options,
                                   const GradientFn& gradient);

// INVALID_ARGUMENT as Tsne for the options, and more than kMostTsneRows rows.
absl::Status CheckTsne(const TsneOptions& options, int64_t rows);

// TsneAffinity of these rows, by options.affinity where there is one.
absl::StatusOr<std::shared_ptr<const Matrix>> AffinityFor(const TsneOptions& options,
                                                          const Matrix& rows);

// Gallery rows, then target rows.
Matrix JointRows(const DataSplit& split);

}  // namespace privatemail::client::baselines

#endif  // PRIVATEMAIL_CLIENT_BASELINES_TSNE_H_
