// The privacy guarantee of a release, as a value that names its theorem.
#ifndef PRIVATEMAIL_GUARANTEE_H_
#define PRIVATEMAIL_GUARANTEE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace privatemail::client {

// (epsilon, delta)-indistinguishability: for every two neighbours x, x' and every set S of outputs,
//   Pr[M(x) in S] <= e^epsilon Pr[M(x') in S] + delta.
// With a radius it is Inference Privacy (Tian and Tandon, definition 2): neighbours are the inputs
// at most `radius` apart in `metric`; an infinite radius is local differential privacy.
struct Guarantee {
  double epsilon = 0;
  double delta = 0;
  std::string neighbours;             // the neighbour relation, in words
  std::optional<double> radius = {};  // Inference Privacy only, in units of `metric`
  std::string metric = {};            // "l2"; empty without a radius
  bool proven = false;                // false: follows a printed formula without a proof
  std::string source;                 // theorem or section
  // Set: also mu-Gaussian DP (Dong, Roth, Su 2022), telling neighbours apart is at least as hard as
  // telling N(0, 1) from N(mu, 1). Composes without loss.
  std::optional<double> gaussian_mu = {};

  bool operator==(const Guarantee&) const = default;
};

// INVALID_ARGUMENT naming the field, unless
// - epsilon is finite and not negative, delta in [0, 1);
// - radius is positive, and radius and metric come together;
// - gaussian_mu is finite and not negative;
// - source is not empty.
absl::Status Validate(const Guarantee& guarantee);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_GUARANTEE_H_
