// Counts anchors while they come, so that no server fills a client's memory.
#ifndef PRIVATEMAIL_CLIENT_TRANSPORT_ANCHOR_LIMIT_H_
#define PRIVATEMAIL_CLIENT_TRANSPORT_ANCHOR_LIMIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

class AnchorLimit {
 public:
  static constexpr int64_t kMaxBytes = int64_t{1} << 30;

  explicit AnchorLimit(int64_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  // DATA_LOSS: the chunks so far take more than max_bytes, of which each takes one at least.
  absl::Status Add(const v1::GetAnchorsResponse& chunk) {
    bytes_ += static_cast<int64_t>(chunk.ByteSizeLong()) + 1;
    if (bytes_ <= max_bytes_) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("anchors must take at most ", max_bytes_,
                                            " bytes, but the server sends more"));
  }

 private:
  int64_t max_bytes_;
  int64_t bytes_ = 0;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_TRANSPORT_ANCHOR_LIMIT_H_
