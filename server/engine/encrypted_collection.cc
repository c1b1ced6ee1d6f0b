#include "server/engine/encrypted_collection.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

absl::Status NoMemory(const std::exception& error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory for the rows of the collection: ", error.what()));
}

}  // namespace

struct EncryptedCollection::Reading {
  EncryptedRowsWriter writer;
  int64_t collection = 0;  // its key; 0: nothing has been read
  int64_t dimensions = 0;
  uint64_t version = 0;  // of the collection

  static absl::StatusOr<std::unique_ptr<Reading>> OfAll(Store& store,
                                                        const PublicParameters& parameters,
                                                        Admit admit);
  // Reads on. `admit` precedes each part. False: a new reading must replace this one, because the
  // collection was replaced.
  absl::StatusOr<bool> ReadMore(Store& store, const PublicParameters& parameters, Admit admit);

 private:
  // Applies the changes after `after`; empty if this reads another collection.
  absl::StatusOr<std::optional<ItemChanges>> Apply(Store& store, const PublicParameters& parameters,
                                                   uint64_t after, Admit admit);
};

absl::StatusOr<std::unique_ptr<EncryptedCollection::Reading>> EncryptedCollection::Reading::OfAll(
    Store& store, const PublicParameters& parameters, Admit admit) {
  auto reading = std::make_unique<Reading>();
  if (store.is_shard()) reading->writer.PadBlocks();
  PM_ASSIGN_OR_RETURN(const bool same, reading->ReadMore(store, parameters, admit));
  if (!same) return absl::InternalError("a new reading is of no other collection");
  return reading;
}

absl::StatusOr<bool> EncryptedCollection::Reading::ReadMore(Store& store,
                                                            const PublicParameters& parameters,
                                                            Admit admit) {
  PM_ASSIGN_OR_RETURN(std::optional<ItemChanges> changes, Apply(store, parameters, version, admit));
  const auto items = [this](const ItemChanges& read) {
    return read.items.has_value() ? static_cast<int64_t>(*read.items) : writer.items();
  };
  if (changes.has_value() && items(*changes) != writer.items()) {
    // Tombstones had been pruned, so that deleted items are still here.
    writer.BeginReload();
    PM_ASSIGN_OR_RETURN(changes, Apply(store, parameters, 0, admit));
    writer.EndReload();
  }
  if (!changes.has_value()) return false;
  if (items(*changes) != writer.items()) {
    return absl::DataLossError(absl::StrCat("the store must have the ", items(*changes),
                                            " items of its count, but has ", writer.items()));
  }
  version = changes->latest_version;
  return true;
}

absl::StatusOr<std::optional<ItemChanges>> EncryptedCollection::Reading::Apply(
    Store& store, const PublicParameters& parameters, uint64_t after, Admit admit) {
  std::optional<ItemChanges> all;
  bool is_first = true, is_other = collection != 0 && dimensions != parameters.feature_dim;
  if (is_other) return all;
  const absl::Status read = store.ReadChanges(
      parameters, after, [&](const ItemChanges& changes, std::vector<Item> part) -> absl::Status {
        if (std::exchange(is_first, false)) {
          is_other = collection != 0 && collection != changes.collection;
          if (is_other) return absl::CancelledError("another collection");
          collection = changes.collection;
          dimensions = parameters.feature_dim;
          // So that what cannot fit is refused before it is read.
          const int64_t added =
              after == 0 ? static_cast<int64_t>(*changes.items) - writer.items() : 0;
          if (added > 0) {
            PM_RETURN_IF_ERROR(
                admit(writer.memory(), MinEncryptedMemory(added, parameters.feature_dim)));
          }
          for (const std::string& id : changes.deleted) writer.Erase(id);
          all = changes;
        }
        PM_RETURN_IF_ERROR(admit(writer.memory(), writer.MemoryToPut(part)));
        for (const Item& item : part) {
          if (std::ssize(item.features) != parameters.feature_dim) {
            return absl::DataLossError(absl::StrCat("item ", item.id, " has ", item.features.size(),
                                                    " features, but the collection has ",
                                                    parameters.feature_dim));
          }
          writer.Put(item);
        }
        return absl::OkStatus();
      });
  if (is_other) return std::optional<ItemChanges>();
  PM_RETURN_IF_ERROR(read);
  return all;
}

EncryptedCollection::EncryptedCollection(MemoryCheck check)
    : check_(std::move(check)), pass_([this] { return rows(); }) {}

EncryptedCollection::~EncryptedCollection() = default;

bool EncryptedCollection::AnnounceLoad() {
  const std::lock_guard<std::mutex> writer_guard(writer_mutex_);
  if (reading_ != nullptr) return false;
  awaits_load_ = true;
  return !announced_.exchange(true);
}

absl::Status EncryptedCollection::Load(Store& store, const PublicParameters& parameters,
                                       const std::atomic<bool>& stopped) {
  const std::lock_guard<std::mutex> load_guard(load_mutex_);
  if (rows() != nullptr) return absl::OkStatus();
  const auto admit = [&](int64_t bytes, int64_t more) -> absl::Status {
    if (stopped) return absl::CancelledError("the rows are no longer needed");
    PM_RETURN_IF_ERROR(check_(bytes + more - memory()));
    const std::lock_guard<std::mutex> guard(mutex_);
    loading_memory_ = std::max(loading_memory_, bytes + more);
    return absl::OkStatus();
  };
  absl::Status status;
  try {
    status = LoadFirst(store, parameters, admit);
  } catch (const std::exception& error) {
    status = NoMemory(error);
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  loading_memory_ = 0;
  problem_ = status;
  return status;
}

absl::Status EncryptedCollection::LoadFirst(Store& store, const PublicParameters& parameters,
                                            Admit admit) {
  PM_ASSIGN_OR_RETURN(std::unique_ptr<Reading> reading, Reading::OfAll(store, parameters, admit));
  // Much may have been written during the first reading. Writers wait only for the last, short one.
  PM_ASSIGN_OR_RETURN(bool same, reading->ReadMore(store, parameters, admit));
  const std::lock_guard<std::mutex> writer_guard(writer_mutex_);
  if (same) {
    PM_ASSIGN_OR_RETURN(same, reading->ReadMore(store, parameters, admit));
  }
  if (!same) return absl::AbortedError("the collection was replaced while its rows were loaded");
  Publish(std::move(reading));
  return absl::OkStatus();
}

absl::Status EncryptedCollection::CatchUp(Store& store, const PublicParameters& parameters) {
  const uint64_t begun = begun_;
  {
    const std::lock_guard<std::mutex> writer_guard(writer_mutex_);
    if (reading_ != nullptr) {
      if (succeeded_ > begun) return absl::OkStatus();
      absl::Status status;
      try {
        status = CatchUpLocked(store, parameters);
      } catch (const std::exception& error) {
        Release();
        status = NoMemory(error);
      }
      const std::lock_guard<std::mutex> guard(mutex_);
      problem_ = status;
      return status;
    }
    if (awaits_load_) return absl::OkStatus();
  }
  const std::atomic<bool> stopped = false;
  return Load(store, parameters, stopped);
}

absl::Status EncryptedCollection::CatchUpLocked(Store& store, const PublicParameters& parameters) {
  const uint64_t number = ++begun_;
  const auto admit = [&](int64_t bytes, int64_t more) {
    return more > 0 ? check_(bytes + more - memory()) : absl::OkStatus();
  };
  const uint64_t former = reading_->version;
  const absl::StatusOr<bool> same = reading_->ReadMore(store, parameters, admit);
  if (absl::IsResourceExhausted(same.status())) Release();
  PM_RETURN_IF_ERROR(same.status());
  if (!*same) {
    // The rows of the collection that was replaced must not be found any more.
    Release();
    PM_ASSIGN_OR_RETURN(std::unique_ptr<Reading> reading, Reading::OfAll(store, parameters, admit));
    Publish(std::move(reading));
  } else if (reading_->version != former) {
    Publish(std::move(reading_));
  }
  succeeded_ = number;
  return absl::OkStatus();
}

void EncryptedCollection::Publish(std::unique_ptr<Reading> reading) {
  auto next = reading->writer.Publish(reading->collection, reading->version);
  reading_ = std::move(reading);
  const std::lock_guard<std::mutex> guard(mutex_);
  std::swap(rows_, next);  // the former one is destroyed after the lock
}

void EncryptedCollection::Release() {
  reading_ = nullptr;
  std::shared_ptr<const EncryptedRows> former;  // destroyed after the lock
  const std::lock_guard<std::mutex> guard(mutex_);
  std::swap(rows_, former);
}

absl::Status EncryptedCollection::CheckMemoryFor(absl::Span<const Item> items,
                                                 int64_t stored) const {
  const std::lock_guard<std::mutex> guard(writer_mutex_);
  if (reading_ != nullptr) return check_(reading_->writer.MemoryToPut(items));
  if (items.empty()) return absl::OkStatus();
  const int64_t dimensions = std::ssize(items.front().features);
  return check_(EncryptedRowsWriter().MemoryToPut(items) + MinEncryptedMemory(stored, dimensions) -
                memory());
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
  const std::lock_guard<std::mutex> guard(mutex_);
  return rows_ == nullptr ? loading_memory_ : rows_->memory;
}

}  // namespace privatemail::server
