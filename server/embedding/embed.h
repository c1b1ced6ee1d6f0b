// From a gallery to its coordinates.
#ifndef PRIVATEMAIL_SERVER_EMBEDDING_EMBED_H_
#define PRIVATEMAIL_SERVER_EMBEDDING_EMBED_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
#include "common/numerics/smlq.h"
#include "common/protocol/public_parameters.h"
#include "server/store/types.h"

namespace privatemail {

// n x k draws of N(0, stddev^2), the same for the same fingerprint on every run: mt19937_64 seeded
// with the fingerprint, Box-Muller over 53-bit uniforms, row after row. The server's start of the
// iteration hides nothing and protects nobody: it is a public value and no noise, which is why an
// ordinary generator may make it. Equal data therefore get equal coordinates.
Matrix DeterministicStart(absl::string_view fingerprint, Eigen::Index n, Eigen::Index k,
                          double stddev);

// Embeds gallery and anchors together (PRIVACY.md section 1 step 5): rows are the gallery in its
// order, then the anchors in the published order, each scaled to length 1; settings.steps
// iterations from DeterministicStart, without noise. The result takes ids, labels, payloads and
// (as items_version) the version over from the gallery; its own version is still 0. Pure, so any
// number may run at once.
//
// `observer` is called after each step; a status of its own that is not OK stops the work and is
// returned. FAILED_PRECONDITION: the gallery is empty, settings so extreme that the iterate
// vanishes or overflows, or anchors on whose coordinates no release could be aligned.
// INVALID_ARGUMENT: a row that is not unit scalable. O(T n^2 (d + k)) time for n items and anchors
// together, and O(n d) memory.
absl::StatusOr<Embedding> Embed(const PublicParameters& parameters, const Anchors& anchors,
                                Gallery gallery, const StepObserver& observer);

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_EMBEDDING_EMBED_H_
