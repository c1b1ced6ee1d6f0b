// Items received for cells, cached in the state folder for `privatemail rank`.
#ifndef PRIVATEMAIL_CLIENT_QUERIES_ITEM_CACHE_H_
#define PRIVATEMAIL_CLIENT_QUERIES_ITEM_CACHE_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/queries/query_batch.h"
#include "privatemail/cell_item_cache.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

struct CachedItems {
  PublicParameters parameters;
  std::vector<v1::GetAnchorsResponse> anchors;  // with cell code none only: items are coordinates
  CellItemCache items;
};

// Adds answers to the collection's cache: one file per name, mode 0600.
// - Replaces, with a warning, the cache of another collection of that name or, with cell code
//   none, of another embedding.
// - A damaged file is renamed to *.damaged, with a warning.
// - Concurrent writers wait for each other, at most 30 s.
// anchors: the GetAnchors response, stored with cell code none. warn: sees the warnings.
// Errors: those of CellItemCache::Add for messages that are left out; those of LoadChecked, but for
// NOT_FOUND and DATA_LOSS; UNAVAILABLE: the file cannot be written, or the folder not locked.
absl::Status CacheItems(const std::string& state_folder,
                        const v1::GetCollectionResponse& collection,
                        const std::vector<v1::GetAnchorsResponse>& anchors,
                        const std::vector<v1::RetrieveCellsResponse>& answers,
                        const WarnFunction& warn);

// Caches the answers of a batch every few seconds; an interruption loses the last ones only.
// Privacy: write times depend on the clock and on answers, both known to the server.
class AnswerCache {
 public:
  using Clock = std::chrono::steady_clock;

  AnswerCache(std::string state_folder, v1::GetCollectionResponse collection,
              std::vector<v1::GetAnchorsResponse> anchors, WarnFunction warn,
              Clock::duration every = std::chrono::seconds(2));

  void Add(const std::vector<v1::RetrieveCellsResponse>& answer);
  // Writes the rest. Returns the first error of all writes.
  absl::Status Finish();

 private:
  void Write();

  std::string state_folder_;
  v1::GetCollectionResponse collection_;
  std::vector<v1::GetAnchorsResponse> anchors_;
  WarnFunction warn_;
  Clock::duration every_;
  Clock::time_point written_ = Clock::now();
  std::vector<v1::RetrieveCellsResponse> unwritten_;
  absl::Status status_;
};

// Warns that `privatemail rank` will miss items.
void WarnIfNotCached(const absl::Status& cached, const WarnFunction& warn);

// NOT_FOUND: the cache is empty. DATA_LOSS: the file is damaged.
absl::StatusOr<CachedItems> LoadCachedItems(const std::string& state_folder,
                                            const std::string& collection);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_QUERIES_ITEM_CACHE_H_
