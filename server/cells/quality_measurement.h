// Measurement of what queries for cells find in a gallery.
#ifndef PRIVATEMAIL_SERVER_CELLS_QUALITY_MEASUREMENT_H_
#define PRIVATEMAIL_SERVER_CELLS_QUALITY_MEASUREMENT_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/matrix.h"
#include "common/cells/cell_lists.h"
#include "common/cells/cell_quality.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::server {

// A gallery of n items with a code of features, as a cell index answers for it.
struct MeasuredGallery {
  const PublicParameters& parameters;
  const FloatMatrix& features;         // n unit rows
  const std::vector<int32_t>& labels;  // n
  absl::string_view codes;             // n
  // The known queries of the demand: ascending rows, and their nearest other rows.
  const std::vector<Eigen::Index>& queries;
  const std::vector<std::vector<int64_t>>& nearest;
  absl::Span<const PartitionDemand> partitions;
};

// Sampled items query their own cell and up to three others of each partition. So that no item
// votes for the list it is scored on, each query's list is that of the gallery without it: it is no
// item, and its share of the demand is taken away (leave-one-out, which keeps all but one of the
// votes that a list for a searcher has). nullopt: fewer than kMinQualityQueries, or stopped.
//
// One core, for at most 4,000 queries, lists to length m (half the gallery, at most 16,384) and K
// cells: O(K n) for the lists of each epsilon, O(d m) for each query.
std::optional<CellQuality> MeasureQuality(const MeasuredGallery& gallery,
                                          const std::atomic<bool>& stopped);

// Approximate bytes that it takes for a gallery of so many items.
int64_t MemoryToMeasure(const PublicParameters& parameters, int64_t items);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CELLS_QUALITY_MEASUREMENT_H_
