#include "client/privacy/sensitivity/known_anchors_sensitivity.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/privacy/sensitivity/iteration_bounds.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/numerics/decompositions.h"
#include "common/numerics/rounding.h"

namespace privatemail::client {
namespace {

using namespace iteration_bounds;

absl::Status CheckAnchors(const IterationInputs& in, const Matrix& anchors) {
  const auto expected = static_cast<int64_t>(in.start.rows()) - in.slots;
  if (expected < 1 || anchors.rows() != expected) {
    return InvalidField(
        "anchors", absl::StrCat("must be at least 1 and fill the rows after the slots: expected ",
                                expected, ", got ", anchors.rows()));
  }
  // The rounding of UnitRows that IterationRoundingError assumes.
  const double rounding = (static_cast<double>(anchors.cols()) + 8) * kUnitRoundoff;
  for (Eigen::Index i = 0; i < anchors.rows(); ++i) {
    const double length = anchors.row(i).norm();
    if (!(std::abs(length - 1) <= rounding)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("anchors row %d must have length 1, but has %.17g", i, length));
    }
  }
  return absl::OkStatus();
}

double SumOfLargest(Vector values, int count) {
  std::sort(values.begin(), values.end(), std::greater<>());
  return values.head(std::min<Eigen::Index>(count, values.size())).sum();
}

// Named as in the header's proof.
absl::StatusOr<RowMoves> BoundRowMoves(const IterationInputs& in, const Matrix& anchors,
                                       int changed_rows) {
  PM_RETURN_IF_ERROR(CheckAnchors(in, anchors));
  PM_ASSIGN_OR_RETURN(const double m, SmallestAffinity(in.kernel_denominator));
  const double h = 2 / in.kernel_denominator;
  const double span = AffinitySpan(in.kernel_denominator);
  const auto anchor_count = static_cast<double>(anchors.rows());
  const auto slots = static_cast<double>(in.slots);
  const double others = anchor_count + slots - 1;
  const Matrix centred = in.start.rowwise() - in.start.bottomRows(anchors.rows()).colwise().mean();
  const auto of_anchors = centred.bottomRows(anchors.rows());
  const auto of_slots = centred.topRows(in.slots);
  const Vector distance = centred.rowwise().norm();  // |q_j - mu|

  // The last term covers the rounding of rows to length 1 and of C.
  const double r = std::expm1(h) - h + 1e-12 * (1 + h);
  const double known = h * SpectralNormBound(of_anchors.transpose() * anchors) +
                       r * std::sqrt(anchor_count) * SpectralNormBound(of_anchors);
  const double free = span * std::sqrt(slots) * SpectralNormBound(of_slots);
  const double n_move = 2 * std::exp(-h) * known + free;  // dN
  const double n_length =                                 // M
      std::exp(-h) * known + free / 2 +
      (1 + m) / 2 * (of_slots.colwise().sum().norm() + distance.head(in.slots).maxCoeff());
  const double pbar = anchors.colwise().mean().norm();
  const double scale = anchor_count * std::exp(-h);
  const double degree_low = std::max(scale * std::exp(-h * pbar) + (slots - 1) * m, others * m);
  const double degree_high =
      std::min(scale * (std::cosh(h) + pbar * std::sinh(h)) + (slots - 1), others);

  const Vector g = LabelPull(in);
  const double degree = std::max(degree_low - 1, others * m);  // E
  const double t = changed_rows;
  const Vector unchanged = (span / degree *
                            (SumOfLargest(distance.head(in.slots), changed_rows) +
                             t * (g.array() + n_length + distance.array()) / degree))
                               .matrix();
  // 1/D_low - 1/D_high, plus the cancellation error where the two are nearly equal.
  const double uneven =
      (std::max(degree_high - degree_low, 0.0) / degree_high + 1e-14) / degree_low;
  return RowMoves{unchanged,
                  n_move / degree_low + (g.head(in.slots).maxCoeff() + n_length) * uneven};
}

}  // namespace

absl::StatusOr<double> KnownAnchorsSensitivity(const IterationInputs& in, const Matrix& anchors,
                                               int changed_rows, Norm norm) {
  PM_ASSIGN_OR_RETURN(const double worst_case, ReplaceTargetSensitivity(in, changed_rows, norm));
  PM_ASSIGN_OR_RETURN(const RowMoves moves, BoundRowMoves(in, anchors, changed_rows));
  PM_ASSIGN_OR_RETURN(const double bound, BoundOnMove(moves, changed_rows, norm, in.start.cols()));
  return std::min(bound, worst_case);
}

}  // namespace privatemail::client
