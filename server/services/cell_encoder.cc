#include "server/services/cell_encoder.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "privatemail/v1/retrieval.pb.h"
#include "server/services/wire_fields.h"

namespace privatemail::server {
namespace {

using Response = v1::RetrieveCellsResponse;
using wire::Tag;

constexpr uint32_t kIds = Tag(Response::kIdsFieldNumber, wire::kLengthDelimited);
constexpr uint32_t kLabels = Tag(Response::kLabelsFieldNumber, wire::kLengthDelimited);
constexpr uint32_t kCodes = Tag(Response::kCodesFieldNumber, wire::kLengthDelimited);
constexpr uint32_t kPayloads = Tag(Response::kPayloadsFieldNumber, wire::kLengthDelimited);
constexpr uint32_t kItemsVersion = Tag(Response::kItemsVersionFieldNumber, wire::kVarint);
constexpr uint32_t kEmbeddingVersion = Tag(Response::kEmbeddingVersionFieldNumber, wire::kVarint);

// Grows *bytes by `size` and calls `write` with the start of the new bytes.
template <typename Write>
void Append(size_t size, std::string* bytes, const Write& write) {
  const size_t before = bytes->size();
  bytes->resize(before + size);
  write(reinterpret_cast<uint8_t*>(bytes->data() + before));
}

void AppendField(uint32_t tag, absl::string_view content, std::string* bytes) {
  Append(wire::DelimitedSize(content.size()), bytes,
         [&](uint8_t* to) { return wire::WriteDelimited(tag, content, to); });
}

// proto3 omits fields with their default value.
void AppendUnlessEmpty(uint32_t tag, absl::string_view content, std::string* bytes) {
  if (!content.empty()) AppendField(tag, content, bytes);
}

void AppendUnlessZero(uint32_t tag, uint64_t value, std::string* bytes) {
  if (value == 0) return;
  Append(1 + wire::Coded::VarintSize64(value), bytes, [&](uint8_t* to) {
    *to++ = static_cast<uint8_t>(tag);
    return wire::Coded::WriteVarint64ToArray(value, to);
  });
}

// Encoded repeated fields, collected separately because each is contiguous on the wire.
struct Fields {
  std::string ids;  // each with its tag
  std::string labels;
  std::string codes;
  std::string payloads;  // each with its tag
};

void AppendItem(const CellIndex& index, int64_t row, bool with_payloads, Fields* fields) {
  AppendField(kIds, index.IdOf(row), &fields->ids);
  const int32_t label = index.LabelOf(row);
  Append(wire::Coded::VarintSize32SignExtended(label), &fields->labels,
         [&](uint8_t* to) { return wire::Coded::WriteVarint32SignExtendedToArray(label, to); });
  absl::StrAppend(&fields->codes, index.CodeOf(row));
  if (with_payloads) AppendField(kPayloads, index.PayloadOf(row), &fields->payloads);
}

std::string Join(const Fields& fields, const CellIndex& index) {
  constexpr size_t kHeaderBytes = 64;  // tags, lengths and versions
  std::string message;
  message.reserve(fields.ids.size() + fields.labels.size() + fields.codes.size() +
                  fields.payloads.size() + kHeaderBytes);
  message.append(fields.ids);
  AppendUnlessEmpty(kLabels, fields.labels, &message);
  AppendUnlessEmpty(kCodes, fields.codes, &message);
  message.append(fields.payloads);
  AppendUnlessZero(kItemsVersion, index.items_version(), &message);
  AppendUnlessZero(kEmbeddingVersion, index.embedding_version(), &message);
  return message;
}

}  // namespace

EncodedBlock EncodeCellBlock(const CellIndex& index, absl::Span<const int32_t> rows,
                             const HiddenRows* hidden, bool with_payloads) {
  EncodedBlock block;
  Fields fields;
  for (const int32_t row : rows) {
    if (hidden != nullptr && hidden->hidden[static_cast<size_t>(row)]) continue;
    AppendItem(index, row, with_payloads, &fields);
    ++block.items;
  }
  block.bytes = Join(fields, index);
  return block;
}

}  // namespace privatemail::server
