#include "tests/e2e/snapshotter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/snapshot.h"

namespace privatemail::e2e {
namespace {

constexpr size_t kMaxCopies = 2;

// Ignores versions, which a copy counts anew.
bool SameItems(const Stored& one, const Stored& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const auto& a, const auto& b) {
                      return a.first == b.first && a.second.label() == b.second.label() &&
                             a.second.payload() == b.second.payload() &&
                             std::equal(a.second.features().begin(), a.second.features().end(),
                                        b.second.features().begin(), b.second.features().end());
                    });
}

}  // namespace

absl::Status Snapshotter::WorkUntilFailure(const AdminClient& transport) {
  while (true) PM_RETURN_IF_ERROR(WorkOnce(transport));
}

absl::Status Snapshotter::WorkOnce(const AdminClient& transport) {
  std::string bytes;
  Stored items;
  PM_RETURN_IF_ERROR(Take(transport, &bytes, &items));
  ++snapshots_;
  const std::string name = absl::StrCat("copy-", ++names_);
  open_.emplace(name, std::move(items));
  size_t sent = 0;
  const auto next = [&](std::string* piece) -> absl::StatusOr<bool> {
    *piece = bytes.substr(sent, kSnapshotPieceBytes);
    sent += piece->size();
    return !piece->empty();
  };
  PM_RETURN_IF_ERROR(transport.RestoreCollection(name, next).status());
  ++restored_;
  copies_.insert(*std::exchange(open_, std::nullopt));
  if (copies_.size() <= kMaxCopies) return absl::OkStatus();
  open_ = std::move(*copies_.begin());
  copies_.erase(copies_.begin());
  PM_RETURN_IF_ERROR(transport.DeleteCollection(open_->first).status());
  open_.reset();
  return absl::OkStatus();
}

absl::Status Snapshotter::Take(const AdminClient& transport, std::string* bytes, Stored* items) {
  PM_RETURN_IF_ERROR(transport.SnapshotCollection(collection_, [&](absl::string_view piece) {
    bytes->append(piece.data(), piece.size());
    return absl::OkStatus();
  }));
  SnapshotHandlers handlers;
  handlers.items = [&](v1::SnapshotItems block) {
    for (const v1::Item& item : block.items()) (*items)[item.id()] = item;
    return absl::OkStatus();
  };
  SnapshotReader reader(std::move(handlers));
  absl::Status complete = reader.Read(*bytes);
  if (complete.ok()) complete = reader.Finish();
  return complete.ok() ? complete : absl::DataLossError(complete.message());
}

std::vector<std::string> Snapshotter::Check(const AdminClient& transport) {
  std::vector<std::string> faults;
  const auto collections = transport.ListCollections();
  if (!collections.ok()) return {std::string(collections.status().message())};
  std::set<std::string> there;
  for (const v1::GetCollectionResponse& one : collections->collections()) there.insert(one.name());
  there.erase(collection_);
  if (open_ && there.count(open_->first) != 0) copies_.insert(*open_);
  open_.reset();
  for (const auto& [name, expected] : copies_) {
    if (there.erase(name) == 0) {
      faults.push_back(absl::StrCat(name, " was acknowledged and is missing"));
    } else if (std::string fault = CheckCopy(transport, name, expected); !fault.empty()) {
      faults.push_back(std::move(fault));
    }
  }
  for (const std::string& name : there) {
    faults.push_back(absl::StrCat(name, " exists, but was not created or was deleted"));
  }
  return faults;
}

std::string Snapshotter::CheckCopy(const AdminClient& transport, const std::string& name,
                                   const Stored& expected) const {
  const absl::StatusOr<Stored> stored = StoredItems(transport, name);
  if (!stored.ok()) return absl::StrCat(name, ": ", stored.status().message());
  if (SameItems(*stored, expected)) return "";
  return absl::StrCat(name, " has ", stored->size(), " items, and not those of its snapshot, ",
                      expected.size());
}

}  // namespace privatemail::e2e
