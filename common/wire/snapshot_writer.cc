#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/codec.h"
#include "common/wire/snapshot.h"
#include "common/wire/snapshot_layout.h"

namespace privatemail {

using namespace snapshot;  // NOLINT(google-build-using-namespace): its own layout

absl::Status SnapshotWriter::WriteBlock(uint8_t type, const google::protobuf::MessageLite& body) {
  const size_t length = body.ByteSizeLong();
  const uint64_t number = totals_.blocks() + 1;
  if (length > kMaxSnapshotBlockBytes || number > UINT32_MAX) {
    return absl::ResourceExhaustedError(absl::StrCat("block ", number, " (", NameOf(type),
                                                     ") of the snapshot has ", length,
                                                     " bytes, more than ", kMaxSnapshotBlockBytes));
  }
  std::string block;
  block.reserve(kHeadBytes + length + kSumBytes);
  block.push_back(static_cast<char>(type));
  AppendInt(static_cast<uint32_t>(number), &block);
  AppendInt(static_cast<uint32_t>(length), &block);
  if (!body.AppendToString(&block)) return absl::InternalError("a block cannot be serialised");
  block += Sha256::Of(block).substr(0, kSumBytes);
  totals_.set_blocks(number);
  all_.Add(block);
  return emit_(block);
}

absl::Status SnapshotWriter::Begin(const v1::SnapshotCollection& head, const Anchors& anchors) {
  std::string header(kMagic);
  AppendInt(kVersion, &header);
  all_.Add(header);
  PM_RETURN_IF_ERROR(emit_(header));
  announced_ = head.items();
  PM_RETURN_IF_ERROR(WriteBlock(kCollection, head));
  return WriteAnchors(anchors);
}

absl::Status SnapshotWriter::WriteAnchors(const Anchors& anchors) {
  const Eigen::Index rows = anchors.features.rows();
  const auto row_bytes = static_cast<size_t>(anchors.features.cols()) * sizeof(float);
  const auto most = static_cast<Eigen::Index>(
      std::max(kSnapshotBlockBytes / std::max(row_bytes, size_t{1}), size_t{1}));
  for (Eigen::Index first = 0; first < rows; first += most) {
    const Eigen::Index count = std::min(most, rows - first);
    v1::SnapshotAnchors part;
    ToProto(FloatMatrix(anchors.features.middleRows(first, count)), part.mutable_features());
    const auto labels = anchors.labels.begin() + first;
    part.mutable_labels()->Assign(labels, labels + count);
    PM_RETURN_IF_ERROR(WriteBlock(kAnchors, part));
  }
  totals_.set_anchors(static_cast<uint64_t>(rows));
  return absl::OkStatus();
}

absl::Status SnapshotWriter::Add(v1::Item item) {
  const size_t bytes = item.ByteSizeLong();
  if (item_bytes_ > 0 && item_bytes_ + bytes > kSnapshotBlockBytes) {
    PM_RETURN_IF_ERROR(WriteItems());
  }
  item_bytes_ += bytes;
  *items_.add_items() = std::move(item);
  return absl::OkStatus();
}

absl::Status SnapshotWriter::WriteItems() {
  if (items_.items_size() == 0) return absl::OkStatus();
  PM_RETURN_IF_ERROR(WriteBlock(kItems, items_));
  totals_.set_items(totals_.items() + static_cast<uint64_t>(items_.items_size()));
  items_.Clear();
  item_bytes_ = 0;
  return absl::OkStatus();
}

absl::Status SnapshotWriter::Finish() {
  PM_RETURN_IF_ERROR(WriteItems());
  if (totals_.items() != announced_) {
    return absl::InternalError(
        absl::StrCat("the snapshot was to have ", announced_, " items, but has ", totals_.items()));
  }
  v1::SnapshotEnd end = totals_;
  end.set_blocks(end.blocks() + 1);
  end.set_sha256(all_.Digest());
  return WriteBlock(kEnd, end);
}

}  // namespace privatemail
