#include "client/search/encrypted/row_tables.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/schemes/memory_budget.h"
#include "common/base/digests.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

using Kind = BlockCache::Kind;

std::vector<std::string> SplitDigests(const std::string& digests) {
  std::vector<std::string> all;
  for (size_t at = 0; at < digests.size(); at += kBlockDigestBytes) {
    all.push_back(digests.substr(at, kBlockDigestBytes));
  }
  return all;
}

}  // namespace

template <typename Block>
std::vector<uint64_t> RowTables::KnownOf(Kind kind, Held<Block>* held) {
  if (!std::exchange(held->loaded, true)) {
    BlockCache::Blocks cached = cache_->Load(kind, max_memory_);
    for (auto& [digest, held_content] : cached) {
      const std::string content = std::move(held_content);  // freed once it is parsed
      const auto block = Block::Parse(content, max_memory_);
      if (!block.ok()) continue;  // it does not fit this limit
      held->blocks[digest] = {*block, static_cast<int64_t>(content.size())};
      held->latest += digest;  // of two tables, as the cache keeps them
    }
  }
  std::vector<uint64_t> known;
  for (const auto& [digest, entry] : held->blocks) known.push_back(Sha256::Prefix(digest));
  return known;
}

KnownBlocks RowTables::Known(bool with_payloads) {
  const std::lock_guard<std::mutex> lock(mutex_);
  KnownBlocks known{.table = KnownOf(Kind::kTable, &table_), .payloads = {}};
  if (with_payloads) known.payloads = KnownOf(Kind::kPayloads, &payloads_);
  return known;
}

// Cached first, so that the content of each block is freed once it is parsed.
template <typename Block>
absl::StatusOr<std::vector<std::shared_ptr<const Block>>> RowTables::TakeBlocks(
    Kind kind, const char* what, const std::string& digests, BlockCache::Blocks received,
    std::vector<std::string>* warnings, Held<Block>* held) {
  std::map<std::string, typename Held<Block>::Entry> all = held->blocks;
  for (const auto& [digest, content] : received) {
    if (const absl::Status fits = CheckBlockMemory(content, max_memory_); !fits.ok()) {
      return WithContext(absl::StrCat(what, ": "), fits);
    }
    all[digest].bytes = static_cast<int64_t>(content.size());
  }
  const std::vector<std::string> latest = SplitDigests(digests);
  int64_t bytes = 0;
  for (size_t i = 0; i < latest.size(); ++i) {
    const auto entry = all.find(latest[i]);
    if (entry == all.end()) {
      return absl::DataLossError(absl::StrCat(what, ": block ", i,
                                              " must be sent or known, but is neither; everything "
                                              "is fetched again next time"));
    }
    bytes += entry->second.bytes;
  }
  PM_RETURN_IF_ERROR(
      CheckMemory(static_cast<double>(bytes), absl::StrCat("the ", what), max_memory_));
  const bool is_new = held->latest != digests || !received.empty();
  if (const absl::Status saved = is_new ? cache_->Save(kind, digests, received) : absl::OkStatus();
      !saved.ok()) {
    warnings->push_back(absl::StrCat(saved.message(), ": they are fetched again next time"));
  }
  for (auto& [digest, held_content] : received) {
    const std::string content = std::move(held_content);
    absl::StatusOr<std::shared_ptr<const Block>> block = Block::Parse(content, max_memory_);
    if (!block.ok()) return WithContext(absl::StrCat(what, ": "), block.status());
    all[digest].block = *std::move(block);
  }
  std::vector<std::shared_ptr<const Block>> blocks;
  for (const std::string& digest : latest) blocks.push_back(all[digest].block);
  if (!is_new) return blocks;
  if (held->latest != digests) held->former = std::exchange(held->latest, digests);
  const std::vector<std::string> former = SplitDigests(held->former);
  std::set<std::string> kept(latest.begin(), latest.end());
  for (const std::string& digest : former) {
    const auto entry = all.find(digest);
    if (entry != all.end() && !kept.contains(digest)) bytes += entry->second.bytes;
  }
  if (bytes <= max_memory_) {
    kept.insert(former.begin(), former.end());
  } else {
    held->former.clear();
  }
  std::erase_if(all, [&](const auto& entry) { return !kept.contains(entry.first); });
  held->blocks = std::move(all);
  return blocks;
}

absl::Status RowTables::ForgetIfWrong(const absl::Status& status) {
  if (!absl::IsDataLoss(status)) return status;
  table_.blocks.clear();
  payloads_.blocks.clear();
  cache_->Clear().IgnoreError();  // what cannot be removed is checked again when it is loaded
  return status;
}

absl::StatusOr<RowTable> RowTables::Take(EncryptedAnswer* answer, const WarnFunction& warn) {
  std::vector<std::string> warnings;
  absl::StatusOr<RowTable> table = TakeLocked(answer, &warnings);
  for (const std::string& warning : warnings) warn(warning);  // it may search in turn
  return table;
}

absl::StatusOr<RowTable> RowTables::TakeLocked(EncryptedAnswer* answer,
                                               std::vector<std::string>* warnings) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto table = TakeBlocks(Kind::kTable, "row table", answer->header().table_digests,
                          answer->TakeTableBlocks(), warnings, &table_);
  if (!table.ok()) return ForgetIfWrong(table.status());
  // Without payloads there are no digests.
  RowTable::PayloadBlocks payloads;
  if (!answer->header().payload_digests.empty()) {
    auto taken = TakeBlocks(Kind::kPayloads, "payloads", answer->header().payload_digests,
                            answer->TakePayloadBlocks(), warnings, &payloads_);
    if (!taken.ok()) return ForgetIfWrong(taken.status());
    payloads = *std::move(taken);
  }
  absl::StatusOr<RowTable> whole = RowTable::Create(*std::move(table), std::move(payloads));
  if (!whole.ok()) return ForgetIfWrong(whole.status());
  if (const uint64_t items = answer->header().items; items != whole->CountItems()) {
    return ForgetIfWrong(absl::DataLossError(absl::StrCat(
        "items must be ", whole->CountItems(), ", as in the row table, but are ", items)));
  }
  return whole;
}

}  // namespace privatemail::client
