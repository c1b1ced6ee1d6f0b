// Between collections and snapshots (common/protocol/snapshot.h).
#ifndef PRIVATEMAIL_SERVER_ENGINE_SNAPSHOT_IO_H_
#define PRIVATEMAIL_SERVER_ENGINE_SNAPSHOT_IO_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/protocol/snapshot.h"
#include "server/engine/catalog.h"
#include "server/store/types.h"

namespace privatemail {

// Errors of `emit` pass through.
absl::Status WriteSnapshot(const PublishedCollection& published, const Gallery& gallery,
                           SnapshotWriter::Emit emit);

// What a whole snapshot holds. The collection has the name and the parameters of the snapshot.
struct SnapshotContents {
  StoredCollection collection;
  Gallery gallery;
};

// Collects what a peer's snapshot holds. Takes about as much memory as the gallery that has come so
// far, at most twice that while it grows. Not thread-safe.
class SnapshotCollector {
 public:
  // `allow` sees the announcement of the snapshot before anything else is read; its errors other
  // than INVALID_ARGUMENT pass through.
  explicit SnapshotCollector(std::function<absl::Status(const v1::SnapshotCollection&)> allow);
  SnapshotCollector(const SnapshotCollector&) = delete;
  SnapshotCollector& operator=(const SnapshotCollector&) = delete;

  // The next bytes. DATA_LOSS naming the block: SnapshotReader's, or items that no collection of
  // these parameters can have.
  absl::Status Read(absl::string_view piece) { return reader_.Read(piece); }
  // Once, after the last bytes. DATA_LOSS.
  absl::StatusOr<SnapshotContents> Finish();

 private:
  absl::Status TakeCollection(const v1::SnapshotCollection& head);
  absl::Status TakeAnchors(const v1::SnapshotAnchors& part);
  absl::Status TakeItems(v1::SnapshotItems items);

  const std::function<absl::Status(const v1::SnapshotCollection&)> allow_;
  SnapshotReader reader_;
  int64_t announced_items_ = 0;
  SnapshotContents contents_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_ENGINE_SNAPSHOT_IO_H_
