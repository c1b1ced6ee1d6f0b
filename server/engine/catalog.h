// The collections of a daemon: in memory for searches, in the store for good.
#ifndef PRIVATEMAIL_SERVER_ENGINE_CATALOG_H_
#define PRIVATEMAIL_SERVER_ENGINE_CATALOG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/numerics/smlq.h"
#include "common/protocol/public_parameters.h"
#include "server/engine/retriever.h"
#include "server/store/store.h"
#include "server/store/types.h"

namespace privatemail {

// What of a collection never changes.
struct PublishedCollection {
  std::string name;
  PublicParameters parameters;
  std::string fingerprint;  // 32 bytes
  Anchors anchors;
};

// A collection at one moment. What it points to stays valid and unchanged, whatever happens to the
// collection meanwhile.
struct CollectionView {
  std::shared_ptr<const PublishedCollection> published;
  std::shared_ptr<const Retriever> retriever;  // null before the first build
  uint64_t items = 0;                          // stored, embedded or not

  // The retriever, or FAILED_PRECONDITION naming the command that builds it.
  absl::StatusOr<std::shared_ptr<const Retriever>> Built() const;
};

// What an operator says about a new collection; MakePublicParameters checks it.
struct NewCollection {
  std::string name;
  EmbeddingSettings settings;
  Anchors anchors;
  std::vector<std::string> class_names;
  std::string extractor;
};

// Thread-safe. Looking a collection up waits for a map lookup at most: neither a build nor a write
// to the store holds it up. A finished build replaces the collection's retriever in one step, and
// searches under way keep the one they have. Writes to items leave the retriever as it is until the
// next build. Errors of the store pass through unchanged.
class Catalog {
 public:
  // Loads every collection with its last embedding, so that searches are answered at once.
  static absl::StatusOr<std::unique_ptr<Catalog>> Open(std::unique_ptr<Store> store);

  // NOT_FOUND: "collection birds does not exist".
  absl::StatusOr<CollectionView> Find(absl::string_view name) const;
  std::vector<CollectionView> List() const;  // by name

  // INVALID_ARGUMENT naming the field; ALREADY_EXISTS.
  absl::StatusOr<CollectionView> Create(NewCollection collection);

  // Returns how many items went with it. A build under way ends with ABORTED. NOT_FOUND.
  absl::StatusOr<uint64_t> Delete(absl::string_view name);

  // One durable batch into the very collection of the view, never into a later one of its name.
  // NOT_FOUND: it was deleted.
  absl::StatusOr<UpsertResult> Upsert(const CollectionView& collection,
                                      absl::Span<const Item> items);

  // Embeds what is stored and lets it answer. The observer is called with 0 before the work and
  // after each step; a status of its own ends the build and leaves the former embedding in place.
  // NOT_FOUND. FAILED_PRECONDITION: no items, or those of Embed. ABORTED: the collection is being
  // built already, or was deleted meanwhile.
  absl::StatusOr<CollectionView> Build(absl::string_view name, const StepObserver& observer);

 private:
  struct Entry {
    CollectionView view;
    bool building = false;
    bool deleted = false;  // for those who still hold the entry
  };

  explicit Catalog(std::unique_ptr<Store> store) : store_(std::move(store)) {}

  absl::StatusOr<std::shared_ptr<Entry>> FindEntry(absl::string_view name) const;
  bool IsDeleted(const Entry& entry) const;
  // Marks the entry as being built and hands it out, or says why not.
  absl::StatusOr<std::shared_ptr<Entry>> BeginBuild(absl::string_view name);
  absl::Status RunBuild(Entry* entry, const StepObserver& observer);

  const std::unique_ptr<Store> store_;
  std::mutex administration_mutex_;  // one Create or Delete at a time; taken before mutex_
  mutable std::mutex mutex_;         // guards the map and all entries; never held over store calls
  std::map<std::string, std::shared_ptr<Entry>, std::less<>> entries_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_ENGINE_CATALOG_H_
