// Encoders of search responses.
#ifndef PRIVATEMAIL_SERVER_SERVICES_RESPONSE_ENCODERS_H_
#define PRIVATEMAIL_SERVER_SERVICES_RESPONSE_ENCODERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/cells/cell_index.h"
#include "server/engine/hidden_rows.h"
#include "server/engine/retriever.h"

namespace privatemail::server {

// The field `slots` of a v1.RetrieveResponse, byte for byte as protobuf would write it; appending
// the other fields' bytes gives the whole message. One message object per match would cost more
// than the search.
class SlotEncoder {
 public:
  // Computes sizes only. answer and retriever must outlive the encoder.
  SlotEncoder(const RetrievalAnswer& answer, const Retriever& retriever, bool with_payloads);

  size_t size() const { return size_; }
  size_t matches() const { return match_sizes_.size(); }

  // Appends size() bytes.
  void AppendTo(std::string* bytes) const;

 private:
  size_t SizeOf(const Neighbor& match) const;
  uint8_t* Write(const Neighbor& match, uint8_t* to) const;

  const RetrievalAnswer& answer_;
  const Retriever& retriever_;
  const bool with_payloads_;
  size_t size_ = 0;
  std::vector<uint32_t> match_sizes_;  // in slot order
  std::vector<uint32_t> slot_sizes_;
};

// The slots of a whole collection, and what else the answers of its shards say.
struct MergedSlots {
  std::string bytes;                     // the field `slots` of a v1.RetrieveResponse
  size_t slots = 0;                      // their number
  size_t matches = 0;                    // of all slots
  std::vector<absl::string_view> rests;  // the fields after the slots, of each answer
};

// Merges encoded v1.RetrieveResponses, in which the slots come first and the matches of each are in
// order: each slot gets the k first matches of all answers, whose bytes are copied. A match is read
// only when its turn may have come. INTERNAL: the answers are not so, or have other numbers of
// slots.
absl::StatusOr<MergedSlots> MergeSlots(std::vector<absl::string_view> answers, size_t k);

// A v1.RetrieveCellsResponse of `rows` (each < index.items()) without the `hidden` ones (null:
// none). EncodedBlock::hidden is left null.
EncodedBlock EncodeCellBlock(const CellIndex& index, absl::Span<const int32_t> rows,
                             const HiddenRows* hidden, bool with_payloads);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_RESPONSE_ENCODERS_H_
