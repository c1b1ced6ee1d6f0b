#include "client/schemes/release_neighbours.h"

#include "absl/strings/str_cat.h"
#include "common/base/exactly.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {

using Protects = MechanismTraits::Protects;

std::string NeighboursOfRelease(const MechanismTraits& traits, double radius) {
  if (traits.protects == Protects::kValue) {
    return "the target, feature and class, replaced by any other target";
  }
  return absl::StrCat("the target's features, scaled to length 1, replaced by any others at most ",
                      Exactly(radius), " away; the class is not hidden");
}

absl::Status CheckRadius(double radius, const MechanismTraits& traits) {
  PM_RETURN_IF_ERROR(CheckRadiusGiven(traits, radius));
  if (traits.protects == Protects::kValue) return absl::OkStatus();
  PM_RETURN_IF_ERROR(CheckFinitePositive("radius", radius));
  if (radius <= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("radius must be at most 2, the diameter of the unit sphere that features lie "
                   "on, but is ",
                   radius));
}

}  // namespace privatemail::client
