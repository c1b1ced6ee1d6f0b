// Measurement of what queries for cells find in a gallery.
#ifndef PRIVATEMAIL_SERVER_CELLS_QUALITY_MEASUREMENT_H_
#define PRIVATEMAIL_SERVER_CELLS_QUALITY_MEASUREMENT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/cells/cell_quality.h"
#include "common/embedding/public_parameters.h"
#include "common/numerics/row_source.h"
#include "server/cells/cell_image.h"

namespace privatemail::server {

// A random sample of a gallery's known queries, at most 5,000.
struct QualitySample {
  std::vector<int64_t> rows;                  // of the gallery
  FloatMatrix features;                       // their unit rows
  std::vector<std::vector<int64_t>> nearest;  // their nearest other rows, Demand::kRanks of them
};

// items: unit rows of the gallery. nearest: of each of `queries`, ascending rows. Deterministic.
// Errors of RowSource.
absl::StatusOr<QualitySample> SampleQueries(const RowSource& items,
                                            const std::vector<Eigen::Index>& queries,
                                            const std::vector<std::vector<int64_t>>& nearest);

// The sampled queries of a cell index with these contents request their own cell and another one,
// drawn at random, of each partition.
// - Leave-one-out: no item votes for a list that it is scored on. Its row and its own votes are
//   taken out of each of its lists; the votes that others cast for it lapse. So a list keeps all
//   but one of the voters that a list for a searcher has.
// - Deterministic, on one core. `stopped` is polled many times a second.
// - nullopt: fewer than kMinQualityQueries, or stopped.
// - report: of the share that is done, for each cell; may be null.
// - K cells, P partitions, lists to length m (half the gallery, at most kMaxQualityItems) for each
//   of 19 epsilons: O(P K 19 n) time for the lists and, for each query, O(2 P 19 m d).
std::optional<CellQuality> MeasureQuality(const PublicParameters& parameters,
                                          const CellContents& contents, const QualitySample& sample,
                                          absl::FunctionRef<bool()> stopped,
                                          const std::function<void(double)>& report = nullptr);

// Approximate bytes that it takes for a gallery of so many items.
int64_t MemoryToMeasure(const PublicParameters& parameters, int64_t items);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CELLS_QUALITY_MEASUREMENT_H_
