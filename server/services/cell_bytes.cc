#include "server/services/cell_bytes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "privatemail/v1/retrieval.pb.h"
#include "server/services/wire_fields.h"

namespace privatemail {
namespace {

using Response = v1::RetrieveCellsResponse;
using wire::Tag;

constexpr uint32_t kIds = Tag(Response::kIdsFieldNumber, wire::kLengthDelimited);
constexpr uint32_t kLabels = Tag(Response::kLabelsFieldNumber, wire::kLengthDelimited);
constexpr uint32_t kCodes = Tag(Response::kCodesFieldNumber, wire::kLengthDelimited);
constexpr uint32_t kPayloads = Tag(Response::kPayloadsFieldNumber, wire::kLengthDelimited);
constexpr uint32_t kItemsVersion = Tag(Response::kItemsVersionFieldNumber, wire::kVarint);

// Room for `size` more bytes, of which `write` returns the end.
template <typename Write>
void Append(size_t size, std::string* bytes, const Write& write) {
  const size_t before = bytes->size();
  bytes->resize(before + size);
  write(reinterpret_cast<uint8_t*>(bytes->data() + before));
}

void AppendField(uint32_t tag, absl::string_view content, std::string* bytes) {
  Append(wire::Delimited(content.size()), bytes,
         [&](uint8_t* to) { return wire::WriteDelimited(tag, content, to); });
}

// Fields that have their default value are left out, as proto3 wants it.
void AppendUnlessEmpty(uint32_t tag, absl::string_view content, std::string* bytes) {
  if (!content.empty()) AppendField(tag, content, bytes);
}

// The fields of items, before they are put together.
struct Fields {
  std::string ids;  // each with its tag
  std::string labels;
  std::string codes;
  std::string payloads;  // each with its tag
};

void Add(const CellIndex& index, int64_t row, bool with_payloads, Fields* fields) {
  AppendField(kIds, index.IdOf(row), &fields->ids);
  const int32_t label = index.LabelOf(row);
  Append(wire::Coded::VarintSize32SignExtended(label), &fields->labels,
         [&](uint8_t* to) { return wire::Coded::WriteVarint32SignExtendedToArray(label, to); });
  absl::StrAppend(&fields->codes, index.CodeOf(row));
  if (with_payloads) AppendField(kPayloads, index.PayloadOf(row), &fields->payloads);
}

std::string Message(const Fields& fields, uint64_t version) {
  constexpr size_t kRest = 64;  // tags, lengths and the version
  std::string message;
  message.reserve(fields.ids.size() + fields.labels.size() + fields.codes.size() +
                  fields.payloads.size() + kRest);
  message.append(fields.ids);
  AppendUnlessEmpty(kLabels, fields.labels, &message);
  AppendUnlessEmpty(kCodes, fields.codes, &message);
  message.append(fields.payloads);
  if (version != 0) {
    Append(1 + wire::Coded::VarintSize64(version), &message, [&](uint8_t* to) {
      *to++ = static_cast<uint8_t>(kItemsVersion);
      return wire::Coded::WriteVarint64ToArray(version, to);
    });
  }
  return message;
}

}  // namespace

CellBlock CellBytes(const CellIndex& index, absl::Span<const int32_t> rows,
                    const HiddenRows* hidden, bool with_payloads) {
  CellBlock block;
  Fields fields;
  for (const int32_t row : rows) {
    if (hidden != nullptr && hidden->hidden[static_cast<size_t>(row)]) continue;
    Add(index, row, with_payloads, &fields);
    ++block.items;
  }
  block.message = Message(fields, index.items_version());
  return block;
}

}  // namespace privatemail
