// A gallery embedded with its anchors, searched as a server searches.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EMBEDDED_GALLERY_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EMBEDDED_GALLERY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/label_graph.h"
#include "common/embedding/smlq.h"
#include "common/index/exact_index.h"

namespace privatemail::client {

// Coordinates of the gallery's rows and the anchors'. Immutable and thread-safe.
struct EmbeddedGallery {
  ExactIndex items;
  Matrix anchors;
  double objective = 0;
};

struct SlotAnswer {
  std::vector<int64_t> rows;     // the k nearest of the gallery
  double relative_residual = 0;  // of the anchors under the alignment
};

// The k items nearest to slot `slot` of a release ((slots + anchors) x dim): post-processing if
// asked for, Kabsch-Umeyama on the anchor rows, exact search. FAILED_PRECONDITION: the release
// cannot be aligned, or vanishes or overflows.
absl::StatusOr<SlotAnswer> SearchSlot(const EmbeddedGallery& gallery, const Matrix& release,
                                      const LabelGraph& label_graph,
                                      const EmbeddingSettings& settings, bool post_process,
                                      int64_t slot, int64_t k);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EMBEDDED_GALLERY_H_
