// What the items that come back for cells are compared with.
#ifndef PRIVATEMAIL_CELL_TARGETS_H_
#define PRIVATEMAIL_CELL_TARGETS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "privatemail/cell_answer.h"
#include "privatemail/target_placer.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// Makes targets of features: their unit rows, or where the code is none their place in the
// coordinates of the server's embedding (target_placer.h). Lives on the client; immutable and
// thread-safe.
class CellTargets {
 public:
  // anchors: what GetAnchors returned, looked at where the code is none: for anchors that do not
  // belong to the parameters the errors of JoinAnchors and CheckAnchors, for coordinates those of
  // JoinCoordinates, and those of TargetPlacer. own_anchors: as OwnUnitAnchors takes them, with its
  // errors.
  static absl::StatusOr<CellTargets> Create(
      const PublicParameters& parameters, const std::vector<v1::GetAnchorsResponse>& anchors,
      const std::optional<FloatMatrix>& own_anchors = std::nullopt);

  // features: finite, not all zero. label: with code none the target's class, told to nobody; if
  // absent, the class whose anchors' mean direction is nearest. A place usually says little but the
  // class, so that a wrong one finds the wrong items. INVALID_ARGUMENT: features, or a label that
  // is none of the collection's or of no use.
  absl::StatusOr<CellTarget> Of(const Eigen::RowVectorXf& features, int64_t k,
                                std::optional<int32_t> label = std::nullopt) const;

  // Of the anchors under the similarity that maps them to the server's coordinates: 0 perfect, 1 no
  // better than their mean; nothing where the code is not none.
  std::optional<double> relative_residual() const;

 private:
  struct Placing {
    TargetPlacer placer;
    uint64_t embedding_version = 0;
  };

  CellTargets(int64_t columns, std::optional<Placing> placing)
      : columns_(columns), placing_(std::move(placing)) {}

  int64_t columns_;                 // of features
  std::optional<Placing> placing_;  // exactly where the code is none
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CELL_TARGETS_H_
