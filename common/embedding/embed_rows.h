// The noiseless SMLQ embedding of labelled rows.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_EMBED_ROWS_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_EMBED_ROWS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/plan_affinity.h"
#include "common/embedding/public_parameters.h"
#include "common/embedding/smlq.h"
#include "common/numerics/point_source.h"

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

// The start of an embedding without noise, for the graph's rows (n x embedding_dim):
// DeterministicStart from the fingerprint, or the class code, as settings.start says.
Matrix PublicStart(const PublicParameters& parameters, const LabelGraph& label_graph);

// Embeds rows of length 1 (PRIVACY.md section 1 step 5) by settings.steps iterations from
// PublicStart, without noise. Pure and thread-safe. The same bits for rows in memory or in a
// file, in any blocks.
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

// FAILED_PRECONDITION: releases cannot be aligned with these coordinates of the anchors.
absl::Status CheckAnchorCoordinates(const Matrix& anchors);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_EMBED_ROWS_H_
