#include "client/schemes/published_collection.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/offered_schemes.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client {
namespace {

absl::StatusOr<Matrix> ParseCoordinates(const v1::GetAnchorsResponse& chunk, int64_t columns) {
  PM_ASSIGN_OR_RETURN(const FloatMatrix rows, FromProto("coordinates", chunk.coordinates()));
  if (rows.rows() != chunk.features().rows() || rows.cols() != columns) {
    return absl::DataLossError(absl::StrCat("coordinates must be ", chunk.features().rows(), " x ",
                                            columns, ", one row an anchor, but are ", rows.rows(),
                                            " x ", rows.cols()));
  }
  return Matrix(rows.cast<double>());
}

absl::Status CheckVersion(uint64_t version, uint64_t expected) {
  if (version == 0) {
    return absl::DataLossError("embedding_version must be given with coordinates, but is not");
  }
  if (version == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "embedding_version must be the same in all chunks, but is ", expected, " and ", version));
}

bool HaveNoCoordinates(const std::vector<v1::GetAnchorsResponse>& chunks) {
  return std::all_of(chunks.begin(), chunks.end(), [](const v1::GetAnchorsResponse& chunk) {
    return !chunk.has_coordinates() && chunk.embedding_version() == 0;
  });
}

// Parsing errors are the server's fault, not an invalid argument of the caller.
absl::Status InAnswer(absl::string_view where, const absl::Status& status) {
  return absl::DataLossError(absl::StrCat(where, ": ", status.message()));
}

absl::Status InChunk(size_t i, const absl::Status& status) {
  return InAnswer(absl::StrCat("anchors, chunk ", i), status);
}

absl::StatusOr<FloatView> ViewFeatures(const v1::GetAnchorsResponse& chunk, int64_t columns) {
  PM_ASSIGN_OR_RETURN(const FloatView rows, ViewOf("features", chunk.features()));
  PM_RETURN_IF_ERROR(CheckColumns("features", columns, rows.cols()));
  return rows;
}

absl::Status CheckAnchorRows(const PublicParameters& parameters,
                             const std::vector<v1::GetAnchorsResponse>& chunks) {
  int64_t rows = 0;
  for (const v1::GetAnchorsResponse& chunk : chunks) rows += chunk.features().rows();
  if (rows == parameters.anchor_count) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("anchors must be ", parameters.anchor_count,
                                          " rows, but the server sent ", rows));
}

}  // namespace

absl::StatusOr<PublicParameters> ReadBuiltCollection(const v1::GetCollectionResponse& collection) {
  absl::StatusOr<PublicParameters> parameters = FromProto(collection.parameters());
  if (!parameters.ok()) {
    return InAnswer(absl::StrCat("public parameters of collection ", collection.name()),
                    parameters.status());
  }
  PM_RETURN_IF_ERROR(CheckFingerprint(Fingerprint(*parameters), collection.fingerprint()));
  PM_RETURN_IF_ERROR(CheckHasAnchors(collection.name(), *parameters));
  if (collection.embedding_version() > 0) return parameters;
  return NotBuilt(collection.name());
}

absl::StatusOr<Anchors> JoinAnchors(const PublicParameters& parameters,
                                    const std::vector<v1::GetAnchorsResponse>& chunks) {
  PM_RETURN_IF_ERROR(CheckAnchorRows(parameters, chunks));
  Anchors anchors;
  anchors.features.resize(parameters.anchor_count, parameters.feature_dim);
  Eigen::Index row = 0;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const absl::StatusOr<FloatView> part = ViewFeatures(chunks[i], parameters.feature_dim);
    if (!part.ok()) return InChunk(i, part.status());
    anchors.features.middleRows(row, part->rows()) = *part;
    row += part->rows();
    anchors.labels.insert(anchors.labels.end(), chunks[i].labels().begin(),
                          chunks[i].labels().end());
  }
  return anchors;
}

absl::StatusOr<std::optional<Matrix>> JoinCoordinates(
    const PublicParameters& parameters, const std::vector<v1::GetAnchorsResponse>& chunks) {
  if (HaveNoCoordinates(chunks)) return std::nullopt;
  Matrix rows(parameters.anchor_count, parameters.settings.embedding_dim);
  const uint64_t version = chunks.front().embedding_version();
  Eigen::Index row = 0;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const absl::StatusOr<Matrix> part = ParseCoordinates(chunks[i], rows.cols());
    if (!part.ok()) return InChunk(i, part.status());
    const absl::Status same = CheckVersion(chunks[i].embedding_version(), version);
    if (!same.ok()) return InChunk(i, same);
    if (part->rows() > rows.rows() - row) break;
    rows.middleRows(row, part->rows()) = *part;
    row += part->rows();
  }
  if (row == rows.rows()) return std::optional<Matrix>(std::move(rows));
  return absl::DataLossError(absl::StrCat("coordinates must be ", rows.rows(),
                                          " rows, one an anchor, but there are others"));
}

absl::Status CheckAnchors(const PublicParameters& parameters, const Anchors& anchors) {
  PM_RETURN_IF_ERROR(CheckColumns("anchors", parameters.feature_dim, anchors.features.cols()));
  const auto rows = static_cast<int64_t>(anchors.features.rows());
  const int64_t labels = parameters.HasClasses() ? parameters.anchor_count : 0;
  if (rows != parameters.anchor_count || std::ssize(anchors.labels) != labels) {
    return absl::DataLossError(absl::StrCat("anchors must be ", parameters.anchor_count,
                                            " rows with ", labels, " labels, but are ", rows,
                                            " rows and ", anchors.labels.size(), " labels"));
  }
  if (DigestOf(anchors) != parameters.anchor_digest) {
    return absl::DataLossError(absl::StrCat("anchors have the digest ", ToHex(DigestOf(anchors)),
                                            ", but the collection published ",
                                            ToHex(parameters.anchor_digest)));
  }
  return absl::OkStatus();
}

absl::Status CheckExtractor(const PublicParameters& parameters, absl::string_view identity) {
  if (identity == parameters.extractor) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "extractor: the collection's features come from ", parameters.extractor,
      ", but the query's from ", identity, "; features of different extractors do not compare"));
}

absl::Status CheckLabels(absl::string_view field, const PublicParameters& parameters,
                         const std::vector<int32_t>& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (const auto slot = parameters.SlotOf(labels[i]); !slot.ok()) {
      return InvalidField(field, absl::StrCat("row ", i, ": ", slot.status().message()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<int64_t>>> RowsBySlot(absl::string_view field,
                                                             const PublicParameters& parameters,
                                                             const std::vector<int32_t>& labels) {
  std::vector<std::vector<int64_t>> rows(parameters.slot_labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    rows[static_cast<size_t>(*parameters.SlotOf(labels[i]))].push_back(static_cast<int64_t>(i));
  }
  for (size_t slot = 0; slot < rows.size(); ++slot) {
    if (rows[slot].empty()) {
      return InvalidField(
          field, absl::StrCat("must hold at least one vector of every class, but hold none of ",
                              parameters.ClassName(static_cast<int64_t>(slot))));
    }
  }
  return rows;
}

}  // namespace privatemail::client
