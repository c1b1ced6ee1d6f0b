// A start of the iteration that everyone can draw again.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_DETERMINISTIC_START_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_DETERMINISTIC_START_H_

#include "absl/strings/string_view.h"
#include "common/base/matrix.h"

namespace privatemail {

// n x k draws of N(0, stddev^2), the same for the same fingerprint on every run: mt19937_64 seeded
// with the fingerprint, Box-Muller over 53-bit uniforms, row after row from row `first` on. A start
// of public rows alone, the server's or the anchors', hides nothing and protects nobody: it is a
// public value and no noise, which is why an ordinary generator may make it. Equal data therefore
// get equal coordinates.
Matrix DeterministicStart(absl::string_view fingerprint, Eigen::Index n, Eigen::Index k,
                          double stddev, Eigen::Index first = 0);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_DETERMINISTIC_START_H_
