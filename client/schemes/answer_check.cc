#include "client/schemes/answer_check.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client {
namespace {

absl::Status CheckMatch(const PublicParameters& parameters, const ExpectedAnswer& expected,
                        const v1::Match& match) {
  PM_RETURN_IF_ERROR(CheckReceivedId(match.id()));
  PM_RETURN_IF_ERROR(parameters.SlotOf(match.label()).status());
  if (!std::isfinite(match.squared_distance())) {
    return absl::DataLossError(
        absl::StrCat("squared_distance must be finite, but is ", match.squared_distance()));
  }
  if (!expected.with_payloads && !match.payload().empty()) {
    return absl::DataLossError("payload must be empty, but is not: none was requested");
  }
  return CheckPayload(match.payload());
}

absl::Status CheckSlot(const PublicParameters& parameters, const ExpectedAnswer& expected,
                       const v1::SlotMatches& slot) {
  if (slot.matches_size() > expected.k) {
    return absl::DataLossError(absl::StrCat("it must have at most ", expected.k,
                                            " matches, but has ", slot.matches_size()));
  }
  for (const v1::Match& match : slot.matches()) {
    PM_RETURN_IF_ERROR(CheckMatch(parameters, expected, match));
  }
  return absl::OkStatus();
}

bool AllFinite(const google::protobuf::RepeatedField<double>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(value); });
}

absl::Status CheckSimilarity(const v1::Alignment& alignment, int64_t dim) {
  if (alignment.rotation_size() != dim * dim || alignment.translation_size() != dim) {
    return absl::DataLossError(absl::StrCat(
        "alignment must have ", dim * dim, " and ", dim, " values, but the server sent ",
        alignment.rotation_size(), " and ", alignment.translation_size()));
  }
  if (!std::isfinite(alignment.scale()) || !std::isfinite(alignment.relative_residual()) ||
      !AllFinite(alignment.rotation()) || !AllFinite(alignment.translation())) {
    return absl::DataLossError("alignment must have finite values, but some are not");
  }
  return absl::OkStatus();
}

absl::Status CheckServerAnchors(const PublicParameters& parameters, const ExpectedAnswer& expected,
                                const v1::Alignment& alignment) {
  if (!expected.with_alignment && !alignment.has_server_anchors()) return absl::OkStatus();
  const absl::StatusOr<FloatMatrix> anchors =
      FromProto("server_anchors", alignment.server_anchors());
  if (!anchors.ok()) return absl::DataLossError(anchors.status().message());
  const int64_t dim = parameters.settings.embedding_dim;
  if (anchors->rows() == parameters.anchor_count && anchors->cols() == dim) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("server_anchors must be ", parameters.anchor_count, " x ",
                                          dim, ", but are ", anchors->rows(), " x ",
                                          anchors->cols()));
}

}  // namespace

absl::Status CheckReceivedId(const std::string& id) {
  if (!IsUtf8(id)) return absl::DataLossError("an id is not UTF-8");
  if (id.size() <= kMaxItemIdBytes) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("an id must have at most ", kMaxItemIdBytes, " bytes, but one has ", id.size()));
}

absl::Status CheckAnswer(const PublicParameters& parameters, const ExpectedAnswer& expected,
                         const v1::RetrieveResponse& response) {
  const auto slots = static_cast<int>(parameters.slot_labels.size());
  if (response.slots_size() != slots) {
    return absl::DataLossError(
        absl::StrCat("the response must have ", slots, " slots, but has ", response.slots_size()));
  }
  for (int slot = 0; slot < slots; ++slot) {
    const absl::Status status = CheckSlot(parameters, expected, response.slots(slot));
    if (!status.ok()) {
      return absl::DataLossError(
          absl::StrCat("slot ", slot, " of the response: ", status.message()));
    }
  }
  PM_RETURN_IF_ERROR(CheckSimilarity(response.alignment(), parameters.settings.embedding_dim));
  return CheckServerAnchors(parameters, expected, response.alignment());
}

}  // namespace privatemail::client
