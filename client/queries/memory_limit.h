// The limit on what several answers of a server take together.
#ifndef PRIVATEMAIL_CLIENT_QUERIES_MEMORY_LIMIT_H_
#define PRIVATEMAIL_CLIENT_QUERIES_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "privatemail/joint_client.h"

namespace privatemail::client {

// Of --max-memory, ClientLimits::max_memory.
class MemoryLimit {
 public:
  // what: "memory of the answers"
  MemoryLimit(std::string what, int64_t max_memory)
      : what_(std::move(what)), max_memory_(max_memory) {}

  // RESOURCE_EXHAUSTED: all reserved bytes together exceed max_memory.
  absl::Status Reserve(int64_t bytes) {
    reserved_ += bytes;
    if (reserved_ <= max_memory_) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(what_, " must be at most ", max_memory_,
                                                     " bytes (--max-memory), but is ", reserved_));
  }

 private:
  std::string what_;
  int64_t max_memory_;
  int64_t reserved_ = 0;
};

// Payloads of matches are shown as parsed JSON. One of "[{},{},...]" takes 27 bytes for each of its
// own, and its copies in the printed rows as many again.
inline constexpr int64_t kBytesPerPayloadCharacter = 64;

inline absl::Status ReservePayloads(const std::vector<QueryMatch>& matches, MemoryLimit* limit) {
  int64_t characters = 0;
  for (const QueryMatch& match : matches) characters += std::ssize(match.payload);
  return limit->Reserve(kBytesPerPayloadCharacter * characters);
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_QUERIES_MEMORY_LIMIT_H_
