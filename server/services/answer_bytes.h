// An answer as it goes over the wire.
#ifndef PRIVATEMAIL_SERVER_SERVICES_ANSWER_BYTES_H_
#define PRIVATEMAIL_SERVER_SERVICES_ANSWER_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/retriever.h"

namespace privatemail::server {

// The field `slots` of a v1.RetrieveResponse, in the bytes that protobuf would write: what another
// message's bytes are appended to makes one message of both. In one pass, because a message of its
// own for each of a thousand matches would take longer than to find them.
class SlotBytes {
 public:
  // All must outlive it. Counts, and writes nothing yet.
  SlotBytes(const RetrievalAnswer& answer, const Retriever& retriever, bool with_payloads);

  size_t size() const { return size_; }
  size_t matches() const { return match_sizes_.size(); }

  // `size()` bytes.
  void AppendTo(std::string* bytes) const;

 private:
  size_t SizeOf(const Neighbor& match) const;
  uint8_t* Write(const Neighbor& match, uint8_t* to) const;

  const RetrievalAnswer& answer_;
  const Retriever& retriever_;
  const bool with_payloads_;
  size_t size_ = 0;
  std::vector<uint32_t> match_sizes_;  // slot after slot
  std::vector<uint32_t> slot_sizes_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_ANSWER_BYTES_H_
