// Encoder of the slots of a v1.RetrieveResponse.
#ifndef PRIVATEMAIL_SERVER_SERVICES_SLOT_ENCODER_H_
#define PRIVATEMAIL_SERVER_SERVICES_SLOT_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/retriever.h"

namespace privatemail::server {

// Writes the field `slots` byte for byte as protobuf would. Appending the other fields' bytes gives
// the whole message. Avoids one message object per match, which would cost more than the search.
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

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_SLOT_ENCODER_H_
