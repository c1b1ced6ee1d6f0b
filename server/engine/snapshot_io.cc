#include "server/engine/snapshot_io.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/protocol/codec.h"

namespace privatemail {
namespace {

// As NewUuid makes them: what clients keep by it must not be of any length or content.
absl::Status CheckUuid(absl::string_view uuid) {
  constexpr absl::string_view kPattern = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  bool valid = uuid.size() == kPattern.size();
  for (size_t i = 0; valid && i < uuid.size(); ++i) {
    valid = kPattern[i] == '-' ? uuid[i] == '-'
                               : absl::ascii_isdigit(uuid[i]) || (uuid[i] >= 'a' && uuid[i] <= 'f');
  }
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError("collection_uuid is no UUID");
}

// Room for `rows` rows; doubles, so that copying takes linear time, but never beyond `most`.
void Grow(Eigen::Index rows, Eigen::Index cols, Eigen::Index most, FloatMatrix* matrix) {
  if (matrix->rows() >= rows) return;
  matrix->conservativeResize(std::min(most, std::max(rows, 2 * matrix->rows())), cols);
}

}  // namespace

absl::Status WriteSnapshot(const PublishedCollection& published, const Gallery& gallery,
                           SnapshotWriter::Emit emit) {
  SnapshotWriter writer(std::move(emit));
  v1::SnapshotCollection head;
  head.set_name(published.name);
  ToProto(published.parameters, head.mutable_parameters());
  head.set_items(gallery.ids.size());
  head.set_latest_version(gallery.version);
  PM_RETURN_IF_ERROR(writer.Begin(head, published.anchors));
  for (size_t row = 0; row < gallery.ids.size(); ++row) {
    v1::Item item;
    item.set_id(gallery.ids[row]);
    item.set_label(gallery.labels[row]);
    item.set_payload(gallery.payloads[row]);
    const auto features = gallery.features.row(static_cast<Eigen::Index>(row));
    item.mutable_features()->Assign(features.data(), features.data() + features.size());
    PM_RETURN_IF_ERROR(writer.Add(std::move(item)));
  }
  return writer.Finish();
}

SnapshotCollector::SnapshotCollector(
    std::function<absl::Status(const v1::SnapshotCollection&)> allow)
    : allow_(std::move(allow)),
      reader_({[this](const v1::SnapshotCollection& head) { return TakeCollection(head); },
               [this](const v1::SnapshotAnchors& part) { return TakeAnchors(part); },
               [this](v1::SnapshotItems items) { return TakeItems(std::move(items)); }}) {}

absl::Status SnapshotCollector::TakeCollection(const v1::SnapshotCollection& head) {
  PM_RETURN_IF_ERROR(CheckUuid(head.parameters().collection_uuid()));
  PM_RETURN_IF_ERROR(allow_(head));
  contents_.collection.name = head.name();
  PM_ASSIGN_OR_RETURN(contents_.collection.parameters, FromProto(head.parameters()));
  // Versions of the restored collection go on from here in 63 bits.
  constexpr uint64_t kMost = uint64_t{1} << 62;
  // Together, so that a snapshot of what is restored can be restored again.
  if (head.items() > kMost || head.latest_version() > kMost - head.items()) {
    return absl::InvalidArgumentError("counts are out of range");
  }
  contents_.gallery.version = head.latest_version();
  announced_items_ = static_cast<int64_t>(head.items());
  return absl::OkStatus();
}

absl::Status SnapshotCollector::TakeAnchors(const v1::SnapshotAnchors& part) {
  Anchors& anchors = contents_.collection.anchors;
  const PublicParameters& parameters = contents_.collection.parameters;
  const auto before = static_cast<Eigen::Index>(anchors.labels.size());
  PM_ASSIGN_OR_RETURN(const FloatMatrix rows, FromProto("anchors", part.features()));
  Grow(before + rows.rows(), rows.cols(), parameters.anchor_count, &anchors.features);
  anchors.features.middleRows(before, rows.rows()) = rows;
  anchors.labels.insert(anchors.labels.end(), part.labels().begin(), part.labels().end());
  return absl::OkStatus();
}

absl::Status SnapshotCollector::TakeItems(v1::SnapshotItems items) {
  const PublicParameters& parameters = contents_.collection.parameters;
  Gallery& gallery = contents_.gallery;
  auto row = static_cast<Eigen::Index>(gallery.ids.size());
  Grow(row + items.items_size(), parameters.feature_dim, announced_items_, &gallery.features);
  for (v1::Item& from : *items.mutable_items()) {
    Item item{std::move(*from.mutable_id()),
              from.label(),
              {from.features().begin(), from.features().end()},
              std::move(*from.mutable_payload()),
              0};
    if (const absl::Status checked = CheckItem(item, parameters); !checked.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("item ", row, ": ", checked.message()));
    }
    gallery.features.row(row++) =
        Eigen::Map<const Eigen::RowVectorXf>(item.features.data(), parameters.feature_dim);
    gallery.ids.push_back(std::move(item.id));
    gallery.labels.push_back(item.label);
    gallery.payloads.push_back(std::move(item.payload));
  }
  return absl::OkStatus();
}

absl::StatusOr<SnapshotContents> SnapshotCollector::Finish() {
  PM_RETURN_IF_ERROR(reader_.Finish());
  return std::move(contents_);
}

}  // namespace privatemail
