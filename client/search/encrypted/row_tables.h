// The row tables of one collection that a search client holds, in memory and on disk.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_ROW_TABLES_H_
#define PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_ROW_TABLES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/schemes/encrypted/encrypted_answer.h"
#include "client/schemes/encrypted/row_table.h"
#include "client/search/encrypted/block_cache.h"
#include "privatemail/search_request.h"

namespace privatemail::client {

// The first 8 bytes of the digests of blocks (Sha256::Prefix), for a v1.SearchEncryptedRequest.
struct KnownBlocks {
  std::vector<uint64_t> table, payloads;
};

// Blocks that were received or cached, parsed, by digest. What it tells a server, all blocks that
// it holds, depends on the time of the last searches alone. Held by the client; public.
// Thread-safe.
class RowTables {
 public:
  // max_memory: bytes that the held blocks of tables, and those of payloads, may take.
  RowTables(std::shared_ptr<BlockCache> cache, int64_t max_memory)
      : cache_(std::move(cache)), max_memory_(max_memory) {}

  // The blocks that are held, of payloads only on request.
  KnownBlocks Known(bool with_payloads);

  // Moves the blocks of an answer into memory and cache, and returns the table that it names, with
  // payloads if the request asked for them. A cache that cannot be written is a warning.
  // DATA_LOSS: a block is malformed, or was neither sent nor held, or the table has another number
  // of items than the header; then everything is forgotten.
  // RESOURCE_EXHAUSTED: max_memory; nothing of the answer is kept.
  absl::StatusOr<RowTable> Take(EncryptedAnswer* answer, const WarnFunction& warn);

 private:
  // Blocks of one kind.
  template <typename Block>
  struct Held {
    struct Entry {
      std::shared_ptr<const Block> block;
      int64_t bytes;  // serialised
    };
    bool loaded = false;  // from the cache
    std::map<std::string, Entry> blocks;
    std::string latest, former;  // digests of the last two tables
  };

  template <typename Block>
  std::vector<uint64_t> KnownOf(BlockCache::Kind kind, Held<Block>* held);
  template <typename Block>
  absl::StatusOr<std::vector<std::shared_ptr<const Block>>> TakeBlocks(
      BlockCache::Kind kind, const char* what, const std::string& digests,
      BlockCache::Blocks received, std::vector<std::string>* warnings, Held<Block>* held);
  // Take without the warnings; requires mutex_.
  absl::StatusOr<RowTable> TakeLocked(EncryptedAnswer* answer, std::vector<std::string>* warnings);
  absl::Status ForgetIfWrong(const absl::Status& status);

  const std::shared_ptr<BlockCache> cache_;
  const int64_t max_memory_;
  std::mutex mutex_;  // guards the following
  Held<TableBlock> table_;
  Held<PayloadBlock> payloads_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_ENCRYPTED_ROW_TABLES_H_
