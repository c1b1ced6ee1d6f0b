#include "common/wire/snapshot.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/message_memory.h"
#include "common/wire/proto_conversions.h"
#include "common/wire/snapshot_layout.h"

namespace privatemail {

using namespace snapshot;  // NOLINT(google-build-using-namespace): internal constants

namespace {

// Far above the memory of a writer's blocks: 1 MiB of smallest items, or one item of 65 MiB.
constexpr int64_t kMaxBlockMemory = int64_t{256} << 20;

// False: the body is malformed, or would take too much memory.
template <typename Message>
bool Parse(absl::string_view body, Message* message) {
  const auto size = static_cast<int>(body.size());  // at most kMaxSnapshotBlockBytes
  google::protobuf::io::ArrayInputStream bytes(body.data(), size);
  const std::optional<int64_t> memory = MessageMemory(*Message::descriptor(), &bytes);
  return memory.has_value() && *memory <= kMaxBlockMemory &&
         message->ParseFromArray(body.data(), size);
}

}  // namespace

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
    if (!anchors.labels.empty()) {
      const auto labels = anchors.labels.begin() + first;
      part.mutable_labels()->Assign(labels, labels + count);
    }
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

absl::Status SnapshotReader::Damaged(absl::string_view what) const {
  if (part_ == Part::kHeader) return absl::DataLossError(absl::StrCat("block 0 (header) ", what));
  return absl::DataLossError(
      absl::StrCat("block ", totals_.blocks(), " (", NameOf(type_), ") ", what));
}

absl::Status SnapshotReader::Decoded(const absl::Status& status) const {
  if (status.ok()) return status;
  return Damaged(absl::StrCat("is invalid: ", status.message()));
}

absl::Status SnapshotReader::Handled(const absl::Status& status) const {
  return absl::IsInvalidArgument(status) ? Decoded(status) : status;
}

absl::Status SnapshotReader::Truncated() const {
  if (part_ != Part::kHead) return Damaged("is cut off: the snapshot is truncated");
  return absl::DataLossError(absl::StrCat("block ", totals_.blocks() + 1,
                                          block_.empty() ? " is missing" : " is cut off",
                                          ": the snapshot is truncated"));
}

absl::Status SnapshotReader::Read(absl::string_view piece) {
  if (failure_.ok()) failure_ = Append(piece);
  return failure_;
}

absl::Status SnapshotReader::Finish() {
  if (failure_.ok() && part_ != Part::kDone) failure_ = Truncated();
  return failure_;
}

absl::Status SnapshotReader::Append(absl::string_view piece) {
  while (!piece.empty()) {
    if (part_ == Part::kDone) return Damaged("is followed by bytes that do not belong there");
    const size_t taken = std::min(piece.size(), wanted_ - block_.size());
    block_.append(piece.data(), taken);
    piece.remove_prefix(taken);
    if (block_.size() == wanted_) PM_RETURN_IF_ERROR(TakePart());
  }
  return absl::OkStatus();
}

absl::Status SnapshotReader::TakePart() {
  if (part_ == Part::kHead) return TakeHead();
  PM_RETURN_IF_ERROR(part_ == Part::kHeader ? TakeHeader() : TakeBlock());
  part_ = type_ == kEnd ? Part::kDone : Part::kHead;
  wanted_ = kHeadBytes;
  all_.Add(block_);
  block_.clear();
  // Release the memory of an unusually large block.
  if (block_.capacity() > 4 * kSnapshotBlockBytes) block_.shrink_to_fit();
  return absl::OkStatus();
}

absl::Status SnapshotReader::TakeHeader() {
  if (absl::string_view(block_).substr(0, kMagic.size()) != kMagic) {
    return Damaged("is not that of a snapshot");
  }
  const uint32_t version = IntAt(block_, kMagic.size());
  if (version == kVersion) return absl::OkStatus();
  return Damaged(absl::StrCat("says that the format has version ", version,
                              ", but this program reads version ", kVersion));
}

absl::Status SnapshotReader::TakeHead() {
  type_ = static_cast<uint8_t>(block_[0]);
  totals_.set_blocks(totals_.blocks() + 1);
  part_ = Part::kBody;
  if (type_ < kCollection || type_ > kEnd) return Damaged("is of no kind that a snapshot has");
  const uint32_t number = IntAt(block_, 1);
  if (number != totals_.blocks()) {
    return Damaged(absl::StrCat("calls itself number ", number,
                                ": a block is missing, repeated or out of place"));
  }
  const size_t length = IntAt(block_, 5);
  if (length > kMaxSnapshotBlockBytes) {
    return Damaged(absl::StrCat("claims ", length, " bytes, more than the ", kMaxSnapshotBlockBytes,
                                " that a block may have"));
  }
  wanted_ = kHeadBytes + length + kSumBytes;
  return absl::OkStatus();
}

absl::Status SnapshotReader::TakeBlock() {
  const absl::string_view all = block_;
  const absl::string_view summed = all.substr(0, all.size() - kSumBytes);
  const std::string sum = Sha256::Of(summed).substr(0, kSumBytes);
  if (all.substr(summed.size()) != sum) return Damaged("does not match its checksum");
  PM_RETURN_IF_ERROR(CheckOrder());
  const absl::string_view body = summed.substr(kHeadBytes);
  switch (type_) {
    case kCollection:
      return TakeCollection(body);
    case kAnchors:
      return TakeAnchors(body);
    case kItems:
      return TakeItems(body);
    default:
      return TakeEnd(body);
  }
}

absl::Status SnapshotReader::CheckOrder() const {
  if ((type_ == kCollection) != (totals_.blocks() == 1)) {
    return Damaged("is out of place: the first block, and no other, is the collection's");
  }
  const uint64_t anchors = head_.parameters().anchor_count();
  const bool complete = totals_.anchors() == anchors;
  if (type_ == kAnchors && complete) return Damaged("is one too many: all anchors were there");
  if ((type_ == kItems || type_ == kEnd) && !complete) {
    return Damaged(absl::StrCat("follows ", totals_.anchors(), " anchors of ", anchors));
  }
  return absl::OkStatus();
}

absl::Status SnapshotReader::TakeCollection(absl::string_view body) {
  if (!Parse(body, &head_)) return Damaged("cannot be parsed");
  absl::StatusOr<PublicParameters> parameters = FromProto(head_.parameters());
  PM_RETURN_IF_ERROR(Decoded(parameters.status()));
  if (!handlers_.collection) return absl::OkStatus();
  return Handled(handlers_.collection(head_, *std::move(parameters)));
}

absl::Status SnapshotReader::TakeAnchors(absl::string_view body) {
  v1::SnapshotAnchors proto;
  if (!Parse(body, &proto)) return Damaged("cannot be parsed");
  absl::StatusOr<FloatMatrix> rows = FromProto("anchors", proto.features());
  PM_RETURN_IF_ERROR(Decoded(rows.status()));
  const Anchors part{*std::move(rows), {proto.labels().begin(), proto.labels().end()}};
  const v1::PublicParameters& parameters = head_.parameters();
  const auto count = static_cast<uint64_t>(part.features.rows());
  if (part.features.cols() != static_cast<Eigen::Index>(parameters.feature_dim()) ||
      part.labels.size() != (parameters.slot_labels_size() > 0 ? count : 0) ||
      count > parameters.anchor_count() - totals_.anchors()) {
    return Damaged("does not have the shape that the first block announced");
  }
  for (Eigen::Index i = 0; i < part.features.rows(); ++i) {
    anchor_rows_.Add({reinterpret_cast<const char*>(part.features.row(i).data()),
                      static_cast<size_t>(part.features.cols()) * sizeof(float)});
    if (part.labels.empty()) continue;
    std::string label;
    AppendInt(static_cast<uint32_t>(part.labels[static_cast<size_t>(i)]), &label);
    anchor_rows_.Add(label);
  }
  totals_.set_anchors(totals_.anchors() + count);
  if (totals_.anchors() == parameters.anchor_count() &&
      anchor_rows_.Digest() != parameters.anchor_digest()) {
    return Damaged("ends anchors that do not match their digest");
  }
  return handlers_.anchors ? Handled(handlers_.anchors(part)) : absl::OkStatus();
}

absl::Status SnapshotReader::CheckItems(const v1::SnapshotItems& items) const {
  const auto count = static_cast<uint64_t>(items.items_size());
  if (count == 0 || count > head_.items() - totals_.items()) {
    return Damaged(absl::StrCat("holds item ", totals_.items() + count, " of ", head_.items()));
  }
  absl::string_view last = last_id_;
  for (const v1::Item& item : items.items()) {
    if (item.id() <= last) return Damaged("holds items out of the order of their ids");
    last = item.id();
    if (static_cast<uint32_t>(item.features_size()) != head_.parameters().feature_dim()) {
      return Damaged(absl::StrCat("holds an item of ", item.features_size(), " features, not of ",
                                  head_.parameters().feature_dim()));
    }
  }
  return absl::OkStatus();
}

absl::Status SnapshotReader::TakeItems(absl::string_view body) {
  v1::SnapshotItems items;
  if (!Parse(body, &items)) return Damaged("cannot be parsed");
  PM_RETURN_IF_ERROR(CheckItems(items));
  totals_.set_items(totals_.items() + static_cast<uint64_t>(items.items_size()));
  last_id_ = items.items(items.items_size() - 1).id();
  return handlers_.items ? Handled(handlers_.items(std::move(items))) : absl::OkStatus();
}

absl::Status SnapshotReader::TakeEnd(absl::string_view body) const {
  v1::SnapshotEnd end;
  if (!Parse(body, &end)) return Damaged("cannot be parsed");
  const bool complete = totals_.items() == head_.items() && end.items() == totals_.items() &&
                        end.anchors() == totals_.anchors() && end.blocks() == totals_.blocks();
  if (!complete) {
    return Damaged(absl::StrCat("counts ", end.items(), " items in ", end.blocks(),
                                " blocks, but there are ", totals_.items(), " of ", head_.items(),
                                " items in ", totals_.blocks()));
  }
  if (end.sha256() == all_.Digest()) return absl::OkStatus();
  return Damaged("does not match the blocks before it");
}

}  // namespace privatemail
