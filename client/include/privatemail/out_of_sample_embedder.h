// Where targets lie in the coordinates of a server's embedding, told from where anchors do.
#ifndef PRIVATEMAIL_TARGET_PLACER_H_
#define PRIVATEMAIL_TARGET_PLACER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client {

// The anchors, embedded on this machine by the collection's settings and without noise, and the
// similarity that best maps them to where the server has them. A target is embedded as one more row
// that moves no anchor: then what can fail fails for every target alike, and one takes O(n d).
// All of it stays on the client. Immutable and thread-safe.
class OutOfSampleEmbedder {
 public:
  // unit_anchors: n x d, in the published order, in whatever space targets are given; labels: n;
  // server_anchors: n x embedding_dim, finite. O(T n^2 d) time at most, 8 T n embedding_dim bytes.
  // INVALID_ARGUMENT: shapes differ, a label is none of the collection's, or a class has no anchor.
  // FAILED_PRECONDITION: settings so extreme that the iterate vanishes or overflows, or anchors
  // that cannot be aligned. RESOURCE_EXHAUSTED: more than a gigabyte.
  static absl::StatusOr<OutOfSampleEmbedder> Create(const PublicParameters& parameters,
                                             const Matrix& unit_anchors,
                                             const std::vector<int32_t>& labels,
                                             const Matrix& server_anchors);

  // Label of the class whose anchors' mean direction is nearest, as the joint scheme guesses it.
  int32_t GuessLabel(const RowVector& unit_features) const;

  // Where a target of this class is in the server's coordinates: embedding_dim values. Its own
  // start is 0, so that anchors and class alone say it. Where settings are so extreme that it
  // overflows, it lies at infinity, as far from every item: to fail there would tell the server,
  // who chose them, something about the target. Private. INVALID_ARGUMENT: another number of
  // features than the anchors', or a label that is none of the collection's.
  absl::StatusOr<RowVector> Place(const RowVector& unit_features, int32_t label) const;

  // Of the anchors under the similarity: 0 perfect, 1 no better than their mean.
  double relative_residual() const;

 private:
  struct Setting;

  explicit OutOfSampleEmbedder(std::shared_ptr<const Setting> setting) : setting_(std::move(setting)) {}

  std::shared_ptr<const Setting> setting_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TARGET_PLACER_H_
