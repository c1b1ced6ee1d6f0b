// The public sides of collections that the searches of one client share.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_COLLECTION_CACHE_H_
#define PRIVATEMAIL_CLIENT_SEARCH_COLLECTION_CACHE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "client/schemes/published_collection.h"
#include "common/base/status_macros.h"
#include "privatemail/transport.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// Fetches the anchors that the collection publishes. Both arguments must outlive the function.
inline FetchAnchors AnchorsOf(const v1::GetCollectionResponse& published,
                              const Transport& transport) {
  return [&] { return transport.GetAnchors(published.name(), published.fingerprint()); };
}

// Anchors and what was computed from them, by the collections' names. Thread-safe.
template <typename Collection>
class CollectionCache {
 public:
  // The collection with what the server publishes now. `fetch` is called unless the cache has the
  // same anchors and embedding; two callers may fetch at once.
  template <typename Fetch>
  absl::StatusOr<std::shared_ptr<const Collection>> Get(const v1::GetCollectionResponse& published,
                                                        Fetch fetch) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = collections_.find(published.name());
      if (found != collections_.end() && found->second->IsOf(published)) {
        Collection renewed = *found->second;
        renewed.published = published;
        return found->second = std::make_shared<const Collection>(std::move(renewed));
      }
    }
    PM_ASSIGN_OR_RETURN(std::shared_ptr<const Collection> fetched, fetch());
    const std::lock_guard<std::mutex> lock(mutex_);
    return collections_[published.name()] = std::move(fetched);
  }

 private:
  std::mutex mutex_;  // guards the following
  std::map<std::string, std::shared_ptr<const Collection>> collections_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_COLLECTION_CACHE_H_
