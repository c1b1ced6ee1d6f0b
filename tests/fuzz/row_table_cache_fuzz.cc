// Fuzzes the cached row table on the disk. The first byte says whether the file of a block has the
// name of its digest and whether the rest is the block or the index of blocks. Only blocks that
// have their digest are loaded, and a searcher names only those that it can parse.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/search/encrypted/row_table_cache.h"
#include "client/search/encrypted/row_tables.h"
#include "common/base/digests.h"
#include "tests/fuzz/fuzz.h"

namespace privatemail::client {
namespace {

namespace fs = std::filesystem;

void WriteTo(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// In memory where that is possible: writes to a disk wait for it.
fs::path Root() {
  return fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
}

// A cache in a folder of this process, which is removed at the end.
class CacheOnDisk {
 public:
  CacheOnDisk()
      : state_(Root() / absl::StrCat("row_table_cache_fuzz.", ::getpid())),
        cache_((fs::create_directories(state_), state_.string()), "server", "uuid") {
    Require(cache_.Save(RowTableCache::Kind::kTable, std::string(kBlockDigestBytes, 'd'), {}).ok());
    folder_ = fs::directory_iterator(state_ / "rows")->path();
  }
  ~CacheOnDisk() { fs::remove_all(state_); }

  void Check(bool is_index, bool has_right_name, const std::string& content) {
    const std::string digest = Sha256::Of(content);
    const std::string named = has_right_name ? digest : std::string(kBlockDigestBytes, 'x');
    const fs::path block = folder_ / ("table-" + absl::BytesToHexString(named));
    WriteTo(is_index ? folder_ / "index-table" : block, content);

    const bool expected = !is_index && has_right_name;
    const RowTableCache::Blocks blocks = cache_.Load(RowTableCache::Kind::kTable, kMemory);
    Require(blocks ==
            (expected ? RowTableCache::Blocks{{digest, content}} : RowTableCache::Blocks()));
    Require(fs::exists(block) == expected);

    const auto cache = std::make_shared<RowTableCache>(state_.string(), "server", "uuid");
    const KnownBlocks known = RowTables(cache, kMemory).Known(/*with_payloads=*/false);
    const bool parses = expected && TableBlock::Parse(content, kMemory).ok();
    Require(known.table.size() == (parses ? 1U : 0U));

    // Saving replaces the content and removes the block, which no table holds.
    for (const char name : {'1', '2'}) {
      Require(
          cache_.Save(RowTableCache::Kind::kTable, std::string(kBlockDigestBytes, name), {}).ok());
    }
    Require(cache_.Load(RowTableCache::Kind::kTable, kMemory).empty());
  }

 private:
  static constexpr int64_t kMemory = 1 << 20;

  const fs::path state_;
  RowTableCache cache_;
  fs::path folder_;
};

}  // namespace
}  // namespace privatemail::client

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static privatemail::client::CacheOnDisk cache;
  if (size == 0) return 0;
  cache.Check((data[0] & 1) != 0, (data[0] & 2) != 0,
              std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
