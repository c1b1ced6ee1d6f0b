#include "client/release/published_collection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/protocol/codec.h"

namespace privatemail {

absl::StatusOr<PublicParameters> ReadBuiltCollection(const v1::GetCollectionResponse& collection) {
  if (collection.embedding_version() == 0) {
    return absl::FailedPreconditionError(absl::StrCat("collection ", collection.name(),
                                                      " is not built yet: run `privatemail build ",
                                                      collection.name(), "`"));
  }
  PM_ASSIGN_OR_RETURN(PublicParameters parameters, FromProto(collection.parameters()));
  PM_RETURN_IF_ERROR(CheckFingerprint(Fingerprint(parameters), collection.fingerprint()));
  return parameters;
}

absl::StatusOr<Anchors> JoinAnchors(const std::vector<v1::GetAnchorsResponse>& chunks,
                                    int64_t columns) {
  std::vector<FloatMatrix> parts;
  Anchors anchors;
  int64_t rows = 0;
  for (const v1::GetAnchorsResponse& chunk : chunks) {
    PM_ASSIGN_OR_RETURN(FloatMatrix part, FromProto("anchors", chunk.features()));
    PM_RETURN_IF_ERROR(CheckColumns("anchors", columns, part.cols()));
    rows += part.rows();
    parts.push_back(std::move(part));
    anchors.labels.insert(anchors.labels.end(), chunk.labels().begin(), chunk.labels().end());
  }
  anchors.features.resize(rows, columns);
  int64_t row = 0;
  for (const FloatMatrix& part : parts) {
    anchors.features.middleRows(row, part.rows()) = part;
    row += part.rows();
  }
  return anchors;
}

absl::Status CheckAnchors(const PublicParameters& parameters, const Anchors& anchors) {
  PM_RETURN_IF_ERROR(CheckColumns("anchors", parameters.feature_dim, anchors.features.cols()));
  const auto rows = static_cast<int64_t>(anchors.features.rows());
  if (rows != parameters.anchor_count || static_cast<int64_t>(anchors.labels.size()) != rows) {
    return absl::InvalidArgumentError(absl::StrCat("anchors must be ", parameters.anchor_count,
                                                   " rows with a label each, but are ", rows,
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

}  // namespace privatemail
