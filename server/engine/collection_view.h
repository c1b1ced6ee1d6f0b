// An immutable snapshot of a collection in memory.
#ifndef PRIVATEMAIL_SERVER_ENGINE_COLLECTION_VIEW_H_
#define PRIVATEMAIL_SERVER_ENGINE_COLLECTION_VIEW_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/embedding/public_parameters.h"
#include "server/cells/cell_index.h"
#include "server/engine/encrypted_collection.h"
#include "server/engine/hidden_rows.h"
#include "server/engine/retriever.h"

namespace privatemail::server {

// The immutable part of a collection.
struct PublishedCollection {
  std::string name;
  PublicParameters parameters;
  std::string fingerprint;  // 32 bytes
  Anchors anchors;
};

// A collection at one moment. What it points to stays valid and, but for `encrypted`, unchanged.
struct CollectionView {
  std::shared_ptr<const PublishedCollection> published;
  std::shared_ptr<const Retriever> retriever;         // null before the first build
  std::shared_ptr<const HiddenRows> hidden;           // deleted rows of `retriever`; null: none
  std::shared_ptr<const CellIndex> cells;             // null until it is built, and without cells
  std::shared_ptr<const HiddenRows> hidden_in_cells;  // deleted rows of `cells`; null: none
  std::shared_ptr<const CellQuality> quality;         // of `cells`; null until it is measured
  std::shared_ptr<EncryptedCollection> encrypted;     // null unless the collection offers it
  uint64_t items = 0;                                 // stored, embedded or not
  uint64_t latest_version = 0;                        // last change of the store that it includes
  absl::Status embedding_problem;                     // why a stored embedding is not served
  absl::Status cells_problem;  // why the last attempt to build `cells` failed

  bool has_cells() const { return !published->parameters.cell_partitions.empty(); }

  // Items that a search can find.
  uint64_t embedded_items() const;

  // Insertions, updates and deletions since the gallery of the embedding.
  uint64_t changes_since_embedding() const;

  // Approximate bytes that a build takes, with features in memory or in a file.
  enum class Features { kInMemory, kInFile };
  int64_t build_memory(Features features) const;

  // Approximate bytes that stay: anchors and parameters, embedding, encrypted rows and cell index,
  // with full caches.
  int64_t resident_memory() const;
};

// Approximate bytes of a collection's anchors and parameters.
int64_t MemoryOf(const PublicParameters& parameters);

// RESOURCE_EXHAUSTED if `purpose` takes more than `memory` bytes.
absl::Status CheckBuildMemory(absl::string_view purpose, int64_t bytes, int64_t memory);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_COLLECTION_VIEW_H_
