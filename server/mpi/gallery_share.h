// A rank's share of a gallery, and the collection of results on rank 0.
#ifndef PRIVATEMAIL_SERVER_MPI_GALLERY_SHARE_H_
#define PRIVATEMAIL_SERVER_MPI_GALLERY_SHARE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/row_file.h"
#include "server/mpi/ranks.h"
#include "server/store/postgres/embedded_items_encoder.h"
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

// The anchors' coordinates of all ranks, in order. coordinates: of this share.
absl::StatusOr<Matrix> CollectAnchors(const Ranks& ranks, const StoredCollection& collection,
                                      const GalleryShare& share, const Matrix& coordinates);

// The rows of all ranks on rank 0, as PostgresStore::SaveEncoded takes them.
class RowCollection {
 public:
  // key: of the embedding; coordinates: of this share. The arguments must outlive it.
  RowCollection(const Ranks& ranks, const RowShare& rows, const GalleryShare& share,
                const Matrix& coordinates, int64_t key);

  // On rank 0: a piece of its own rows, then of those of the other ranks; "" after the last.
  std::string Next();
  // On the others: sends all rows.
  void SendAll();

 private:
  const Ranks& ranks_;
  postgres::EmbeddedItemsEncoder own_;
  int from_ = 0;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_MPI_GALLERY_SHARE_H_
