#include "server/services/response_encoders.h"

#include <google/protobuf/io/coded_stream.h>

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::server {
namespace {

using CellsResponse = v1::RetrieveCellsResponse;
using Coded = google::protobuf::io::CodedOutputStream;

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2 };

// The tag of a field number below 16, which is one byte on the wire.
constexpr uint8_t Tag(int field, WireType type) { return static_cast<uint8_t>(field << 3 | type); }

constexpr uint8_t kSlots = Tag(v1::RetrieveResponse::kSlotsFieldNumber, kLengthDelimited);
constexpr uint8_t kMatches = Tag(v1::SlotMatches::kMatchesFieldNumber, kLengthDelimited);
constexpr uint8_t kId = Tag(v1::Match::kIdFieldNumber, kLengthDelimited);
constexpr uint8_t kLabel = Tag(v1::Match::kLabelFieldNumber, kVarint);
constexpr uint8_t kDistance = Tag(v1::Match::kSquaredDistanceFieldNumber, kFixed64);
constexpr uint8_t kPayload = Tag(v1::Match::kPayloadFieldNumber, kLengthDelimited);

constexpr uint8_t kCellIds = Tag(CellsResponse::kIdsFieldNumber, kLengthDelimited);
constexpr uint8_t kCellLabels = Tag(CellsResponse::kLabelsFieldNumber, kLengthDelimited);
constexpr uint8_t kCellCodes = Tag(CellsResponse::kCodesFieldNumber, kLengthDelimited);
constexpr uint8_t kCellPayloads = Tag(CellsResponse::kPayloadsFieldNumber, kLengthDelimited);
constexpr uint8_t kItemsVersion = Tag(CellsResponse::kItemsVersionFieldNumber, kVarint);

// Encoded size of a length-delimited field, tag and length included.
size_t DelimitedSize(size_t length) {
  return 1 + Coded::VarintSize32(static_cast<uint32_t>(length)) + length;
}

// The Write functions return the end of what they write; the caller provides enough space.
uint8_t* WriteDelimitedHead(uint8_t tag, size_t length, uint8_t* to) {
  *to++ = tag;
  return Coded::WriteVarint32ToArray(static_cast<uint32_t>(length), to);
}

uint8_t* WriteDelimited(uint8_t tag, absl::string_view content, uint8_t* to) {
  to = WriteDelimitedHead(tag, content.size(), to);
  std::memcpy(to, content.data(), content.size());
  return to + content.size();
}

// proto3 omits fields with their default value.
size_t SizeOfText(const std::string& text) { return text.empty() ? 0 : DelimitedSize(text.size()); }

uint8_t* WriteText(uint8_t tag, const std::string& text, uint8_t* to) {
  return text.empty() ? to : WriteDelimited(tag, text, to);
}

// Grows *bytes by `size` and calls `write` with the start of the new bytes.
template <typename Write>
void Append(size_t size, std::string* bytes, const Write& write) {
  const size_t before = bytes->size();
  bytes->resize(before + size);
  write(reinterpret_cast<uint8_t*>(bytes->data() + before));
}

void AppendField(uint8_t tag, absl::string_view content, std::string* bytes) {
  Append(DelimitedSize(content.size()), bytes,
         [&](uint8_t* to) { return WriteDelimited(tag, content, to); });
}

void AppendUnlessEmpty(uint8_t tag, absl::string_view content, std::string* bytes) {
  if (!content.empty()) AppendField(tag, content, bytes);
}

void AppendUnlessZero(uint8_t tag, uint64_t value, std::string* bytes) {
  if (value == 0) return;
  Append(1 + Coded::VarintSize64(value), bytes, [&](uint8_t* to) {
    *to++ = tag;
    return Coded::WriteVarint64ToArray(value, to);
  });
}

// Repeated fields of cells, collected separately because each is contiguous on the wire.
struct CellFields {
  std::string ids;  // each with its tag
  std::string labels;
  std::string codes;
  std::string payloads;  // each with its tag
};

void AppendItem(const CellIndex& index, int64_t row, bool with_payloads, CellFields* fields) {
  AppendField(kCellIds, index.IdOf(row), &fields->ids);
  const int32_t label = index.LabelOf(row);
  Append(Coded::VarintSize32SignExtended(label), &fields->labels,
         [&](uint8_t* to) { return Coded::WriteVarint32SignExtendedToArray(label, to); });
  absl::StrAppend(&fields->codes, index.CodeOf(row));
  if (with_payloads) AppendField(kCellPayloads, index.PayloadOf(row), &fields->payloads);
}

std::string Join(const CellFields& fields, const CellIndex& index) {
  constexpr size_t kHeaderBytes = 64;  // tags, lengths and versions
  std::string message;
  message.reserve(fields.ids.size() + fields.labels.size() + fields.codes.size() +
                  fields.payloads.size() + kHeaderBytes);
  message.append(fields.ids);
  AppendUnlessEmpty(kCellLabels, fields.labels, &message);
  AppendUnlessEmpty(kCellCodes, fields.codes, &message);
  message.append(fields.payloads);
  AppendUnlessZero(kItemsVersion, index.items_version(), &message);
  return message;
}

}  // namespace

SlotEncoder::SlotEncoder(const RetrievalAnswer& answer, const Retriever& retriever,
                         bool with_payloads)
    : answer_(answer), retriever_(retriever), with_payloads_(with_payloads) {
  for (const std::vector<Neighbor>& slot : answer.slots) {
    size_t slot_size = 0;
    for (const Neighbor& match : slot) {
      const size_t match_size = SizeOf(match);
      match_sizes_.push_back(static_cast<uint32_t>(match_size));
      slot_size += DelimitedSize(match_size);
    }
    slot_sizes_.push_back(static_cast<uint32_t>(slot_size));
    size_ += DelimitedSize(slot_size);
  }
}

size_t SlotEncoder::SizeOf(const Neighbor& match) const {
  size_t size = SizeOfText(retriever_.IdOf(match.row));
  if (const int32_t label = retriever_.LabelOf(match.row); label != 0) {
    size += 1 + Coded::VarintSize32SignExtended(label);
  }
  if (std::bit_cast<uint64_t>(match.squared_distance) != 0) size += 1 + sizeof(uint64_t);
  if (with_payloads_) size += SizeOfText(retriever_.PayloadOf(match.row));
  return size;
}

uint8_t* SlotEncoder::Write(const Neighbor& match, uint8_t* to) const {
  to = WriteText(kId, retriever_.IdOf(match.row), to);
  if (const int32_t label = retriever_.LabelOf(match.row); label != 0) {
    *to++ = kLabel;
    to = Coded::WriteVarint32SignExtendedToArray(label, to);
  }
  if (const auto bits = std::bit_cast<uint64_t>(match.squared_distance); bits != 0) {
    *to++ = kDistance;
    to = Coded::WriteLittleEndian64ToArray(bits, to);
  }
  return with_payloads_ ? WriteText(kPayload, retriever_.PayloadOf(match.row), to) : to;
}

void SlotEncoder::AppendTo(std::string* bytes) const {
  Append(size_, bytes, [&](uint8_t* to) {
    auto match_size = match_sizes_.begin();
    auto slot_size = slot_sizes_.begin();
    for (const std::vector<Neighbor>& slot : answer_.slots) {
      to = WriteDelimitedHead(kSlots, *slot_size++, to);
      for (const Neighbor& match : slot) {
        to = Write(match, WriteDelimitedHead(kMatches, *match_size++, to));
      }
    }
  });
}

EncodedBlock EncodeCellBlock(const CellIndex& index, absl::Span<const int32_t> rows,
                             const HiddenRows* hidden, bool with_payloads) {
  EncodedBlock block;
  CellFields fields;
  for (const int32_t row : rows) {
    if (hidden != nullptr && hidden->hidden[static_cast<size_t>(row)]) continue;
    AppendItem(index, row, with_payloads, &fields);
    ++block.items;
  }
  block.bytes = Join(fields, index);
  return block;
}

}  // namespace privatemail::server
