// The life of a collection's encrypted rows: loading, catching up with the store, searching.
#ifndef PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_COLLECTION_H_
#define PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_COLLECTION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/embedding/public_parameters.h"
#include "server/engine/encrypted_rows.h"
#include "server/engine/score_pass.h"
#include "server/store/store.h"

namespace privatemail::server {

// Rows of a collection that offers encrypted searches. Server side. Thread-safe.
//   - Load reads all rows. Writes and searches do not wait for it.
//   - CatchUp reads from the store what changed since: after each write of this daemon before it is
//     acknowledged, and after writes of other daemons. Searches never wait for it.
//   - Rows that cannot be brought up to date within the limit of memory are released: a search is
//     refused rather than answered from deleted items.
class EncryptedCollection {
 public:
  // RESOURCE_EXHAUSTED: so many bytes beyond memory() exceed a limit.
  using MemoryCheck = std::function<absl::Status(int64_t bytes)>;

  explicit EncryptedCollection(MemoryCheck check);
  ~EncryptedCollection();

  // Announces a Load, so that CatchUp leaves the first version to it. False: there is a version, or
  // one is announced already that EndAnnouncedLoad has not ended.
  bool AnnounceLoad();
  void EndAnnouncedLoad() { announced_ = false; }
  // Publishes the first version unless there is one. Concurrent calls take turns. Errors of the
  // store and of the check. CANCELLED: stopped, or no longer needed. DATA_LOSS: the store has
  // another number of items than it says, or features of another dimension.
  absl::Status Load(Store& store, const PublicParameters& parameters,
                    const std::atomic<bool>& stopped);

  // Publishes rows of the store's present version, or of a later one. Concurrent calls share a
  // reading of the store that began after all of them. Without a version this is Load, or nothing
  // if one is awaited, which will find what is stored now. Errors of Load. After an error the
  // former version stays, and the next call continues from it; but after RESOURCE_EXHAUSTED rows()
  // is null.
  absl::Status CatchUp(Store& store, const PublicParameters& parameters);

  // RESOURCE_EXHAUSTED: these items would exceed the limit. stored: items of the collection, which
  // count as long as their rows are not loaded.
  absl::Status CheckMemoryFor(absl::Span<const Item> items, int64_t stored) const;

  // Null before the first version.
  std::shared_ptr<const EncryptedRows> rows() const;
  // Why the last Load or CatchUp failed.
  absl::Status problem() const;
  int64_t memory() const;  // bytes, of rows that are being loaded, too

  // Scores of concurrent queries.
  ScorePass& pass() { return pass_; }

 private:
  struct Reading;  // rows as far as they have been read
  // Called with the bytes of a reading before they grow by `more`.
  using Admit = absl::FunctionRef<absl::Status(int64_t bytes, int64_t more)>;

  absl::Status LoadFirst(Store& store, const PublicParameters& parameters, Admit admit);
  // The following require writer_mutex_.
  absl::Status CatchUpLocked(Store& store, const PublicParameters& parameters);
  void Publish(std::unique_ptr<Reading> reading);
  void Release();

  const MemoryCheck check_;
  std::mutex load_mutex_;  // serializes Load; locked before writer_mutex_
  std::atomic<bool> announced_ = false;
  std::atomic<uint64_t> begun_ = 0;   // readings of CatchUp so far; changed under writer_mutex_
  mutable std::mutex writer_mutex_;   // guards the following
  std::unique_ptr<Reading> reading_;  // null exactly if rows_ is
  bool awaits_load_ = false;
  uint64_t succeeded_ = 0;  // the last reading of CatchUp, by number, that succeeded

  mutable std::mutex mutex_;  // guards the following, for moments; locked last
  std::shared_ptr<const EncryptedRows> rows_;
  int64_t loading_memory_ = 0;  // of a Load that runs
  absl::Status problem_;

  ScorePass pass_;  // last: it uses rows()
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_COLLECTION_H_
