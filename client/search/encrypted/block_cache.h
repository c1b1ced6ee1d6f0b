// The interface of caches of a collection's row table and payloads.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_BLOCK_CACHE_H_
#define PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_BLOCK_CACHE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"

namespace privatemail::client {

// The cached blocks of one collection at one server, by their digest. Held by the client; public
// data, but which blocks there are tells when this user last searched. Implementations: files of
// the state folder (row_table_cache.h), and memory that the caller of the C interface keeps.
class BlockCache {
 public:
  enum class Kind { kTable, kPayloads };
  using Blocks = std::map<std::string, std::string>;  // content by digest

  virtual ~BlockCache() = default;

  // The blocks whose content has its digest, up to max_bytes together, those of the latest table
  // first.
  virtual Blocks Load(Kind kind, int64_t max_bytes) = 0;

  // Adds the received blocks and removes those that are neither of this table nor of the last one
  // that was different.
  // digests: of all blocks of the table, one after another.
  // UNAVAILABLE: the cache cannot be written.
  virtual absl::Status Save(Kind kind, const std::string& digests, const Blocks& received) = 0;

  // Removes all blocks. UNAVAILABLE: they cannot be removed.
  virtual absl::Status Clear() = 0;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_BLOCK_CACHE_H_
