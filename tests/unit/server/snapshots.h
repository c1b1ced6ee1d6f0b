// Helpers for snapshots in memory.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_SNAPSHOTS_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_SNAPSHOTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/engine/catalog.h"
#include "server/store/types.h"

namespace privatemail::testing {

using namespace server;  // NOLINT: every test of the server

// The content of a snapshot. The counts of the collection are those of the snapshot.
struct SnapshotContents {
  StoredCollection collection;
  Gallery gallery;
};

Gallery LoadGallery(const Catalog& catalog, const CollectionView& view);
std::string SnapshotOf(const Catalog& catalog, const CollectionView& view);
// Encodes any content, also inconsistent, in well-formed blocks.
std::string BytesOf(const SnapshotContents& contents);
absl::StatusOr<SnapshotContents> Parse(const std::string& bytes);
absl::StatusOr<CollectionView> Restore(Catalog* catalog, const SnapshotContents& contents);

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_SNAPSHOTS_H_
