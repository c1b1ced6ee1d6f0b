#include "client/baselines/dp_dsne.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/privacy/mechanisms/additive_mechanism.h"
#include "client/privacy/accounting/composition.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client::baselines {
namespace {

// A norm of n values in double is within (n + 2) u of the exact one, and so is what is scaled by
// it; 1e-6 covers more values than memory holds.
constexpr double kRoundingOfTheClip = 1e-6;

}  // namespace

absl::StatusOr<NoisyGradients> NoisyGradients::Make(double clip, int64_t iterations, int64_t values,
                                                    const Cost& cost) {
  PM_RETURN_IF_ERROR(CheckBetween("clip", clip, 1e-9, 1e9));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("iterations", iterations, 1, 200'000));
  // The noise of one release, over a sensitivity that is wider by the root of their number: each
  // has mu / sqrt(iterations) of what the cost allows.
  const double widening = std::sqrt(static_cast<double>(iterations));
  PM_ASSIGN_OR_RETURN(
      std::shared_ptr<const Mechanism> mechanism,
      MakeMechanism({.kind = MechanismKind::kGaussian,
                     .epsilon = cost.epsilon,
                     .delta = cost.delta,
                     .sensitivity = widening * 2 * clip * (1 + kRoundingOfTheClip)},
                    {.values = values, .largest_value = clip * (1 + kRoundingOfTheClip)}));
  Guarantee guarantee = mechanism->guarantee();
  guarantee.neighbours = "any two inputs with as many rows";
  guarantee.source = absl::StrCat(
      kGaussianComposition, " over ", iterations,
      " clipped gradients (Saha et al. 2021, DP-dSNE), of: ", mechanism->guarantee().source);
  return NoisyGradients(clip, std::move(mechanism), std::move(guarantee));
}

absl::StatusOr<Matrix> NoisyGradients::Release(const Matrix& gradient, BitSource& bits) const {
  const double norm = gradient.norm();
  if (!std::isfinite(norm)) {
    return mechanism_->ReleaseInDouble(Matrix::Zero(gradient.rows(), gradient.cols()), bits);
  }
  const Matrix clipped = norm > clip_ ? Matrix(gradient * (clip_ / norm)) : gradient;
  return mechanism_->ReleaseInDouble(clipped, bits);
}

absl::StatusOr<BaselineResult> DpDsne(const DataSplit& split, const DpDsneOptions& options,
                                      const Cost& cost, BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckSplit(split, options.tsne.dimension));
  const Matrix rows = JointRows(split);
  PM_RETURN_IF_ERROR(CheckTsne(options.tsne, rows.rows()));
  PM_ASSIGN_OR_RETURN(
      const NoisyGradients noise,
      NoisyGradients::Make(options.clip,
                           options.tsne.early_iterations + options.tsne.late_iterations,
                           rows.rows() * options.tsne.dimension, cost));
  PM_ASSIGN_OR_RETURN(const auto affinity, AffinityFor(options.tsne, rows));
  PM_ASSIGN_OR_RETURN(const Matrix start, NormalStart(rows.rows(), options.tsne.dimension,
                                                      options.tsne.start_stddev, bits));
  Matrix room;
  PM_ASSIGN_OR_RETURN(const Matrix embedding,
                      DescendTsne(start, options.tsne, [&](double exaggeration, const Matrix& at) {
                        return noise.Release(TsneGradient(*affinity, exaggeration, at, &room),
                                             bits);
                      }));
  return BaselineResult{embedding.topRows(split.gallery.features.rows()),
                        embedding.bottomRows(split.targets.features.rows()), noise.guarantee(),
                        kDpDsneProtects};
}

}  // namespace privatemail::client::baselines
