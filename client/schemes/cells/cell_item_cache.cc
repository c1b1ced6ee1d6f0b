#include "privatemail/cell_item_cache.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/items/item_code.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client {

int64_t CellItemCache::Item::bytes() const {
  return static_cast<int64_t>(id.size() + code.size() + (payload ? payload->size() : 0));
}

CellItemCache::CellItemCache(PublicParameters parameters, int64_t max_bytes)
    : parameters_(std::move(parameters)), max_bytes_(max_bytes) {}

absl::Status CellItemCache::Add(const v1::RetrieveCellsResponse& message) {
  const bool with_payloads = message.payloads_size() > 0;
  PM_RETURN_IF_ERROR(DecodeItems(parameters_, with_payloads, message).status());
  if (parameters_.SendsCoordinates()) {
    if (message.embedding_version() < embedding_version_) return absl::OkStatus();
    if (message.embedding_version() > embedding_version_) Clear();
    embedding_version_ = message.embedding_version();
  }
  const auto code_bytes = static_cast<size_t>(ItemCodeBytes(parameters_));
  for (int i = 0; i < message.ids_size(); ++i) {
    Item item{.id = message.ids(i),
              .label = message.labels(i),
              .code = message.codes().substr(static_cast<size_t>(i) * code_bytes, code_bytes),
              .payload = std::nullopt,
              .version = message.items_version()};
    if (with_payloads) item.payload = message.payloads(i);
    Insert(std::move(item));
  }
  return absl::OkStatus();
}

void CellItemCache::Insert(Item item) {
  if (const auto known = by_id_.find(item.id); known != by_id_.end()) {
    const bool same = known->second->version == item.version && known->second->code == item.code;
    if (same && !item.payload) item.payload = std::move(known->second->payload);
    Evict(known->second);
  }
  bytes_ += item.bytes();
  items_.push_back(std::move(item));
  by_id_[items_.back().id] = std::prev(items_.end());
  while (bytes_ > max_bytes_) Evict(items_.begin());
}

void CellItemCache::Evict(Items::iterator item) {
  bytes_ -= item->bytes();
  by_id_.erase(item->id);
  items_.erase(item);
}

void CellItemCache::Clear() {
  items_.clear();
  by_id_.clear();
  bytes_ = 0;
}

absl::StatusOr<CellQueryResult> CellItemCache::FindNearest(const CellTarget& target) const {
  if (!items_.empty()) PM_RETURN_IF_ERROR(CheckEmbeddingVersion(embedding_version_, target));
  CellQueryResult result;
  result.candidates = items();
  TopK nearest(target.k, nullptr);
  std::vector<const Item*> candidates;
  for (const Item& item : items_) {
    // Add has validated the code.
    const RowVector decoded = DecodeItemCodes(parameters_, item.code).value().row(0).cast<double>();
    nearest.Offer({std::ssize(candidates),
                   SquaredDistance(decoded.data(), target.point.data(), decoded.size())});
    candidates.push_back(&item);
    result.items_version = item.version;
  }
  for (const Neighbor& one : nearest.Sorted()) {
    const Item& item = *candidates[static_cast<size_t>(one.row)];
    result.matches.push_back(
        {item.id, item.label, one.squared_distance, item.payload.value_or("")});
  }
  return result;
}

std::vector<v1::RetrieveCellsResponse> CellItemCache::ToMessages() const {
  std::vector<v1::RetrieveCellsResponse> messages;
  const Item* previous = nullptr;
  for (const Item& item : items_) {
    const bool same_batch = previous != nullptr && previous->version == item.version &&
                            previous->payload.has_value() == item.payload.has_value();
    if (!same_batch) {
      messages.emplace_back().set_items_version(item.version);
      messages.back().set_embedding_version(embedding_version_);
    }
    v1::RetrieveCellsResponse& message = messages.back();
    message.add_ids(item.id);
    message.add_labels(item.label);
    message.mutable_codes()->append(item.code);
    if (item.payload) message.add_payloads(*item.payload);
    previous = &item;
  }
  return messages;
}

}  // namespace privatemail::client
