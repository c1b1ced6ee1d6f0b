// From a gallery to its coordinates.
#ifndef PRIVATEMAIL_SERVER_ENGINE_EMBED_H_
#define PRIVATEMAIL_SERVER_ENGINE_EMBED_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/deterministic_start.h"
#include "common/embedding/plan_affinity.h"
#include "common/numerics/point_source.h"
#include "common/numerics/row_share.h"
#include "common/embedding/smlq.h"
#include "common/embedding/public_parameters.h"
#include "server/store/types.h"

namespace privatemail::server {

// Relative error of an affinity that the server allows itself: a part in a million moves no
// neighbour, and lets a million rows be embedded in linear time. What is small is exact anyway.
inline constexpr double kEmbeddingTolerance = 1e-6;

struct EmbeddedRows {
  Matrix coordinates;    // n x embedding_dim
  double objective = 0;  // Tr(Z' L_X Z) - alpha Tr(Z' L_Y Z)
  AffinityPlan plan;     // how the feature graph was multiplied, how exactly, and why so
};

// How rows in this number are embedded: within kEmbeddingTolerance.
AffinityPlan PlanEmbedding(const PublicParameters& parameters, Eigen::Index rows);
// OK when processes can share the rows; FAILED_PRECONDITION: no polynomial was found, so that every
// row needs every other.
absl::Status CheckShareable(const AffinityPlan& plan);

// Embeds rows of length 1 (PRIVACY.md section 1 step 5), wherever they are kept: settings.steps
// iterations from DeterministicStart, without noise. labels: one a row. feature_graph: that of the
// plan for these rows, where it is there already; null: it is made. Rows in memory, in a file,
// in another number of blocks or in several processes give the same bits. Pure, so any number may
// run at once.
//
// `observer` as in SmlqIterate; it is also called, with all steps done, while the objective is
// computed. A status of its own that is not OK stops the work within moments and is returned, as is
// what the rows could not be read for. FAILED_PRECONDITION: settings so extreme that the iterate
// vanishes or overflows. O(T n d^2 k) time for n rows where PlanAffinity finds a polynomial within
// kEmbeddingTolerance, O(T n^2 (d + k)) otherwise; 2 n k + n doubles of memory beside the rows and
// the result in the first case, n k doubles a core more in the second.
absl::StatusOr<EmbeddedRows> EmbedRows(const PublicParameters& parameters,
                                       std::shared_ptr<const PointSource> rows,
                                       const std::vector<int32_t>& labels,
                                       const StepObserver& observer,
                                       const AffinityOperator* feature_graph = nullptr);

// The same for the rows of `share`, in each of the processes that share them: `rows`, `labels` and
// the coordinates are of the rows here, rows_of_label counts all, the objective is of all.
// Errors of CheckShareable and of the share, too.
absl::StatusOr<EmbeddedRows> EmbedShare(const PublicParameters& parameters,
                                        const std::shared_ptr<const RowShare>& share,
                                        std::shared_ptr<const PointSource> rows,
                                        const std::vector<int32_t>& labels,
                                        const std::map<int32_t, int64_t>& rows_of_label,
                                        const StepObserver& observer);

// Embeds gallery and anchors together: rows are the gallery in its order, then the anchors in the
// published order, each scaled to length 1. The result takes ids, labels, payloads and (as
// items_version) the version over from the gallery; its own version is still 0. Statuses of
// EmbedRows. FAILED_PRECONDITION also: the gallery is empty, or anchors on whose coordinates no
// release could be aligned. INVALID_ARGUMENT: a row that is not unit scalable.
absl::StatusOr<Embedding> Embed(const PublicParameters& parameters, const Anchors& anchors,
                                Gallery gallery, const StepObserver& observer);

// The same for features that are elsewhere: `gallery` has none, `points` are its rows and then
// the anchors', of length 1. feature_graph: as for EmbedRows.
absl::StatusOr<Embedding> Embed(const PublicParameters& parameters, const Anchors& anchors,
                                Gallery gallery, std::shared_ptr<const PointSource> points,
                                const StepObserver& observer,
                                const AffinityOperator* feature_graph = nullptr);

// OK when releases can be aligned with these coordinates of the anchors; otherwise
// FAILED_PRECONDITION.
absl::Status CheckAnchorCoordinates(const Matrix& anchors);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_EMBED_H_
