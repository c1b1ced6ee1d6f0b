#include "client/baselines/random_projection.h"

#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/privacy/mechanisms/additive_mechanism.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "client/privacy/sensitivity/rounding.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/decompositions.h"

namespace privatemail::client::baselines {
double SketchSensitivity(const Matrix& projection) {
  const double bound = 2 * SingularValues(projection)[0];
  const double rounding =
      4 * (static_cast<double>(projection.rows()) + 4) * kUnitRoundoff * projection.norm();
  return bound * (1 + 1e-9) + rounding;
}

absl::StatusOr<NoisySketch> ReleaseSketch(const Matrix& rows, const Matrix& projection,
                                          const Cost& cost, BitSource& bits) {
  PM_ASSIGN_OR_RETURN(const Matrix unit, UnitRows("targets", rows));
  const Matrix exact = unit * projection;
  PM_ASSIGN_OR_RETURN(const std::unique_ptr<const Mechanism> mechanism,
                      MakeMechanism({.kind = MechanismKind::kGaussian,
                                     .epsilon = cost.epsilon,
                                     .delta = cost.delta,
                                     .sensitivity = SketchSensitivity(projection)},
                                    {.values = exact.size(),
                                     // Of a unit row; norms are computed in double.
                                     .largest_value = 1.001 * projection.norm()}));
  PM_ASSIGN_OR_RETURN(Matrix noisy, mechanism->ReleaseInDouble(exact, bits));
  NoisySketch result{std::move(noisy), mechanism->noise_stddev(), mechanism->guarantee()};
  result.guarantee.neighbours = "a target's features replaced by any others of length 1";
  result.guarantee.source = absl::StrCat(
      "Kenthapadi, Korolova, Mironov and Mishra 2013, over random_projection.h (sensitivity); ",
      mechanism->guarantee().source, " (noise)");
  return result;
}

absl::StatusOr<BaselineResult> RandomProjection(const DataSplit& split,
                                                const RandomProjectionOptions& options,
                                                const Cost& cost, BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckSplit(split, options.dimension));
  const double stddev = 1 / std::sqrt(static_cast<double>(options.dimension));
  PM_ASSIGN_OR_RETURN(const Matrix projection,
                      NormalStart(split.gallery.features.cols(), options.dimension, stddev, bits));
  PM_ASSIGN_OR_RETURN(NoisySketch sketch,
                      ReleaseSketch(split.targets.features, projection, cost, bits));
  return BaselineResult{split.gallery.features * projection, std::move(sketch.rows),
                        sketch.guarantee, kRandomProjectionProtects};
}

}  // namespace privatemail::client::baselines
