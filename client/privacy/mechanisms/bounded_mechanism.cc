#include "client/privacy/mechanisms/bounded_mechanism.h"

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/guarantee_fields.h"
#include "client/privacy/mechanisms/bounded_gaussian_calibration.h"
#include "client/privacy/mechanisms/noise_grid.h"
#include "client/privacy/sampling/exact_sampling.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

// A box in whole steps of a grid.
struct GridBox {
  NoiseGrid grid;
  std::vector<int64_t> low;
  std::vector<int64_t> high;

  std::vector<double> Widths() const {
    std::vector<double> widths;
    widths.reserve(low.size());
    for (size_t i = 0; i < low.size(); ++i) {
      widths.push_back(grid.Length(static_cast<double>(high[i] - low[i])));
    }
    return widths;
  }
};

class BoundedGaussianMechanism final : public Mechanism {
 public:
  BoundedGaussianMechanism(GridBox box, uint64_t stddev, Guarantee guarantee)
      : Mechanism(std::move(guarantee)), box_(std::move(box)), stddev_(stddev) {}

  absl::StatusOr<FloatMatrix> Release(const Matrix& values, BitSource& bits) const override {
    return ReleaseAs<FloatMatrix>(values, bits);
  }

  absl::StatusOr<Matrix> ReleaseInDouble(const Matrix& values, BitSource& bits) const override {
    return ReleaseAs<Matrix>(values, bits);
  }

  double noise_stddev() const override { return box_.grid.Length(static_cast<double>(stddev_)); }

 private:
  template <typename Released>
  absl::StatusOr<Released> ReleaseAs(const Matrix& values, BitSource& bits) const {
    if (values.size() != static_cast<Eigen::Index>(box_.low.size())) {
      return absl::InvalidArgumentError(absl::StrCat("the mechanism was made for ", box_.low.size(),
                                                     " values, but got ", values.size()));
    }
    std::vector<TruncatedCentre> centres;
    centres.reserve(box_.low.size());
    for (size_t i = 0; i < box_.low.size(); ++i) {
      // Both ends came from doubles, so the conversion back is exact.
      const int64_t centre =
          box_.grid.Round(values.data()[i], box_.grid.Length(static_cast<double>(box_.low[i])),
                          box_.grid.Length(static_cast<double>(box_.high[i])));
      centres.push_back({box_.low[i], box_.high[i], centre});
    }
    PM_ASSIGN_OR_RETURN(const std::vector<int64_t> draws,
                        SampleTruncatedGaussian(centres, stddev_, bits));
    Released released(values.rows(), values.cols());
    for (size_t i = 0; i < draws.size(); ++i) {
      released.data()[i] = box_.grid.To<typename Released::Scalar>(draws[i]);
    }
    return released;
  }

  const GridBox box_;
  const uint64_t stddev_;  // in steps
};

absl::StatusOr<GridBox> LargestGridBoxInside(const Box& box, NoiseGrid grid) {
  GridBox inside{grid, {}, {}};
  for (size_t i = 0; i < box.lower.size(); ++i) {
    const double low = std::ceil(grid.InSteps(box.lower[i]));
    const double high = std::floor(grid.InSteps(box.upper[i]));
    if (!(std::fmax(std::abs(low), std::abs(high)) <= kLargestValueInSteps) || !(low < high)) {
      return absl::FailedPreconditionError(
          absl::StrCat("no noise grid fits a box with the side [", box.lower[i], ", ", box.upper[i],
                       "]: epsilon is too small, or the sides too different"));
    }
    inside.low.push_back(static_cast<int64_t>(low));
    inside.high.push_back(static_cast<int64_t>(high));
  }
  return inside;
}

// About 2^30 steps per standard deviation.
NoiseGrid GridFor(double stddev) { return {std::ilogb(stddev) - kStepsPerWidthLog2}; }

absl::StatusOr<std::unique_ptr<const Mechanism>> MakeOnGrid(GridBox box,
                                                            CalibratedGaussian calibrated,
                                                            std::string neighbours) {
  const double steps = std::ceil(box.grid.InSteps(calibrated.stddev));
  if (!(steps <= static_cast<double>(kMaxDiscreteStddev))) {
    return absl::FailedPreconditionError(
        absl::StrCat("no noise grid fits a standard deviation of ", calibrated.stddev));
  }
  // Neighbours of the given box: clipping to the grid's box inside it moves values no further
  // apart.
  calibrated.guarantee.neighbours = std::move(neighbours);
  return std::make_unique<const BoundedGaussianMechanism>(
      std::move(box), static_cast<uint64_t>(steps), std::move(calibrated.guarantee));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Mechanism>> MakeBoundedGaussianMechanism(const Box& box,
                                                                              double l2_sensitivity,
                                                                              double epsilon) {
  PM_ASSIGN_OR_RETURN(const std::vector<double> widths, BoxWidths(box.lower, box.upper));
  PM_ASSIGN_OR_RETURN(const CalibratedGaussian continuous,
                      CalibrateBoundedGaussian(widths, l2_sensitivity, epsilon));
  PM_ASSIGN_OR_RETURN(GridBox inside, LargestGridBoxInside(box, GridFor(continuous.stddev)));
  PM_ASSIGN_OR_RETURN(CalibratedGaussian calibrated,
                      CalibrateBoundedGaussianOnGrid(inside.Widths(), l2_sensitivity, epsilon,
                                                     inside.grid.Length(1)));
  return MakeOnGrid(std::move(inside), std::move(calibrated),
                    NeighboursInBox(box.lower, box.upper, l2_sensitivity));
}

absl::StatusOr<std::unique_ptr<const Mechanism>> MakePublishedBoundedGaussianMechanism(
    const Box& box, double l2_sensitivity, double epsilon) {
  PM_ASSIGN_OR_RETURN(const std::vector<double> widths, BoxWidths(box.lower, box.upper));
  PM_ASSIGN_OR_RETURN(CalibratedGaussian calibrated,
                      CalibratePublishedBoundedGaussian(widths, l2_sensitivity, epsilon));
  PM_ASSIGN_OR_RETURN(GridBox inside, LargestGridBoxInside(box, GridFor(calibrated.stddev)));
  return MakeOnGrid(std::move(inside), std::move(calibrated),
                    NeighboursInBox(box.lower, box.upper, l2_sensitivity));
}

}  // namespace privatemail::client
