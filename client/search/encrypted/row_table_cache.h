// Blocks of a collection's row table and payloads, cached in the state folder by their digest.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_ROW_TABLE_CACHE_H_
#define PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_ROW_TABLE_CACHE_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/search/encrypted/block_cache.h"

namespace privatemail::client {

inline constexpr std::chrono::hours kUnusedTableAge{30 * 24};

// The cached blocks of one collection at one server. Held by the client; public data, but which
// blocks there are tells when this user last searched: files have mode 0600, folders 0700.
// - Blocks of one server are never shown to another one, whose collections may have the same UUID.
// - Concurrent processes lose nothing; a damaged file counts as absent.
// - At most the blocks of two tables are kept: two daemons behind one name may lay rows out
//   differently.
// - A table that no process has loaded or changed for kUnusedTableAge is removed when another one
//   is saved: its collection may be gone.
class RowTableCache : public BlockCache {
 public:
  // server: its address, as the user gives it.
  RowTableCache(const std::string& state_folder, const std::string& server,
                const std::string& collection_uuid);

  // Removes files that are damaged; counts as a use.
  Blocks Load(Kind kind, int64_t max_bytes) override;

  // Also removes tables of other collections that are unused.
  // UNAVAILABLE: the folder cannot be created, locked within 3 s or written.
  absl::Status Save(Kind kind, const std::string& digests, const Blocks& received) override;

  // UNAVAILABLE: the folder cannot be locked.
  absl::Status Clear() override;

 private:
  // Lists the digests of the latest table and of the one before.
  std::string IndexPath(Kind kind) const;

  std::string root_;  // of all collections
  std::string folder_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_ROW_TABLE_CACHE_H_
