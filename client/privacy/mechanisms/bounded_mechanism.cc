#include "client/privacy/mechanisms/bounded_mechanism.h"

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/mechanisms/bounded_gaussian_calibration.h"
#include "client/privacy/mechanisms/grid_mechanism.h"
#include "client/privacy/sampling/exact_sampling.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

// The largest box in whole steps of the grid inside the given one.
absl::StatusOr<std::vector<TruncatedCentre>> LargestGridBoxInside(const Box& box, NoiseGrid grid) {
  std::vector<TruncatedCentre> sides;
  for (size_t i = 0; i < box.lower.size(); ++i) {
    const double low = std::ceil(grid.InSteps(box.lower[i]));
    const double high = std::floor(grid.InSteps(box.upper[i]));
    if (!(std::fmax(std::abs(low), std::abs(high)) <= kLargestValueInSteps) || !(low < high)) {
      return absl::FailedPreconditionError(
          absl::StrCat("no noise grid fits a box with the side [", box.lower[i], ", ", box.upper[i],
                       "]: epsilon is too small, or the sides too different"));
    }
    sides.push_back({.low = static_cast<int64_t>(low), .high = static_cast<int64_t>(high)});
  }
  return sides;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Mechanism>> MakeBoundedGaussianMechanism(
    const Box& box, double l2_sensitivity, double epsilon, bool published, Guarantee guarantee) {
  PM_ASSIGN_OR_RETURN(std::vector<double> widths, BoxWidths(box.lower, box.upper));
  PM_ASSIGN_OR_RETURN(double stddev,
                      published ? PublishedBoundedGaussianStddev(widths, l2_sensitivity, epsilon)
                                : BoundedGaussianStddev(widths, l2_sensitivity, epsilon));
  // About 2^30 steps per standard deviation. Clipping to the grid's box inside the given one moves
  // values no further apart.
  const NoiseGrid grid{std::ilogb(stddev) - kStepsPerWidthLog2};
  PM_ASSIGN_OR_RETURN(std::vector<TruncatedCentre> sides, LargestGridBoxInside(box, grid));
  if (!published) {
    for (size_t i = 0; i < sides.size(); ++i) {
      widths[i] = grid.Length(static_cast<double>(sides[i].high - sides[i].low));
    }
    PM_ASSIGN_OR_RETURN(stddev,
                        BoundedGaussianStddev(widths, l2_sensitivity, epsilon, grid.Length(1)));
  }
  const double steps = std::ceil(grid.InSteps(stddev));
  if (!(steps <= static_cast<double>(kMaxDiscreteStddev))) {
    return absl::FailedPreconditionError(
        absl::StrCat("no noise grid fits a standard deviation of ", stddev));
  }
  const auto count = static_cast<int64_t>(sides.size());
  auto draw = [sides = std::move(sides), grid, width = static_cast<uint64_t>(steps)](
                  const double* values, BitSource& bits) {
    std::vector<TruncatedCentre> centres = sides;
    for (size_t i = 0; i < centres.size(); ++i) {
      TruncatedCentre& c = centres[i];
      // Both ends came from doubles, so the conversion back is exact.
      c.centre = grid.Round(values[i], grid.Length(static_cast<double>(c.low)),
                            grid.Length(static_cast<double>(c.high)));
    }
    return SampleTruncatedGaussian(centres, width, bits);
  };
  return std::make_unique<const GridMechanism>(grid, grid.Length(steps), count, std::move(draw),
                                               std::move(guarantee));
}

}  // namespace privatemail::client
