#include "server/store/decode.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::server {

absl::Status CheckBlobSize(absl::string_view what, absl::string_view blob, int64_t rows,
                           int64_t cols, size_t value_bytes) {
  const auto values = static_cast<int64_t>(blob.size() / value_bytes);
  const bool exact = rows >= 0 && cols >= 1 && blob.size() % value_bytes == 0 &&
                     values % cols == 0 && values / cols == rows;
  if (exact) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(what, ": expected ", rows, " x ", cols, " values of ",
                                          value_bytes, " bytes, got ", blob.size(), " bytes"));
}

std::string EncodeParameters(const PublicParameters& parameters) {
  v1::PublicParameters proto;
  ToProto(parameters, &proto);
  return proto.SerializeAsString();
}

std::string EncodeQuality(const CellQuality& quality) {
  v1::CellQuality proto;
  ToProto(quality, &proto);
  return proto.SerializeAsString();
}

absl::StatusOr<std::optional<CellQuality>> DecodeQuality(absl::string_view bytes,
                                                         size_t partitions) {
  if (bytes.empty()) return std::nullopt;
  v1::CellQuality proto;
  if (proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    absl::StatusOr<CellQuality> quality = FromProto(proto, partitions);
    if (quality.ok()) return *std::move(quality);
  }
  return absl::DataLossError("the quality of cells cannot be parsed");
}

absl::StatusOr<PublicParameters> DecodeParameters(absl::string_view name, absl::string_view bytes) {
  v1::PublicParameters proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError(
        absl::StrCat("collection ", name, ": its parameters cannot be parsed"));
  }
  absl::StatusOr<PublicParameters> checked = FromProto(proto);
  if (checked.ok()) return checked;
  return absl::DataLossError(absl::StrCat("collection ", name, ": ", checked.status().message()));
}

absl::StatusOr<StoredCollection> DecodeCollection(absl::string_view name,
                                                  absl::string_view parameters,
                                                  absl::string_view anchor_features,
                                                  absl::string_view anchor_labels) {
  StoredCollection collection;
  collection.name = std::string(name);
  const std::string what = absl::StrCat("collection ", name);
  PM_ASSIGN_OR_RETURN(collection.parameters, DecodeParameters(name, parameters));
  const int64_t count = collection.parameters.anchor_count;
  const int64_t labels = collection.parameters.HasClasses() ? count : 0;
  // Without anchors there are no bytes for any dimension.
  const int64_t dim = std::max<int64_t>(1, collection.parameters.feature_dim);
  Anchors& anchors = collection.anchors;
  PM_RETURN_IF_ERROR(
      CheckBlobSize(absl::StrCat(what, " anchors"), anchor_features, count, dim, sizeof(float)));
  anchors.features.resize(count, dim);
  PM_RETURN_IF_ERROR(DecodeValues("", anchor_features, count, dim, anchors.features.data()));
  anchors.labels.resize(static_cast<size_t>(labels));
  PM_RETURN_IF_ERROR(DecodeValues(absl::StrCat(what, " anchor labels"), anchor_labels, labels, 1,
                                  anchors.labels.data()));
  if (DigestOf(anchors) != collection.parameters.anchor_digest) {
    return absl::DataLossError(absl::StrCat(what, ": the anchors do not match their digest"));
  }
  return collection;
}

}  // namespace privatemail::server
