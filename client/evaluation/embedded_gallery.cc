#include "client/evaluation/embedded_gallery.h"

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/embedding/alignment.h"

namespace privatemail::client {

absl::StatusOr<SlotAnswer> SearchSlot(const EmbeddedGallery& gallery, const Matrix& release,
                                      const LabelGraph& label_graph,
                                      const EmbeddingSettings& settings, bool post_process,
                                      int64_t slot, int64_t k) {
  Matrix rows = release;
  if (post_process) {
    PM_ASSIGN_OR_RETURN(rows, PostProcess(release, label_graph, settings));
  }
  const Matrix anchors = rows.bottomRows(gallery.anchors.rows());
  PM_ASSIGN_OR_RETURN(const Similarity alignment,
                      KabschUmeyama(anchors, gallery.anchors, /*with_scale=*/true));
  // A server refuses a release of which any slot overflows.
  const Matrix slots = alignment.Apply(rows.topRows(rows.rows() - anchors.rows()));
  if (!slots.allFinite()) return absl::FailedPreconditionError("slots overflow");
  SlotAnswer answer;
  answer.relative_residual = RelativeResidual(alignment, anchors, gallery.anchors);
  for (const Neighbor& neighbor : gallery.items.Search(slots.row(slot), k)[0]) {
    answer.rows.push_back(neighbor.row);
  }
  return answer;
}

}  // namespace privatemail::client
