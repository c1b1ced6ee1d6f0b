// A rank's share of a gallery, and the collection of results.
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

// The rows of a share: items ordered by id, followed by anchors.
struct GalleryShare {
  Gallery columns;                    // items of this share, without features
  std::vector<int32_t> labels;        // one a row
  std::shared_ptr<PointFile> points;  // one a row
};

// Reads the items of this share only, with features in a scratch file in `directory`. Errors of
// PostgresStore::ReadRange and PointFile.
absl::StatusOr<GalleryShare> ReadShare(PostgresStore* store, const StoredCollection& collection,
                                       const RowShare& rows, const std::string& directory);

// The number of rows of all ranks with each label.
absl::StatusOr<std::map<int32_t, int64_t>> CountAllLabels(const Ranks& ranks,
                                                          const std::vector<int32_t>& labels);

// Gathers ids, labels, payloads and coordinates of all rows on rank 0, in memory; the others return
// an empty embedding. coordinates: of this share. Requires a preceding Agree.
Embedding Collect(const Ranks& ranks, const StoredCollection& collection, const GalleryShare& share,
                  const Matrix& coordinates);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_MPI_GALLERY_SHARE_H_
