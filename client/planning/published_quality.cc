#include "client/planning/published_quality.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/embedding/offered_schemes.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client {

std::string CellsStatusName(const v1::GetCollectionResponse& collection) {
  const std::string name = v1::CellsStatus_Name(collection.cells_status());
  return absl::AsciiStrToLower(absl::StripPrefix(name, "CELLS_STATUS_"));
}

absl::Status CheckCellsReady(const v1::GetCollectionResponse& collection) {
  if (collection.cells_status() == v1::CELLS_STATUS_READY) return absl::OkStatus();
  if (collection.cells_status() == v1::CELLS_STATUS_FAILED) {
    return absl::FailedPreconditionError(
        absl::StrCat("the cells of collection ", collection.name(),
                     " could not be prepared: ", collection.cells()));
  }
  return absl::UnavailableError(absl::StrCat("the cells of collection ", collection.name(),
                                             " are not ready yet (", collection.cells(),
                                             "): try again later; nothing was spent"));
}

absl::StatusOr<CellQuality> QualityOf(const v1::GetCollectionResponse& c) {
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(c.parameters()));
  PM_RETURN_IF_ERROR(CheckHasAnchors(c.name(), parameters));
  if (!c.parameters().publish_quality()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "collection ", c.name(), " publishes no quality of cells: its operator creates it with ",
        c.parameters().cell_partitions().empty() ? "cells and " : "", "publish_quality"));
  }
  if (c.without_quality()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "collection ", c.name(), " is divided among shards, which publish no quality of cells"));
  }
  if (c.embedding_version() == 0) return NotBuilt(c.name());
  if (c.cells_status() == v1::CELLS_STATUS_FAILED) return CheckCellsReady(c);
  constexpr uint64_t kMaxItems = std::numeric_limits<int64_t>::max();
  if (const uint64_t most = std::min<uint64_t>(c.embedded_items(), kMaxItems);
      c.cells_items() > most) {
    return absl::DataLossError(absl::StrCat("collection ", c.name(),
                                            ": cells_items must be at most ", most, ", but is ",
                                            c.cells_items()));
  }
  if (CheckCellsReady(c).ok() && c.cells_items() < kMinQualityQueries) {
    return absl::FailedPreconditionError(
        absl::StrCat("the quality of cells is measured from ", kMinQualityQueries,
                     " items on, but collection ", c.name(), " has ", c.cells_items()));
  }
  if (!c.has_quality()) {
    return FieldError(absl::StatusCode::kUnavailable, "quality",
                      absl::StrCat("of the cells of collection ", c.name(),
                                   " is not measured yet; after many deletions a build measures "
                                   "again"),
                      "");
  }
  auto quality = FromProto(c.quality(), static_cast<size_t>(c.parameters().cell_partitions_size()));
  if (quality.ok()) return quality;
  return absl::DataLossError(
      absl::StrCat("collection ", c.name(), ": ", quality.status().message()));
}

}  // namespace privatemail::client
