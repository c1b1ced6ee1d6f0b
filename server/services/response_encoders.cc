#include "server/services/response_encoders.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::server {
namespace {

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

// A length-delimited field on the wire.
struct Field {
  absl::string_view bytes;    // with tag and length
  absl::string_view content;  // without
};

// Takes the field that `from` begins with. nullopt: none with this tag, or one that is cut off.
std::optional<Field> TakeField(uint8_t tag, absl::string_view* from) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(from->data()),
                                            static_cast<int>(from->size()));
  uint32_t length = 0;
  if (in.ReadTag() != tag || !in.ReadVarint32(&length)) return std::nullopt;
  const auto head = static_cast<size_t>(in.CurrentPosition());
  if (length > from->size() - head) return std::nullopt;
  const Field field = {from->substr(0, head + length), from->substr(head, length)};
  from->remove_prefix(field.bytes.size());
  return field;
}

// The matches of one slot in the answer of one shard.
struct SlotReader {
  // Goes to the next match or, at the end, to none.
  absl::Status Next() {
    const std::optional<Field> field = TakeField(kMatches, &left);
    if (!field.has_value() ? !left.empty()
                           : !match.ParseFromArray(field->content.data(),
                                                   static_cast<int>(field->content.size()))) {
      return absl::InternalError("a match in the answer of a shard cannot be read");
    }
    bytes = field.has_value() ? field->bytes : "";
    return absl::OkStatus();
  }
  // Nearest first, ties by id; those without a match come last.
  bool operator<(const SlotReader& other) const {
    return std::make_tuple(bytes.empty(), match.squared_distance(), absl::string_view(match.id())) <
           std::make_tuple(other.bytes.empty(), other.match.squared_distance(),
                           absl::string_view(other.match.id()));
  }

  absl::string_view left;   // what follows the match
  absl::string_view bytes;  // of the match; empty: none is left
  v1::Match match;
};

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
  const size_t before = bytes->size();
  bytes->resize(before + size_);
  auto* to = reinterpret_cast<uint8_t*>(bytes->data() + before);
  auto match_size = match_sizes_.begin();
  auto slot_size = slot_sizes_.begin();
  for (const std::vector<Neighbor>& slot : answer_.slots) {
    to = WriteDelimitedHead(kSlots, *slot_size++, to);
    for (const Neighbor& match : slot) {
      to = Write(match, WriteDelimitedHead(kMatches, *match_size++, to));
    }
  }
}

absl::StatusOr<MergedSlots> MergeSlots(std::vector<absl::string_view> answers, size_t k) {
  MergedSlots merged;
  std::vector<SlotReader> readers(answers.size());
  std::vector<absl::string_view> nearest;
  while (true) {
    size_t with_slot = 0;
    for (size_t i = 0; i < answers.size(); ++i) {
      const std::optional<Field> slot = TakeField(kSlots, &answers[i]);
      if (!slot.has_value()) continue;
      ++with_slot;
      readers[i].left = slot->content;
      PM_RETURN_IF_ERROR(readers[i].Next());
    }
    if (with_slot == 0) break;
    if (with_slot < answers.size()) {
      return absl::InternalError("shards must answer for the same slots");
    }
    nearest.clear();
    size_t size = 0;
    while (nearest.size() < k) {
      SlotReader& first = *std::min_element(readers.begin(), readers.end());
      if (first.bytes.empty()) break;
      nearest.push_back(first.bytes);
      size += first.bytes.size();
      PM_RETURN_IF_ERROR(first.Next());
    }
    ++merged.slots;
    merged.matches += nearest.size();
    uint8_t head[6];  // a tag and a length
    merged.bytes.append(reinterpret_cast<const char*>(head),
                        static_cast<size_t>(WriteDelimitedHead(kSlots, size, head) - head));
    for (const absl::string_view match : nearest) absl::StrAppend(&merged.bytes, match);
  }
  merged.rests = std::move(answers);
  return merged;
}

EncodedBlock EncodeCellBlock(const CellIndex& index, absl::Span<const int32_t> rows,
                             const HiddenRows* hidden, bool with_payloads) {
  google::protobuf::Arena arena;
  auto& response = *google::protobuf::Arena::CreateMessage<v1::RetrieveCellsResponse>(&arena);
  for (const int32_t row : rows) {
    if (hidden != nullptr && hidden->hidden[static_cast<size_t>(row)]) continue;
    response.add_ids(index.IdOf(row));
    response.add_labels(index.LabelOf(row));
    absl::StrAppend(response.mutable_codes(), index.CodeOf(row));
    if (!with_payloads) continue;
    response.add_payloads(index.PayloadOf(row));
  }
  response.set_items_version(index.items_version());
  response.set_embedding_version(index.embedding_version());
  EncodedBlock block;
  block.items = response.ids_size();
  block.bytes = response.SerializeAsString();
  return block;
}

}  // namespace privatemail::server
