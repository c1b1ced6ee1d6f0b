#include "server/store/types.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/items/item_checks.h"
#include "common/lattice/scores.h"

namespace privatemail::server {
absl::Status NoSuchCollection(absl::string_view collection) {
  return absl::NotFoundError(absl::StrCat(
      "collection ", absl::CHexEscape(collection.substr(0, 2 * kMaxCollectionNameBytes)),
      " does not exist"));
}

absl::Status CheckItem(const Item& item, const PublicParameters& parameters) {
  PM_RETURN_IF_ERROR(CheckItemId(item.id));
  const auto columns = static_cast<int64_t>(item.features.size());
  const bool has_dimension = parameters.feature_dim > 0;
  PM_RETURN_IF_ERROR(has_dimension ? CheckColumns("features", parameters.feature_dim, columns)
                                   : CheckIntegerBetween("number of features", columns, 1,
                                                         lattice::kMaxDimensions));
  // Embeddings and cells need directions, also where encrypted searches are by dot.
  const Metric metric = parameters.HasAnchors() ? Metric::kCosine : parameters.metric;
  PM_RETURN_IF_ERROR(CheckHasSimilarity("features", metric, item.features.data(), columns));
  PM_RETURN_IF_ERROR(CheckItemLabel(item.label, parameters));
  PM_RETURN_IF_ERROR(CheckPayload(item.payload));
  if (has_dimension) return absl::OkStatus();
  return InvalidField("features", "must wait until the collection has a dimension");
}

int64_t BytesOf(const Gallery& gallery) {
  size_t bytes = static_cast<size_t>(gallery.features.size()) * sizeof(float);
  for (size_t row = 0; row < gallery.ids.size(); ++row) {
    bytes += gallery.ids[row].size() + gallery.payloads[row].size();
  }
  return static_cast<int64_t>(bytes +
                              gallery.ids.size() * (2 * sizeof(std::string) + sizeof(int32_t)));
}

void AppendRows(Gallery part, Gallery* all) {
  all->version = part.version;
  all->collection = part.collection;
  std::move(part.ids.begin(), part.ids.end(), std::back_inserter(all->ids));
  std::move(part.payloads.begin(), part.payloads.end(), std::back_inserter(all->payloads));
  all->labels.insert(all->labels.end(), part.labels.begin(), part.labels.end());
}

absl::StatusOr<std::string> NewUuid() {
  std::string bytes(16, '\0');
  // Up to 256 bytes, getrandom returns all or fails.
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return absl::InternalError(
        absl::StrCat("the system's random generator failed: ", std::strerror(errno)));
  }
  bytes[6] = static_cast<char>((bytes[6] & 0x0f) | 0x40);  // version 4, RFC 4122
  bytes[8] = static_cast<char>((bytes[8] & 0x3f) | 0x80);
  const std::string hex = absl::BytesToHexString(bytes);
  return absl::StrCat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

}  // namespace privatemail::server
