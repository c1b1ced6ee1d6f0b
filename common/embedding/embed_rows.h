// The noiseless SMLQ embedding of labelled rows.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_EMBED_ROWS_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_EMBED_ROWS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/plan_affinity.h"
#include "common/embedding/public_parameters.h"
#include "common/embedding/smlq.h"
#include "common/numerics/point_source.h"
#include "common/numerics/row_share.h"

namespace privatemail {

// Allowed relative error of an affinity in the server's embedding: it moves no neighbour and allows
// linear time for a million rows. Small collections are exact.
inline constexpr double kEmbeddingTolerance = 1e-6;

struct EmbeddedRows {
  Matrix coordinates;    // n x embedding_dim
  double objective = 0;  // Tr(Z' L_X Z) - alpha Tr(Z' L_Y Z)
  AffinityPlan plan;     // the operator of the feature graph and its error
};

// The plan for `rows` rows within kEmbeddingTolerance.
AffinityPlan PlanEmbedding(const PublicParameters& parameters, Eigen::Index rows);

// FAILED_PRECONDITION: processes cannot share the rows, since the plan is not factored.
absl::Status CheckShareable(const AffinityPlan& plan);

// The start of an embedding without noise, for the graph's local rows (n x embedding_dim):
// DeterministicStart from the fingerprint, or the class code, as settings.start says.
Matrix PublicStart(const PublicParameters& parameters, const LabelGraph& label_graph);

// Embeds rows of length 1 (PRIVACY.md section 1 step 5) by settings.steps iterations from
// PublicStart, without noise. Pure and thread-safe. The same bits for rows in memory or in a
// file, in any blocks and any number of processes.
// - labels: one a row
// - feature_graph: the operator of PlanEmbedding for these rows; null: created here
// - observer: as in SmlqIterate, and called with all steps done while the objective is computed.
//   Its error stops the work within moments and is returned, as are errors of reading the rows
// - FAILED_PRECONDITION: the settings make the iterate vanish or overflow
//
//   n rows, d coordinates, k = embedding_dim, T steps   time               memory beside the rows
//   factored (PlanAffinity finds a polynomial)          O(T n d^2 k)       2 n k + n doubles
//   otherwise                                           O(T n^2 (d + k))   n k doubles a core more
absl::StatusOr<EmbeddedRows> EmbedRows(const PublicParameters& parameters,
                                       std::shared_ptr<const PointSource> rows,
                                       const std::vector<int32_t>& labels,
                                       const StepObserver& observer,
                                       const AffinityOperator* feature_graph = nullptr);

// EmbedRows in each of the processes that share the rows. `rows`, `labels` and the coordinates are
// local rows; rows_of_label and the objective cover all rows. Also returns the errors of
// CheckShareable and of the share.
absl::StatusOr<EmbeddedRows> EmbedShare(const PublicParameters& parameters,
                                        const std::shared_ptr<const RowShare>& share,
                                        std::shared_ptr<const PointSource> rows,
                                        const std::vector<int32_t>& labels,
                                        const std::map<int32_t, int64_t>& rows_of_label,
                                        const StepObserver& observer);

// FAILED_PRECONDITION: releases cannot be aligned with these coordinates of the anchors.
absl::Status CheckAnchorCoordinates(const Matrix& anchors);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_EMBED_ROWS_H_
