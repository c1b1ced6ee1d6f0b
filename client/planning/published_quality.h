// The quality of a collection's cells as its server publishes it, and whether they are ready.
#ifndef PRIVATEMAIL_CLIENT_PLANNING_PUBLISHED_QUALITY_H_
#define PRIVATEMAIL_CLIENT_PLANNING_PUBLISHED_QUALITY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cells/cell_quality.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// "none", "not_built", "preparing", "ready" or "failed".
std::string CellsStatusName(const v1::GetCollectionResponse& collection);

// UNAVAILABLE: the cells are being prepared. FAILED_PRECONDITION: that failed.
absl::Status CheckCellsReady(const v1::GetCollectionResponse& collection);

// The published quality, from a response with it.
// FAILED_PRECONDITION, UNAVAILABLE: why there is none. DATA_LOSS: it is malformed.
absl::StatusOr<CellQuality> QualityOf(const v1::GetCollectionResponse& collection);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PLANNING_PUBLISHED_QUALITY_H_
