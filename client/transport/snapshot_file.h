// Snapshots of collections in files.
#ifndef PRIVATEMAIL_CLIENT_TRANSPORT_SNAPSHOT_FILE_H_
#define PRIVATEMAIL_CLIENT_TRANSPORT_SNAPSHOT_FILE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "client/files/private_file.h"
#include "privatemail/admin_client.h"

namespace privatemail::client {

// The part of a snapshot that is done, of the whole: items or bytes. May be null.
using SnapshotProgress = std::function<void(int64_t done, int64_t total)>;

struct SavedSnapshot {
  int64_t items = 0;
  int64_t anchors = 0;
  uint64_t latest_version = 0;
  int64_t bytes = 0;
};

// Saves a consistent copy of a collection to a file of mode 0600, verified while it is written.
// - max_bytes: of the file; 0: twice what the collection's counts suggest, and at most half of the
//   free space, since the server announces what it likes.
// - INVALID_ARGUMENT, ALREADY_EXISTS: as PrivateFile::Create. RESOURCE_EXHAUSTED: max_bytes.
//   DATA_LOSS: a checksum does not match. Without success an existing file stays.
absl::StatusOr<SavedSnapshot> SaveSnapshot(const AdminClient& admin, const std::string& name,
                                           const std::string& path, PrivateFile::Existing existing,
                                           int64_t max_bytes, const SnapshotProgress& progress);

struct RestoredCollection {
  v1::GetCollectionResponse collection;
  std::string snapshot_of;   // the name that the collection had
  bool same_digest = false;  // budgets granted for it stay valid
};

// Creates a collection from a snapshot file, without its embedding. The whole file is verified
// before anything is sent, and stored completely or not at all.
// verified, sent: progress of either pass, in bytes.
// INVALID_ARGUMENT: the file cannot be read. DATA_LOSS: it is damaged.
absl::StatusOr<RestoredCollection> RestoreSnapshot(const AdminClient& admin,
                                                   const std::string& name, const std::string& path,
                                                   const SnapshotProgress& verified,
                                                   const SnapshotProgress& sent);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_TRANSPORT_SNAPSHOT_FILE_H_
