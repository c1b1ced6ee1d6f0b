// The life of a collection's encrypted rows: loading, catching up with the store, searching.
#ifndef PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_COLLECTION_H_
#define PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_COLLECTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/embedding/public_parameters.h"
#include "server/engine/encrypted_rows.h"
#include "server/engine/encrypted_rows_writer.h"
#include "server/engine/score_pass.h"
#include "server/store/store.h"

namespace privatemail::server {

// Rows of a collection that offers encrypted searches. One path brings them up to date: CatchUp, at
// the start, after each write of this daemon before it is acknowledged, and after writes of other
// daemons. It reads from the store what changed since. Searches take the latest version and never
// wait for it. Thread-safe.
class EncryptedCollection {
 public:
  // RESOURCE_EXHAUSTED: so many bytes beyond memory() exceed a limit.
  using MemoryCheck = std::function<absl::Status(int64_t bytes)>;

  explicit EncryptedCollection(MemoryCheck check);

  // Rows of the store's present version, or of a later one. Callers take turns. After an error the
  // former version stays, and the next call continues from it. Errors of the store and of the
  // check; DATA_LOSS: the store has another number of items than it says.
  absl::Status CatchUp(Store& store, const PublicParameters& parameters);

  // RESOURCE_EXHAUSTED: these items would exceed the limit.
  absl::Status CheckMemoryFor(absl::Span<const Item> items) const;

  // Null before the first version.
  std::shared_ptr<const EncryptedRows> rows() const;
  // Why the last CatchUp failed.
  absl::Status problem() const;
  int64_t memory() const;  // bytes

  // Scores of concurrent queries. The owner of an answer's rows is its EncryptedRows.
  ScorePass& pass() { return pass_; }

 private:
  // The following require writer_mutex_.
  absl::Status Read(Store& store, const PublicParameters& parameters);
  // Applies the changes after version `after`; returns them.
  absl::StatusOr<ItemChanges> Apply(Store& store, const PublicParameters& parameters,
                                    uint64_t after);

  const MemoryCheck check_;
  mutable std::mutex writer_mutex_;              // guards the following
  std::unique_ptr<EncryptedRowsWriter> writer_;  // null: nothing is loaded
  uint64_t version_ = 0;                         // of the collection, that the writer has

  mutable std::mutex mutex_;  // guards the following, for moments
  std::shared_ptr<const EncryptedRows> rows_;
  absl::Status problem_;

  ScorePass pass_;  // last: it uses rows()
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_COLLECTION_H_
