// New collections: from an operator's settings or from a snapshot.
#ifndef PRIVATEMAIL_SERVER_ENGINE_COLLECTION_CREATION_H_
#define PRIVATEMAIL_SERVER_ENGINE_COLLECTION_CREATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/cancellation.h"
#include "common/embedding/public_parameters.h"
#include "server/store/types.h"

namespace privatemail::server {

// An operator's settings of a new collection; PrepareCollection validates them. Without anchors
// only name, extractor, metric and with_encrypted are used, and with_encrypted is implied.
struct NewCollection {
  std::string name;
  EmbeddingSettings settings;
  Anchors anchors;
  std::vector<std::string> class_names;
  std::string extractor;
  std::vector<int64_t> cells = {};  // one partition of the anchors for each number of cells
  std::optional<CellCode> cell_code = std::nullopt;
  bool publish_quality = false;
  Metric metric = Metric::kCosine;
  bool with_encrypted = false;
};

// INVALID_ARGUMENT: no collection can have this name.
absl::Status CheckCollectionName(absl::string_view name);

// Computes a collection's public parameters under a new UUID. Trains partitions and codebook on the
// anchors at low priority. INVALID_ARGUMENT naming the field; CANCELLED.
absl::StatusOr<StoredCollection> PrepareCollection(NewCollection collection,
                                                   const CancelledFunction& cancelled);

// DATA_LOSS: the parameters of a snapshot do not belong to its anchors.
absl::Status CheckSnapshotParameters(const StoredCollection& collection);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_COLLECTION_CREATION_H_
