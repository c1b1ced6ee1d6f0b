#include "server/snapshot/snapshot_io.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::server {
namespace {

// Clients use the UUID in file names, so only the format of NewUuid is accepted.
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

// Doubles the capacity up to `max_rows`, so that appending takes linear time.
void Grow(Eigen::Index rows, Eigen::Index cols, Eigen::Index max_rows, FloatMatrix* matrix) {
  if (matrix->rows() >= rows) return;
  matrix->conservativeResize(std::min(max_rows, std::max(rows, 2 * matrix->rows())), cols);
}

absl::Status Add(Gallery part, SnapshotWriter* writer) {
  for (size_t row = 0; row < part.ids.size(); ++row) {
    v1::Item item;
    item.set_id(std::move(part.ids[row]));
    LabelToProto(part.labels[row], &item);
    item.set_payload(std::move(part.payloads[row]));
    const auto features = part.features.row(static_cast<Eigen::Index>(row));
    item.mutable_features()->Assign(features.data(), features.data() + features.size());
    PM_RETURN_IF_ERROR(writer->Add(std::move(item)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<uint64_t> WriteSnapshot(const Catalog& catalog, const CollectionView& collection,
                                       const SnapshotWriter::Emit& emit) {
  SnapshotWriter writer(emit);
  std::optional<uint64_t> announced;
  PM_RETURN_IF_ERROR(
      catalog.ReadGallery(collection, [&](int64_t items, Gallery part) -> absl::Status {
        if (!announced) {
          announced = static_cast<uint64_t>(items);
          v1::SnapshotCollection head;
          head.set_name(collection.published->name);
          ToProto(collection.published->parameters, head.mutable_parameters());
          head.set_items(*announced);
          head.set_latest_version(part.version);
          PM_RETURN_IF_ERROR(writer.Begin(head, collection.published->anchors));
        }
        return Add(std::move(part), &writer);
      }));
  PM_RETURN_IF_ERROR(writer.Finish());
  return announced.value_or(0);
}

SnapshotParser::SnapshotParser(Visitor visitor)
    : visitor_(std::move(visitor)),
      reader_({[this](const v1::SnapshotCollection& head, PublicParameters parameters) {
                 return TakeCollection(head, std::move(parameters));
               },
               [this](const Anchors& part) { return TakeAnchors(part); },
               [this](v1::SnapshotItems items) { return TakeItems(std::move(items)); }}) {}

absl::Status SnapshotParser::TakeCollection(const v1::SnapshotCollection& head,
                                            PublicParameters parameters) {
  PM_RETURN_IF_ERROR(CheckUuid(head.parameters().collection_uuid()));
  PM_RETURN_IF_ERROR(visitor_.announcement(head));
  collection_.name = head.name();
  collection_.parameters = std::move(parameters);
  // Versions of the restored collection continue from here in 63 bits.
  constexpr uint64_t kMaxCount = uint64_t{1} << 62;
  // Their sum is bounded, so that a snapshot of the restored collection can be restored again.
  if (head.items() > kMaxCount || head.latest_version() > kMaxCount - head.items()) {
    return absl::InvalidArgumentError("counts are out of range");
  }
  collection_.items = head.items();
  collection_.latest_version = head.latest_version();
  return absl::OkStatus();
}

absl::Status SnapshotParser::TakeAnchors(const Anchors& part) {
  Anchors& anchors = collection_.anchors;
  const Eigen::Index rows = part.features.rows();
  // The reader has counted this part already.
  const Eigen::Index before = static_cast<Eigen::Index>(reader_.anchors()) - rows;
  Grow(before + rows, part.features.cols(), collection_.parameters.anchor_count, &anchors.features);
  anchors.features.middleRows(before, rows) = part.features;
  anchors.labels.insert(anchors.labels.end(), part.labels.begin(), part.labels.end());
  return absl::OkStatus();
}

absl::Status SnapshotParser::TakeItems(v1::SnapshotItems items) {
  const PublicParameters& parameters = collection_.parameters;
  Gallery part;
  part.features.resize(items.items_size(), parameters.feature_dim);
  const uint64_t before = std::exchange(items_, items_ + static_cast<uint64_t>(items.items_size()));
  for (v1::Item& from : *items.mutable_items()) {
    const auto row = static_cast<Eigen::Index>(part.ids.size());
    const absl::StatusOr<int32_t> label = LabelFromProto(from);
    Item item{std::move(*from.mutable_id()),
              label.value_or(kNoLabel),
              {from.features().begin(), from.features().end()},
              std::move(*from.mutable_payload()),
              0};
    absl::Status checked = label.status();
    if (visitor_.checks_items) checked.Update(CheckItem(item, parameters));
    if (!checked.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("item ", before + part.ids.size(), ": ", checked.message()));
    }
    part.features.row(row) =
        Eigen::Map<const Eigen::RowVectorXf>(item.features.data(), parameters.feature_dim);
    part.ids.push_back(std::move(item.id));
    part.labels.push_back(item.label);
    part.payloads.push_back(std::move(item.payload));
  }
  return visitor_.items(std::move(part));
}

absl::StatusOr<StoredCollection> SnapshotParser::Finish() {
  PM_RETURN_IF_ERROR(reader_.Finish());
  return std::move(collection_);
}

absl::Status ReadSnapshotItems(const ScratchFile& snapshot, Store::GalleryPartVisitor visit) {
  SnapshotParser parser(
      {[](const v1::SnapshotCollection&) { return absl::OkStatus(); }, visit, false});
  std::string piece;
  for (int64_t at = 0; at < snapshot.size(); at += static_cast<int64_t>(piece.size())) {
    constexpr int64_t kPiece = kSnapshotBlockBytes;
    piece.resize(static_cast<size_t>(std::min(kPiece, snapshot.size() - at)));
    PM_RETURN_IF_ERROR(snapshot.Read(at, piece.size(), piece.data()));
    PM_RETURN_IF_ERROR(parser.Read(piece));
  }
  return parser.Finish().status();
}

}  // namespace privatemail::server
