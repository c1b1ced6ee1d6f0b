// Retrieval quality of queries for cells, as a server measures it on its own gallery.
#ifndef PRIVATEMAIL_COMMON_CELLS_CELL_QUALITY_H_
#define PRIVATEMAIL_COMMON_CELLS_CELL_QUALITY_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace privatemail {

// Matches of a measured query: those of the returned items that are nearest to it by their codes.
inline constexpr int64_t kQualityMatches = 8;
// Largest measured number of returned items.
inline constexpr int64_t kMaxQualityItems = 1 << 14;
// With fewer sampled queries nothing is published.
inline constexpr int64_t kMinQualityQueries = 1000;

// Rounded, as it is published.
struct MeasuredMean {
  double value = 0;           // in [0, 1], to hundredths
  double standard_error = 0;  // up to thousandths
};

// Means over queries.
struct MeasuredQuality {
  MeasuredMean fidelity;  // share of a query's kQualityMatches nearest items among its matches
  MeasuredMean recall;    // of queries one of whose matches has their class
};

// One mean for each list epsilon and number of items: epsilon e and number m are at e items + m.
struct PartitionQuality {
  std::vector<MeasuredQuality> own;    // the requested cell is the query's own
  std::vector<MeasuredQuality> other;  // another one; mean over the others
};

// The quality of a gallery's cells, for queries that request one cell. Searchers may have it if
// PublicParameters::publish_quality.
struct CellQuality {
  int64_t queries = 0;           // sampled items
  std::vector<int64_t> items;    // numbers of returned items, ascending, at most kMaxQualityItems
  std::vector<double> epsilons;  // of lists (ListEpsilons), ascending
  std::vector<PartitionQuality> partitions;
};

// INVALID_ARGUMENT naming the field:
// - fewer than kMinQualityQueries queries
// - fewer than two numbers of items or epsilons, or one that is not positive, does not ascend or is
//   too large
// - a number of partitions other than `partitions`, or of means other than epsilons x items
// - a mean or error outside [0, 1]
absl::Status Validate(const CellQuality& quality, size_t partitions);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_CELL_QUALITY_H_
