// The noise mechanisms by name, and their traits.
#ifndef PRIVATEMAIL_MECHANISM_KIND_H_
#define PRIVATEMAIL_MECHANISM_KIND_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace privatemail::client {

// `Published` kinds implement a formula as its paper prints it and claim no proven guarantee.
// client/privacy/README.md has the table of theorems.
enum class MechanismKind {
  kGaussian,  // analytic calibration: the default everywhere
  kPublishedGaussian,
  kLaplace,
  kPublishedLaplace,
  kBoundedGaussian,
  kPublishedBoundedGaussian,
  kLapOutput,  // Inference Privacy from here on
  kGaussOutput,
  kPublishedGaussOutput,
  kGaussInput,
  kPublishedGaussInput,
};

struct MechanismTraits {
  // Noise distribution. A Gaussian needs delta > 0 and an L2 sensitivity, a Laplace an L1
  // sensitivity, a bounded Gaussian an L2 sensitivity and a box.
  enum class Law { kGaussian, kLaplace, kBoundedGaussian };
  // Neighbour relation of the guarantee.
  enum class Protects {
    kValue,   // any two values at most the sensitivity apart
    kOutput,  // any two inputs in a ball, by a Lipschitz constant of the released function
    kInput,   // any two inputs in a ball, with the noise on the input itself
  };

  MechanismKind kind;
  const char* name;
  Law law;
  Protects protects;
  bool published;
  const char* source;  // the theorem or section that its guarantee names

  bool TakesDelta() const { return law == Law::kGaussian; }
};

absl::Span<const MechanismTraits> AllMechanisms();
const MechanismTraits& TraitsOf(MechanismKind kind);

// INVALID_ARGUMENT: an Inference Privacy mechanism without a radius, or another mechanism
// with one.
absl::Status CheckRadiusGiven(const MechanismTraits& traits, bool given);

// "gaussian", "published-gaussian", ...; INVALID_ARGUMENT listing all for another name.
absl::StatusOr<MechanismKind> MechanismFromName(absl::string_view name);
// Separated by commas, for messages and --help.
std::string MechanismNames();

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_MECHANISM_KIND_H_
