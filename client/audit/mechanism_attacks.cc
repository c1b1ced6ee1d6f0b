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
using MakeBits = std::function<std::unique_ptr<BitSource>()>;

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
Attack OnOneRelease(std::string what, const std::shared_ptr<const Mechanism>& mechanism,
                    absl::StatusOr<Real> (*release)(const Mechanism&, double, BitSource&),
                    Neighbour points_to_distance, const MakeBits& make_bits,
                    const std::function<bool(Real)>& event) {
  return {.what = std::move(what),
          .hits = [=](Neighbour neighbour, int64_t releases) -> absl::StatusOr<int64_t> {
            const double value = neighbour == points_to_distance ? kDistance : 0;
            const std::unique_ptr<BitSource> bits = make_bits();
            int64_t hits = 0;
            for (int64_t i = 0; i < releases; ++i) {
              PM_ASSIGN_OR_RETURN(const Real released, release(*mechanism, value, *bits));
              hits += event(released) ? 1 : 0;
            }
            return hits;
          }};
}

// Noise that is drawn as a Real takes kDistance this near to zero only if it is at least the power
// of two below kDistance. Then both are multiples of the spacing of Reals at kDistance, and so is
// their sum, while as little noise on zero lies in between almost always. Exact noise is on a grid
// that is coarser than the spacing of doubles, whatever it is added to.
template <typename Real>
bool LiesBetweenNumbersOfTheDistance(Real released) {
  constexpr auto distance = static_cast<Real>(kDistance);
  static const Real spacing = std::nextafter(distance, Real{1}) - distance;
  static const Real near = distance - std::exp2(std::floor(std::log2(distance)));
  return std::abs(released) < near && std::fmod(released, spacing) != 0;
}

// What a child of a fork releases for 0, read through a pipe.
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

// Parent and child release the value and 0 out of one source of bits that was in use before the
// fork. If they share a buffer, they share the noise, and the difference is the value.
Attack AcrossAFork(const std::shared_ptr<const Mechanism>& mechanism, const MakeBits& make_bits) {
  // One fork at a time, while the other threads wait here and hold no lock of a library's.
  auto alone = std::make_shared<std::mutex>();
  return {.what = "a release on either side of a fork: do they differ by the value itself?",
          .hits = [=](Neighbour neighbour, int64_t releases) -> absl::StatusOr<int64_t> {
            const std::lock_guard lock(*alone);
            const double value = neighbour == Neighbour::kOne ? kDistance : 0;
            int64_t hits = 0;
            for (int64_t i = 0; i < releases; ++i) {
              const std::unique_ptr<BitSource> bits = make_bits();
              PM_RETURN_IF_ERROR(ReleaseValue(*mechanism, 0, *bits).status());
              PM_ASSIGN_OR_RETURN(const float child, ReleaseInChild(*mechanism, *bits));
              PM_ASSIGN_OR_RETURN(const float parent, ReleaseValue(*mechanism, value, *bits));
              hits += std::abs(double{parent} - child - kDistance) < 1e-5 * kDistance ? 1 : 0;
            }
            return hits;
          },
          .most_releases = 400};
}

// Where the two laws are told apart best, known before anything is released.
double ThresholdOf(Law law) {
  switch (law) {
    case Law::kGaussian:
      return kDistance / 2;  // the deviation of an estimated mu is smallest here
    case Law::kLaplace:
      return kDistance;  // beyond it the ratio is e^epsilon everywhere
    case Law::kBoundedGaussian:
      // In a box as wide as the distance all that is spent shows at the end, and a small part of
      // the law lies there: above .97 an attack finds the most.
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
    parameters.ball.radius = kDistance;
  }
  if (traits.protects == MechanismTraits::Protects::kOutput) parameters.lipschitz = 1;
  if (traits.law == Law::kBoundedGaussian) parameters.box = {{0}, {kDistance}};
  return parameters;
}

Subject AttackMechanism(std::string name, std::shared_ptr<const Mechanism> mechanism,
                        double threshold, MakeBits make_bits) {
  return {.mechanism = std::move(name),
          .claim = mechanism->guarantee(),
          .attacks = {
              OnOneRelease<float>(
                  absl::StrCat("values 0 and ", kDistance, ", released above ", threshold),
                  mechanism, ReleaseValue, Neighbour::kOne, make_bits,
                  [threshold](float released) { return released > threshold; }),
              OnOneRelease<float>(absl::StrCat("values ", kDistance,
                                               " and 0, released between two floats of the first"),
                                  mechanism, ReleaseValue, Neighbour::kOther, make_bits,
                                  LiesBetweenNumbersOfTheDistance<float>),
              OnOneRelease<double>(
                  absl::StrCat("values ", kDistance,
                               " and 0, released in double between two doubles of the first"),
                  mechanism, ReleaseValueInDouble, Neighbour::kOther, make_bits,
                  LiesBetweenNumbersOfTheDistance<double>),
              AcrossAFork(mechanism, make_bits)}};
}

absl::StatusOr<Subject> AttackProductionMechanism(MechanismKind kind, double epsilon,
                                                  double delta) {
  PM_ASSIGN_OR_RETURN(
      std::shared_ptr<const Mechanism> mechanism,
      MakeMechanism(AuditParameters(kind, epsilon, delta), {.values = 1, .largest_value = 1}));
  const MechanismTraits& traits = TraitsOf(kind);
  return AttackMechanism(traits.name, std::move(mechanism), ThresholdOf(traits.law),
                         [] { return std::make_unique<SecureBits>(); });
}

}  // namespace privatemail::client::audit
