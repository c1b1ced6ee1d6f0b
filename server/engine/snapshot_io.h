// Between collections and snapshots (common/wire/snapshot.h).
#ifndef PRIVATEMAIL_SERVER_ENGINE_SNAPSHOT_IO_H_
#define PRIVATEMAIL_SERVER_ENGINE_SNAPSHOT_IO_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/wire/snapshot.h"
#include "server/engine/catalog.h"
#include "server/store/scratch_file.h"
#include "server/store/types.h"

namespace privatemail::server {

// Writes all items of one moment; returns how many. Holds some megabytes of them. `emit` gets a
// block at a time, and the store waits for it: it must be quick. Errors: its own, and those of
// Catalog::ReadGallery.
absl::StatusOr<uint64_t> WriteSnapshot(const Catalog& catalog, const CollectionView& collection,
                                       const SnapshotWriter::Emit& emit);

// Parses what is said to be a snapshot and checks all of it. Takes the memory of the anchors that
// have come, at most twice that while they grow, and of one block. Not thread-safe.
class SnapshotParser {
 public:
  // What is told of a snapshot, in this order; an error ends the parsing and is returned, but
  // INVALID_ARGUMENT becomes DATA_LOSS.
  struct Visitor {
    std::function<absl::Status(const v1::SnapshotCollection&)> announcement;
    std::function<absl::Status(Gallery part)> items;  // of one block each; versions are not set
  };
  explicit SnapshotParser(Visitor visitor);
  SnapshotParser(const SnapshotParser&) = delete;
  SnapshotParser& operator=(const SnapshotParser&) = delete;

  // The next bytes. DATA_LOSS naming the block: SnapshotReader's, or items that no collection of
  // these parameters can have.
  absl::Status Read(absl::string_view piece) { return reader_.Read(piece); }
  // Once, after the last bytes: the collection, with the counts that Store::Import wants.
  // DATA_LOSS.
  absl::StatusOr<StoredCollection> Finish();

 private:
  absl::Status TakeCollection(const v1::SnapshotCollection& head);
  absl::Status TakeAnchors(const v1::SnapshotAnchors& part);
  absl::Status TakeItems(v1::SnapshotItems items);

  const Visitor visitor_;
  SnapshotReader reader_;
  StoredCollection collection_;
  uint64_t items_ = 0;  // that have come
};

// Hands over the items of a snapshot in a file. DATA_LOSS as of SnapshotParser; errors of
// ScratchFile and of `visit`.
absl::Status ReadSnapshotItems(const ScratchFile& snapshot, Store::GalleryPartVisitor visit);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_SNAPSHOT_IO_H_
