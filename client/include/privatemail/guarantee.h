// What a release promises, as a value that carries its source.
#ifndef PRIVATEMAIL_GUARANTEE_H_
#define PRIVATEMAIL_GUARANTEE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace privatemail::client {

// For every two neighbours x, x' and every set S of outputs: Pr[M(x) in S] <= e^epsilon
// Pr[M(x') in S] + delta. With a radius it is Inference Privacy (Tian and Tandon, definition 2):
// neighbours are the inputs at most `radius` apart in `metric`, and infinity is local differential
// privacy. How guarantees combine: composition.h.
struct Guarantee {
  double epsilon = 0;
  double delta = 0;
  std::string neighbours;                  // which two inputs are hard to tell apart
  std::optional<double> radius = {};       // Inference Privacy only, in units of `metric`
  std::string metric = {};                 // "l2"; empty where there is no radius
  bool proven = false;                     // false: follows a printed formula without a proof
  std::string source;                      // theorem or section that says so
  std::optional<double> gaussian_mu = {};  // also: neighbours are as hard to tell apart as
                                           // N(0, 1) and N(mu, 1), which composes without loss

  bool operator==(const Guarantee&) const = default;
};

// INVALID_ARGUMENT naming the field unless epsilon is finite and not negative, delta lies in
// [0, 1), a radius is positive and comes with a metric (and a metric with a radius), gaussian_mu is
// finite and not negative, and source is not empty.
absl::Status Validate(const Guarantee& guarantee);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_GUARANTEE_H_
