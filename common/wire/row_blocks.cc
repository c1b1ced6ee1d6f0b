#include "common/wire/row_blocks.h"

#include "common/items/item_checks.h"
#include "privatemail/v1/encrypted.pb.h"

namespace privatemail {
namespace {

// Returns the label in the encoding of v1.RowTableBlock.labels.
int64_t SentLabel(int32_t label) {
  if (label == kNoLabel) return 0;
  return label >= 0 ? int64_t{label} + 1 : label;
}

}  // namespace

std::string EncodeRowTable(absl::FunctionRef<absl::string_view(size_t row)> id,
                           absl::Span<const float> norms, absl::Span<const int32_t> labels) {
  v1::RowTableBlock proto;
  for (size_t row = 0; row < norms.size(); ++row) {
    const absl::string_view text = id(row);
    proto.add_ids(text.data(), text.size());
  }
  proto.mutable_norms()->Assign(norms.begin(), norms.end());
  for (const int32_t label : labels) proto.add_labels(SentLabel(label));
  return proto.SerializeAsString();
}

std::string EncodeRowPayloads(size_t rows,
                              absl::FunctionRef<absl::string_view(size_t row)> payload) {
  v1::RowPayloadBlock proto;
  for (size_t row = 0; row < rows; ++row) {
    const absl::string_view text = payload(row);
    proto.add_payloads(text.data(), text.size());
  }
  return proto.SerializeAsString();
}

}  // namespace privatemail
