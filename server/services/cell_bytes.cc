#include "server/services/cell_bytes.h"

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

}  // namespace

void CellBytes::Add(int64_t row) {
  AppendField(kIds, index_.IdOf(row), &ids_);
  const int32_t label = index_.LabelOf(row);
  Append(wire::Coded::VarintSize32SignExtended(label), &labels_,
         [&](uint8_t* to) { return wire::Coded::WriteVarint32SignExtendedToArray(label, to); });
  absl::StrAppend(&codes_, index_.CodeOf(row));
  if (with_payloads_) AppendField(kPayloads, index_.PayloadOf(row), &payloads_);
  ++items_;
}

std::string CellBytes::Take() {
  std::string message;
  constexpr size_t kRest = 64;  // tags, lengths and the version
  message.reserve(size() + kRest);
  message.append(ids_);
  AppendUnlessEmpty(kLabels, labels_, &message);
  AppendUnlessEmpty(kCodes, codes_, &message);
  message.append(payloads_);
  if (const uint64_t version = index_.items_version(); version != 0) {
    Append(1 + wire::Coded::VarintSize64(version), &message, [&](uint8_t* to) {
      *to++ = static_cast<uint8_t>(kItemsVersion);
      return wire::Coded::WriteVarint64ToArray(version, to);
    });
  }
  for (std::string* field : {&ids_, &labels_, &codes_, &payloads_}) field->clear();
  items_ = 0;
  return message;
}

}  // namespace privatemail
