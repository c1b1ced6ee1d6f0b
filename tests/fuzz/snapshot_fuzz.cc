// Fuzzes the snapshot reader. The first byte chooses the piece size, and whether checksums are
// corrected first, so that inputs get past them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/digests.h"
#include "common/wire/snapshot.h"
#include "common/wire/snapshot_layout.h"
#include "tests/fuzz/fuzz.h"

namespace privatemail {
namespace {

std::string WithRightChecksums(std::string bytes) {
  using namespace snapshot;
  for (size_t at = kHeaderBytes; at + kHeadBytes + kSumBytes <= bytes.size();) {
    const size_t length = kHeadBytes + IntAt(bytes, at + 5);
    if (length > bytes.size() - at - kSumBytes) break;
    const std::string sum = Sha256::Of(absl::string_view(bytes).substr(at, length));
    bytes.replace(at + length, kSumBytes, sum, 0, kSumBytes);
    at += length + kSumBytes;
  }
  return bytes;
}

struct Outcome {
  absl::Status status;
  uint64_t anchors = 0;
  uint64_t items = 0;
};

Outcome Read(absl::string_view bytes, size_t piece) {
  Outcome handled;
  SnapshotReader reader({{},
                         [&](const Anchors& part) {
                           handled.anchors += part.labels.size();
                           return absl::OkStatus();
                         },
                         [&](const v1::SnapshotItems& part) {
                           handled.items += static_cast<uint64_t>(part.items_size());
                           return absl::OkStatus();
                         }});
  for (size_t first = 0; first < bytes.size(); first += piece) {
    (void)reader.Read(bytes.substr(first, piece));
  }
  handled.status = reader.Finish();
  if (handled.status.ok()) {
    Require(handled.items == reader.head().items() && handled.items == reader.items());
    Require(handled.anchors == reader.anchors());
  } else {
    Require(absl::IsDataLoss(handled.status));
    Require(handled.status.message().substr(0, 6) == "block ");
  }
  return handled;
}

}  // namespace
}  // namespace privatemail

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace privatemail;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) bytes = WithRightChecksums(std::move(bytes));
  // The result does not depend on the piece size.
  const Outcome whole = Read(bytes, std::max(bytes.size(), size_t{1}));
  const Outcome pieces = Read(bytes, 1 + data[0] / 2);
  Require(whole.status == pieces.status && whole.items == pieces.items);
  return 0;
}
