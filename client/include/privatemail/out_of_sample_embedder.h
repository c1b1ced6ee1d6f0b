// Out-of-sample extension of a server's embedding: the coordinates of a target, given the anchors'.
#ifndef PRIVATEMAIL_OUT_OF_SAMPLE_EMBEDDER_H_
#define PRIVATEMAIL_OUT_OF_SAMPLE_EMBEDDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/client_limits.h"
#include "privatemail/expected_alignment.h"

namespace privatemail::client {

// Embeds the anchors locally and noise-free by the collection's settings, aligns them to the
// server's coordinates by the best similarity, and embeds a target as one more row that moves no
// anchor: errors do not depend on the target. Held by the client; sees targets only while Embed and
// GuessLabel run. Immutable, thread-safe.
//
//   symbol | meaning         | Create: O(T n^2 d) time, 8 T n k bytes
//   n, d   | unit anchors    | Embed:  O(n (d + T k)) time
//   T, k   | settings.steps, settings.embedding_dim
class OutOfSampleEmbedder {
 public:
  // unit_anchors: n x d, in the published order, in the feature space of targets; labels: n;
  // server_anchors: n x k, finite.
  // INVALID_ARGUMENT: shapes differ, a label is none of the collection's, or a class has no anchor.
  // FAILED_PRECONDITION: the iterate vanishes or overflows, or the anchors cannot be aligned.
  // RESOURCE_EXHAUSTED: more than a gigabyte.
  // DEADLINE_EXCEEDED: it takes longer than limits.max_computing.
  static absl::StatusOr<OutOfSampleEmbedder> Create(
      const PublicParameters& parameters, const Matrix& unit_anchors,
      const std::vector<int32_t>& labels, const Matrix& server_anchors,
      const ClientLimits& limits = ClientLimits::None());

  // Label of the class whose mean anchor direction is nearest, as JointScheme::GuessLabel.
  int32_t GuessLabel(const RowVector& unit_features) const;

  // Server coordinates (k) of a target of this class; the row starts at 0. Private.
  // Overflow gives an infinite result, not an error: the server chose the settings and would learn
  // from a failure.
  // INVALID_ARGUMENT: features of another dimension, or a label that is none of the collection's.
  absl::StatusOr<RowVector> Embed(const RowVector& unit_features, int32_t label) const;

  // Of the anchors under the similarity, with the classes' means as slots.
  const ExpectedAlignment& expected_alignment() const;
  // PairingScore of the anchors.
  double pairing_score() const;

 private:
  struct Setting;

  explicit OutOfSampleEmbedder(std::shared_ptr<const Setting> setting)
      : setting_(std::move(setting)) {}

  std::shared_ptr<const Setting> setting_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_OUT_OF_SAMPLE_EMBEDDER_H_
