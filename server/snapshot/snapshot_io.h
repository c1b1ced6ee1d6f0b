// Writing and parsing of snapshots (common/wire/snapshot.h).
#ifndef PRIVATEMAIL_SERVER_SNAPSHOT_SNAPSHOT_IO_H_
#define PRIVATEMAIL_SERVER_SNAPSHOT_SNAPSHOT_IO_H_

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

// Writes all items of one moment and returns their number. Takes some megabytes of memory. The
// store waits for `emit`, which gets one block at a time. Errors of `emit` and of
// Catalog::ReadGallery.
absl::StatusOr<uint64_t> WriteSnapshot(const Catalog& catalog, const CollectionView& collection,
                                       const SnapshotWriter::Emit& emit);

// A parser of untrusted snapshots. Takes the memory of one block and at most twice that of the
// received anchors. Not thread-safe.
class SnapshotParser {
 public:
  // Called in this order. An error ends the parsing and is returned; INVALID_ARGUMENT becomes
  // DATA_LOSS.
  struct Visitor {
    std::function<absl::Status(const v1::SnapshotCollection&)> announcement;
    std::function<absl::Status(Gallery part)> items;  // of one block each; versions are not set
    bool checks_items = true;  // by CheckItem; false: these bytes were parsed before
  };
  explicit SnapshotParser(Visitor visitor);
  SnapshotParser(const SnapshotParser&) = delete;
  SnapshotParser& operator=(const SnapshotParser&) = delete;

  // Parses the next bytes. DATA_LOSS naming the block: of SnapshotReader, or an invalid item.
  absl::Status Read(absl::string_view piece) { return reader_.Read(piece); }
  // Called once, after the last bytes. Returns the collection with the counts for Store::Import.
  // DATA_LOSS.
  absl::StatusOr<StoredCollection> Finish();

 private:
  absl::Status TakeCollection(const v1::SnapshotCollection& head, PublicParameters parameters);
  absl::Status TakeAnchors(const Anchors& part);
  absl::Status TakeItems(v1::SnapshotItems items);

  const Visitor visitor_;
  SnapshotReader reader_;
  StoredCollection collection_;
  uint64_t items_ = 0;  // received
};

// Passes the items of a snapshot that was parsed before to `visit`, which may write them in a
// transaction. Errors of SnapshotParser, ScratchFile and `visit`.
absl::Status ReadSnapshotItems(const ScratchFile& snapshot, Store::GalleryPartVisitor visit);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SNAPSHOT_SNAPSHOT_IO_H_
