#include "server/engine/encrypted_collection.h"

#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server {

EncryptedCollection::EncryptedCollection(MemoryCheck check)
    : check_(std::move(check)), pass_([this] {
        ScoredRows scored;
        const std::shared_ptr<const EncryptedRows> rows = this->rows();
        if (rows == nullptr) return scored;
        for (const auto& block : rows->blocks) scored.blocks.push_back(block->values());
        scored.dimensions = rows->dimensions;
        scored.owner = rows;
        return scored;
      }) {}

absl::Status EncryptedCollection::CatchUp(Store& store, const PublicParameters& parameters) {
  const std::lock_guard<std::mutex> writer_guard(writer_mutex_);
  absl::Status status;
  std::shared_ptr<const EncryptedRows> next;
  try {
    if (writer_ == nullptr) writer_ = std::make_unique<EncryptedRowsWriter>();
    status = Read(store, parameters);
    if (status.ok()) next = writer_->Publish(version_);
  } catch (const std::exception& error) {  // no memory: the writer is of no further use
    writer_ = nullptr;
    version_ = 0;
    status = absl::ResourceExhaustedError(
        absl::StrCat("no memory for the rows of the collection: ", error.what()));
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  problem_ = status;
  if (status.ok()) std::swap(rows_, next);  // the former one is destroyed after the lock
  return status;
}

absl::Status EncryptedCollection::Read(Store& store, const PublicParameters& parameters) {
  PM_ASSIGN_OR_RETURN(ItemChanges changes, Apply(store, parameters, version_));
  if (static_cast<int64_t>(changes.items) != writer_->items()) {
    // Tombstones had been pruned, so that deleted items are still here.
    writer_->BeginReload();
    PM_ASSIGN_OR_RETURN(changes, Apply(store, parameters, 0));
    writer_->EndReload();
  }
  if (static_cast<int64_t>(changes.items) != writer_->items()) {
    return absl::DataLossError(absl::StrCat("the store must have the ", changes.items,
                                            " items of its count, but has ", writer_->items()));
  }
  version_ = changes.latest_version;
  return absl::OkStatus();
}

absl::StatusOr<ItemChanges> EncryptedCollection::Apply(Store& store,
                                                       const PublicParameters& parameters,
                                                       uint64_t after) {
  ItemChanges all;
  bool is_first = true;
  PM_RETURN_IF_ERROR(store.ReadChanges(
      parameters, after, [&](const ItemChanges& changes, std::vector<Item> part) -> absl::Status {
        if (std::exchange(is_first, false)) {
          all = changes;
          for (const std::string& id : changes.deleted) writer_->Erase(id);
        }
        PM_RETURN_IF_ERROR(check_(writer_->memory() - memory() + writer_->MemoryToPut(part)));
        for (const Item& item : part) writer_->Put(item);
        return absl::OkStatus();
      }));
  return all;
}

absl::Status EncryptedCollection::CheckMemoryFor(absl::Span<const Item> items) const {
  const std::lock_guard<std::mutex> guard(writer_mutex_);
  const EncryptedRowsWriter empty;
  const EncryptedRowsWriter& writer = writer_ == nullptr ? empty : *writer_;
  return check_(writer.MemoryToPut(items));
}

std::shared_ptr<const EncryptedRows> EncryptedCollection::rows() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return rows_;
}

absl::Status EncryptedCollection::problem() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return problem_;
}

int64_t EncryptedCollection::memory() const {
  const std::shared_ptr<const EncryptedRows> rows = this->rows();
  return rows == nullptr ? 0 : rows->memory;
}

}  // namespace privatemail::server
