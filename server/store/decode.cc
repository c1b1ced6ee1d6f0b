#include "server/store/decode.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/lattice/scores.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::server {
namespace {

// Checks that a blob holds exactly rows x cols values, before allocating for them.
template <typename Value>
absl::Status CheckSize(absl::string_view what, absl::string_view blob, int64_t rows, int64_t cols) {
  const auto values = static_cast<int64_t>(blob.size() / sizeof(Value));
  const bool exact = rows >= 0 && cols >= 1 && blob.size() % sizeof(Value) == 0 &&
                     values % cols == 0 && values / cols == rows;
  if (exact) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(what, ": expected ", rows, " x ", cols, " values of ",
                                          sizeof(Value), " bytes, got ", blob.size(), " bytes"));
}

template <typename Value>
void Copy(absl::string_view blob, Value* values) {
  if (!blob.empty()) std::memcpy(values, blob.data(), blob.size());
}

}  // namespace

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

absl::StatusOr<int64_t> FixDimension(absl::string_view name, int64_t dimension,
                                     std::string* parameters) {
  PM_ASSIGN_OR_RETURN(PublicParameters fixed, DecodeParameters(name, *parameters));
  if (fixed.feature_dim > 0) return fixed.feature_dim;
  PM_RETURN_IF_ERROR(CheckIntegerBetween("dimension", dimension, 1, lattice::kMaxDimensions));
  fixed.feature_dim = dimension;
  *parameters = EncodeParameters(fixed);
  return dimension;
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
  PM_RETURN_IF_ERROR(CheckSize<float>(absl::StrCat(what, " anchors"), anchor_features, count, dim));
  PM_RETURN_IF_ERROR(
      CheckSize<int32_t>(absl::StrCat(what, " anchor labels"), anchor_labels, labels, 1));
  Anchors& anchors = collection.anchors;
  anchors.features.resize(count, dim);
  anchors.labels.resize(static_cast<size_t>(labels));
  Copy(anchor_features, anchors.features.data());
  Copy(anchor_labels, anchors.labels.data());
  if (DigestOf(anchors) != collection.parameters.anchor_digest) {
    return absl::DataLossError(absl::StrCat(what, ": the anchors do not match their digest"));
  }
  return collection;
}

absl::Status DecodeFeatures(absl::string_view id, absl::string_view blob, int64_t count,
                            float* values) {
  PM_RETURN_IF_ERROR(CheckSize<float>(absl::StrCat("features of item ", id), blob, 1, count));
  Copy(blob, values);
  return absl::OkStatus();
}

absl::Status DecodeCoordinates(absl::string_view of, absl::string_view blob, int64_t rows,
                               int64_t cols, double* values) {
  PM_RETURN_IF_ERROR(CheckSize<double>(absl::StrCat("coordinates of ", of), blob, rows, cols));
  Copy(blob, values);
  return absl::OkStatus();
}

}  // namespace privatemail::server
