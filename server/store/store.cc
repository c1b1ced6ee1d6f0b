#include "server/store/store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::server {

absl::StatusOr<ItemPage> Store::ScrollItems(const PublicParameters& parameters,
                                            const std::optional<PayloadFilter>& filter,
                                            absl::string_view after, int64_t limit) {
  ItemPage page;
  int64_t scanned = 0;
  int64_t bytes = 0;
  std::string last;
  // Reads one more item, to know whether another page follows.
  const int64_t wanted = filter ? kMaxScannedItems : std::min(limit, kMaxScannedItems);
  PM_RETURN_IF_ERROR(
      ScanItems(parameters, after, wanted + 1, /*with_features=*/true, [&](Item item) {
        const auto size =
            static_cast<int64_t>(item.features.size() * sizeof(float) + item.payload.size());
        const bool full = scanned == wanted || (scanned > 0 && bytes + size > kMaxPageBytes) ||
                          static_cast<int64_t>(page.items.size()) == limit;
        if (full) {
          page.next = last;
          return false;
        }
        ++scanned;
        last = item.id;
        bytes += size;
        if (!filter || filter->Matches(item.payload)) page.items.push_back(std::move(item));
        return true;
      }));
  return page;
}

absl::StatusOr<uint64_t> Store::CountItems(const PublicParameters& parameters,
                                           const std::optional<PayloadFilter>& filter,
                                           const std::function<bool()>& cancelled) {
  if (!filter) {
    PM_ASSIGN_OR_RETURN(const std::vector<CollectionState> states, ListStates());
    for (const CollectionState& state : states) {
      if (state.uuid == parameters.collection_uuid) return state.items;
    }
    return NoSuchCollection(parameters.collection_uuid);
  }
  uint64_t count = 0;
  std::string after;
  for (int64_t scanned = kMaxScannedItems; scanned == kMaxScannedItems;) {
    if (cancelled && cancelled()) {
      return absl::CancelledError("the caller no longer waits for the count");
    }
    scanned = 0;
    PM_RETURN_IF_ERROR(
        ScanItems(parameters, after, kMaxScannedItems, /*with_features=*/false, [&](Item item) {
          ++scanned;
          if (filter->Matches(item.payload)) ++count;
          after = std::move(item.id);
          return true;
        }));
  }
  return count;
}

absl::StatusOr<Gallery> Store::LoadGallery(const PublicParameters& parameters,
                                           const LoadWatch& watch) {
  Gallery all;
  int64_t bytes = 0;
  PM_RETURN_IF_ERROR(ReadGallery(parameters, [&](int64_t items, Gallery part) -> absl::Status {
    bytes += BytesOf(part);
    if (watch) PM_RETURN_IF_ERROR(watch(bytes));
    const auto first = static_cast<Eigen::Index>(all.ids.size());
    if (first == 0) all.features.resize(items, parameters.feature_dim);
    all.features.middleRows(first, part.features.rows()) = part.features;
    AppendRows(std::move(part), &all);
    return absl::OkStatus();
  }));
  return all;
}

namespace {

// before: rows of earlier parts, with the id `last` at their end.
absl::Status CheckPart(const Gallery& part, const PublicParameters& parameters, uint64_t before,
                       absl::string_view last) {
  const size_t rows = part.ids.size();
  if (part.labels.size() != rows || part.payloads.size() != rows ||
      static_cast<size_t>(part.features.rows()) != rows) {
    return InvalidField(
        "gallery",
        absl::StrCat("must have as many labels, payloads and features as ids, but has ", rows,
                     " ids, ", part.labels.size(), " labels, ", part.payloads.size(),
                     " payloads and ", part.features.rows(), " features"));
  }
  for (size_t i = 0; i < rows; last = part.ids[i++]) {
    if (before + i == 0 || last < part.ids[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat("ids of the gallery must ascend, but number ",
                                                   before + i, " (from 0) does not"));
  }
  return rows == 0 ? absl::OkStatus()
                   : CheckColumns("features", parameters.feature_dim, part.features.cols());
}

}  // namespace

absl::Status Store::Import(const StoredCollection& collection, GallerySource source) {
  return ImportParts(collection, [&](GalleryPartVisitor visit) -> absl::Status {
    uint64_t rows = 0;
    std::string last;
    PM_RETURN_IF_ERROR(source([&](Gallery part) -> absl::Status {
      PM_RETURN_IF_ERROR(CheckPart(part, collection.parameters, rows, last));
      if (part.ids.empty()) return absl::OkStatus();
      rows += part.ids.size();
      last = part.ids.back();
      return visit(std::move(part));
    }));
    if (rows == collection.items) return absl::OkStatus();
    return InvalidField("gallery",
                        absl::StrCat("must have ", collection.items, " items, but has ", rows));
  });
}

int64_t GalleryPartRows(int64_t feature_dim) {
  constexpr int64_t kBytes = 4 << 20;
  constexpr int64_t kMaxRows = 5000;
  const int64_t row_bytes = std::max<int64_t>(1, feature_dim) * static_cast<int64_t>(sizeof(float));
  return std::clamp<int64_t>(kBytes / row_bytes, 1, kMaxRows);
}

}  // namespace privatemail::server
