// A rank's part of a gallery: out of the store, and with its coordinates to rank 0.
#ifndef PRIVATEMAIL_SERVER_MPI_GALLERY_SHARE_H_
#define PRIVATEMAIL_SERVER_MPI_GALLERY_SHARE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/point_file.h"
#include "server/mpi/ranks.h"
#include "server/store/postgres/postgres_store.h"

namespace privatemail::server {

// The rows of a share: items in the order of their ids and, behind the last one, anchors.
struct GalleryShare {
  Gallery columns;                    // of the items here, without features
  std::vector<int32_t> labels;        // one a row
  std::shared_ptr<PointFile> points;  // one a row
};

// Reads no other items. Features are in a file in `directory` meanwhile. Errors: those of
// PostgresStore::ReadRange and of PointFile.
absl::StatusOr<GalleryShare> ReadShare(PostgresStore* store, const StoredCollection& collection,
                                       const RowShare& rows, const std::string& directory);

// How many rows of all ranks have a label, out of what each one's have.
absl::StatusOr<std::map<int32_t, int64_t>> CountAllLabels(const Ranks& ranks,
                                                          const std::vector<int32_t>& labels);

// Rank 0 gets ids, labels, payloads and coordinates of all rows in their order, and with them the
// memory that they take; the others get an empty embedding. coordinates: of the rows here. All
// ranks have agreed that they have them.
Embedding Collect(const Ranks& ranks, const StoredCollection& collection, const GalleryShare& share,
                  const Matrix& coordinates);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_MPI_GALLERY_SHARE_H_
