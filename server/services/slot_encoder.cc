#include "server/services/slot_encoder.h"

#include <cstring>

#include "privatemail/v1/retrieval.pb.h"
#include "server/services/wire_fields.h"

namespace privatemail::server {
namespace {

using wire::BeginDelimited;
using wire::Coded;
using wire::DelimitedSize;
using wire::Tag;

constexpr uint32_t kSlots = Tag(v1::RetrieveResponse::kSlotsFieldNumber, wire::kLengthDelimited);
constexpr uint32_t kMatches = Tag(v1::SlotMatches::kMatchesFieldNumber, wire::kLengthDelimited);
constexpr uint32_t kId = Tag(v1::Match::kIdFieldNumber, wire::kLengthDelimited);
constexpr uint32_t kLabel = Tag(v1::Match::kLabelFieldNumber, wire::kVarint);
constexpr uint32_t kDistance = Tag(v1::Match::kSquaredDistanceFieldNumber, wire::kFixed64);
constexpr uint32_t kPayload = Tag(v1::Match::kPayloadFieldNumber, wire::kLengthDelimited);

// proto3 omits fields with their default value.
size_t SizeOfText(const std::string& text) { return text.empty() ? 0 : DelimitedSize(text.size()); }

uint8_t* WriteText(uint32_t tag, const std::string& text, uint8_t* to) {
  return text.empty() ? to : wire::WriteDelimited(tag, text, to);
}

uint64_t BitsOf(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

}  // namespace

SlotEncoder::SlotEncoder(const RetrievalAnswer& answer, const Retriever& retriever,
                         bool with_payloads)
    : answer_(answer), retriever_(retriever), with_payloads_(with_payloads) {
  for (const std::vector<Neighbor>& slot : answer.slots) {
    for (const Neighbor& match : slot) retriever.Prefetch(match.row);
  }
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
  if (BitsOf(match.squared_distance) != 0) size += 1 + sizeof(uint64_t);
  if (with_payloads_) size += SizeOfText(retriever_.PayloadOf(match.row));
  return size;
}

uint8_t* SlotEncoder::Write(const Neighbor& match, uint8_t* to) const {
  to = WriteText(kId, retriever_.IdOf(match.row), to);
  if (const int32_t label = retriever_.LabelOf(match.row); label != 0) {
    *to++ = static_cast<uint8_t>(kLabel);
    to = Coded::WriteVarint32SignExtendedToArray(label, to);
  }
  if (const uint64_t bits = BitsOf(match.squared_distance); bits != 0) {
    *to++ = static_cast<uint8_t>(kDistance);
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
    to = BeginDelimited(kSlots, *slot_size++, to);
    for (const Neighbor& match : slot)
      to = Write(match, BeginDelimited(kMatches, *match_size++, to));
  }
}

}  // namespace privatemail::server
