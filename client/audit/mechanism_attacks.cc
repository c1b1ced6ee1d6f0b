#include "client/audit/mechanism_attacks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::client::audit {
namespace {

using Law = MechanismTraits::Law;

absl::StatusOr<float> ReleaseValue(const Mechanism& mechanism, double value, BitSource& bits) {
  PM_ASSIGN_OR_RETURN(const FloatMatrix released,
                      mechanism.Release(Matrix::Constant(1, 1, value), bits));
  return released(0, 0);
}

absl::StatusOr<double> ReleaseValueInDouble(const Mechanism& mechanism, double value,
                                            BitSource& bits) {
  PM_ASSIGN_OR_RETURN(const Matrix released,
                      mechanism.ReleaseInDouble(Matrix::Constant(1, 1, value), bits));
  return released(0, 0);
}

// An event on a single release of 0 or kDistance, by ReleaseValue or ReleaseValueInDouble.
template <typename Real>
Attack MakeValueAttack(std::string description, const std::shared_ptr<const Mechanism>& mechanism,
                       absl::StatusOr<Real> (*release)(const Mechanism&, double, BitSource&),
                       Neighbour with_distance, const MakeBits& make_bits,
                       const std::function<bool(Real)>& event) {
  return {.description = std::move(description),
          .event = [=](Neighbour neighbour, BitSource& bits) -> absl::StatusOr<bool> {
            PM_ASSIGN_OR_RETURN(
                const Real released,
                release(*mechanism, neighbour == with_distance ? kDistance : 0, bits));
            return event(released);
          },
          .make_bits = make_bits};
}

// Noise drawn as a Real moves kDistance this near to zero only if it is at least the power of two
// below kDistance: then noise and sum are multiples of the spacing of Reals at kDistance, while
// noise on zero almost never is. Exact noise is on a grid coarser than the spacing of doubles.
template <typename Real>
bool IsOffDistanceGrid(Real released) {
  constexpr auto distance = static_cast<Real>(kDistance);
  static const Real spacing = std::nextafter(distance, Real{1}) - distance;
  static const Real near = distance - std::exp2(std::floor(std::log2(distance)));
  return std::abs(released) < near && std::fmod(released, spacing) != 0;
}

// A forked child's release of 0, read through a pipe.
absl::StatusOr<float> ReleaseInChild(const Mechanism& mechanism, BitSource& bits) {
  int ends[2];
  if (::pipe(ends) != 0) return absl::UnavailableError("no pipe for the audit's child");
  const pid_t child = ::fork();
  if (child == 0) {
    const absl::StatusOr<float> released = ReleaseValue(mechanism, 0, bits);
    const bool sent = released.ok() && ::write(ends[1], &*released, sizeof(float)) ==
                                           static_cast<ssize_t>(sizeof(float));
    ::_exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  float released = 0;
  const bool got =
      child > 0 && ::read(ends[0], &released, sizeof(float)) == static_cast<ssize_t>(sizeof(float));
  ::close(ends[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  if (!got) return absl::UnavailableError("the audit's child released nothing");
  return released;
}

// Parent and child release the value and 0 from one bit source that was used before the fork. If
// they share its buffer, they share the noise, and the difference is the value.
Attack MakeForkAttack(const std::shared_ptr<const Mechanism>& mechanism,
                      const MakeBits& make_bits) {
  // Serialises forks; the other threads wait here and hold no lock of a library.
  auto alone = std::make_shared<std::mutex>();
  return {.description = "a release on either side of a fork: do they differ by the value itself?",
          // The bits that were read ahead would be shared.
          .event = [=](Neighbour neighbour, BitSource& /*read_ahead*/) -> absl::StatusOr<bool> {
            const std::lock_guard lock(*alone);
            const std::unique_ptr<BitSource> bits = make_bits();
            PM_RETURN_IF_ERROR(ReleaseValue(*mechanism, 0, *bits).status());
            PM_ASSIGN_OR_RETURN(const float child, ReleaseInChild(*mechanism, *bits));
            PM_ASSIGN_OR_RETURN(
                const float parent,
                ReleaseValue(*mechanism, neighbour == Neighbour::kOne ? kDistance : 0, *bits));
            return std::abs(double{parent} - child - kDistance) < 1e-5 * kDistance;
          },
          .max_releases = 400};
}

constexpr double kTailStddevs = 3.5;

// The threshold that distinguishes the two laws best; fixed in advance.
double BestThreshold(Law law) {
  switch (law) {
    case Law::kGaussian:
      return kDistance / 2;  // the deviation of an estimated mu is smallest here
    case Law::kLaplace:
      return kDistance;  // beyond it the ratio is e^epsilon everywhere
    case Law::kBoundedGaussian:
      // In a box as wide as the distance the loss is largest at its end, which has little mass:
      // .97 is the best trade-off.
      return .97 * kDistance;
  }
  return kDistance;
}

}  // namespace

MechanismParameters AuditParameters(MechanismKind kind, double epsilon, double delta) {
  const MechanismTraits& traits = TraitsOf(kind);
  MechanismParameters parameters{.kind = kind, .epsilon = epsilon};
  if (traits.TakesDelta()) parameters.delta = delta;
  if (traits.protects == MechanismTraits::Protects::kValue) {
    parameters.sensitivity = kDistance;
  } else {
    parameters.radius = kDistance;
  }
  if (traits.protects == MechanismTraits::Protects::kOutput) parameters.lipschitz = 1;
  if (traits.law == Law::kBoundedGaussian) parameters.box = {{0}, {kDistance}};
  return parameters;
}

Subject AttackMechanism(std::string name, std::shared_ptr<const Mechanism> mechanism,
                        double threshold, MakeBits make_bits) {
  // Gaussian noise cut here would exceed its delta by far, and pass at any likelier threshold.
  const double tail = kTailStddevs * mechanism->noise_stddev();
  return {.mechanism = std::move(name),
          .claim = mechanism->guarantee(),
          .attacks = {
              MakeValueAttack<float>(
                  absl::StrCat("values 0 and ", kDistance, ", released above ", threshold),
                  mechanism, ReleaseValue, Neighbour::kOne, make_bits,
                  [threshold](float released) { return released > threshold; }),
              MakeValueAttack<float>(absl::StrCat("values ", kDistance, " and 0, released above ",
                                                  tail, ", ", kTailStddevs, " standard deviations"),
                                     mechanism, ReleaseValue, Neighbour::kOne, make_bits,
                                     [tail](float released) { return released > tail; }),
              MakeValueAttack<float>(
                  absl::StrCat("values ", kDistance,
                               " and 0, released between two floats of the first"),
                  mechanism, ReleaseValue, Neighbour::kOther, make_bits, IsOffDistanceGrid<float>),
              MakeValueAttack<double>(
                  absl::StrCat("values ", kDistance,
                               " and 0, released in double between two doubles of the first"),
                  mechanism, ReleaseValueInDouble, Neighbour::kOther, make_bits,
                  IsOffDistanceGrid<double>),
              MakeForkAttack(mechanism, make_bits)}};
}

absl::StatusOr<Subject> AttackProductionMechanism(MechanismKind kind, double epsilon,
                                                  double delta) {
  PM_ASSIGN_OR_RETURN(
      std::shared_ptr<const Mechanism> mechanism,
      MakeMechanism(AuditParameters(kind, epsilon, delta), {.values = 1, .largest_value = 1}));
  const MechanismTraits& traits = TraitsOf(kind);
  return AttackMechanism(traits.name, std::move(mechanism), BestThreshold(traits.law),
                         MakeSecureBits);
}

}  // namespace privatemail::client::audit
