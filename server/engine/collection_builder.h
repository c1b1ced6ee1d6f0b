// Builds: embedding what the store has of a collection.
#ifndef PRIVATEMAIL_SERVER_ENGINE_COLLECTION_BUILDER_H_
#define PRIVATEMAIL_SERVER_ENGINE_COLLECTION_BUILDER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/collection_registry.h"
#include "server/engine/embed.h"
#include "server/engine/store_synchronizer.h"
#include "server/store/store.h"

namespace privatemail::server {

// Runs at most one build of a collection at a time, at low priority. Thread-safe.
class CollectionBuilder {
 public:
  // All must outlive it. directory: for scratch files.
  CollectionBuilder(Store* store, CollectionRegistry* registry, StoreSynchronizer* synchronizer,
                    std::string directory)
      : store_(store),
        registry_(registry),
        synchronizer_(synchronizer),
        directory_(std::move(directory)) {}

  // As Catalog::Build.
  absl::StatusOr<CollectionView> Build(absl::string_view name, const StepObserver& observer,
                                       int64_t memory);

 private:
  absl::Status Run(const CollectionRegistry::EntryPtr& entry, const StepObserver& observer,
                   int64_t memory);
  absl::StatusOr<Embedding> EmbedStored(const CollectionView& view, const StepObserver& observer,
                                        int64_t memory);

  Store* const store_;
  CollectionRegistry* const registry_;
  StoreSynchronizer* const synchronizer_;
  const std::string directory_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_COLLECTION_BUILDER_H_
