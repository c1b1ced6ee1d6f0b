#include "client/baselines/linear_baselines.h"

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
namespace {

Matrix UpperTriangle(const Matrix& symmetric) {
  const Eigen::Index d = symmetric.rows();
  Matrix values(1, d * (d + 1) / 2);
  Eigen::Index at = 0;
  for (Eigen::Index i = 0; i < d; ++i) {
    values.row(0).segment(at, d - i) = symmetric.row(i).tail(d - i);
    at += d - i;
  }
  return values;
}

Matrix Mirrored(const Matrix& upper_triangle, Eigen::Index d) {
  Matrix symmetric(d, d);
  Eigen::Index at = 0;
  for (Eigen::Index i = 0; i < d; ++i) {
    symmetric.row(i).tail(d - i) = upper_triangle.row(0).segment(at, d - i);
    symmetric.col(i).tail(d - i) = symmetric.row(i).tail(d - i).transpose();
    at += d - i;
  }
  return symmetric;
}

}  // namespace

absl::StatusOr<BaselineResult> Pca(const DataSplit& split, int64_t dimension) {
  PM_RETURN_IF_ERROR(CheckSplit(split, dimension));
  const RowVector mean = split.gallery.features.colwise().mean();
  const Matrix gallery = split.gallery.features.rowwise() - mean;
  PM_ASSIGN_OR_RETURN(const Matrix axes, PrincipalAxes(gallery.transpose() * gallery, dimension));
  return BaselineResult{gallery * axes, (split.targets.features.rowwise() - mean) * axes,
                        NoGuarantee()};
}

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

absl::StatusOr<BaselineResult> RandomProjection(const DataSplit& split, int64_t dimension,
                                                const Cost& cost, BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckSplit(split, dimension));
  const double stddev = 1 / std::sqrt(static_cast<double>(dimension));
  PM_ASSIGN_OR_RETURN(const Matrix projection,
                      NormalStart(split.gallery.features.cols(), dimension, stddev, bits));
  PM_ASSIGN_OR_RETURN(NoisySketch sketch,
                      ReleaseSketch(split.targets.features, projection, cost, bits));
  return BaselineResult{split.gallery.features * projection, std::move(sketch.rows),
                        sketch.guarantee};
}

double SecondMomentSensitivity(int64_t n, int64_t d) {
  const auto rows = static_cast<double>(n);
  const double one_side = 3 * (static_cast<double>(d) + 4) + 3 * rows * rows;
  return RoundUp(M_SQRT2 + 2 * one_side * kUnitRoundoff);
}

absl::StatusOr<NoisySecondMoments> ReleaseSecondMoments(const Matrix& rows, const Cost& cost,
                                                        BitSource& bits) {
  PM_ASSIGN_OR_RETURN(const Matrix unit, UnitRows("gallery", rows));
  const Eigen::Index d = unit.cols();
  const Matrix exact = UpperTriangle(unit.transpose() * unit);
  PM_ASSIGN_OR_RETURN(const std::unique_ptr<const Mechanism> mechanism,
                      MakeMechanism({.kind = MechanismKind::kGaussian,
                                     .epsilon = cost.epsilon,
                                     .delta = cost.delta,
                                     .sensitivity = SecondMomentSensitivity(unit.rows(), d)},
                                    {.values = exact.size(),
                                     .largest_value = 2.0 * static_cast<double>(unit.rows())}));
  PM_ASSIGN_OR_RETURN(const Matrix noisy, mechanism->ReleaseInDouble(exact, bits));
  NoisySecondMoments result{Mirrored(noisy, d), mechanism->noise_stddev(), mechanism->guarantee()};
  result.guarantee.neighbours = "one gallery row replaced by any other of length 1";
  result.guarantee.source =
      absl::StrCat("Dwork, Talwar, Thakurta and Zhang 2014, over analyse_gauss.h (sensitivity); ",
                   mechanism->guarantee().source, " (noise)");
  return result;
}

absl::StatusOr<BaselineResult> AnalyseGauss(const DataSplit& split, int64_t dimension,
                                            const Cost& cost, BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckSplit(split, dimension));
  PM_ASSIGN_OR_RETURN(const NoisySecondMoments noisy,
                      ReleaseSecondMoments(split.gallery.features, cost, bits));
  PM_ASSIGN_OR_RETURN(const Matrix axes, PrincipalAxes(noisy.moments, dimension));
  return BaselineResult{split.gallery.features * axes, split.targets.features * axes,
                        noisy.guarantee};
}

}  // namespace privatemail::client::baselines
