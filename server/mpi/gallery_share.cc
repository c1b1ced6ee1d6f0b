#include "server/mpi/gallery_share.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status_macros.h"
#include "common/embedding/label_graph.h"

namespace privatemail::server {
namespace {

template <typename Value>
void Append(const Value& value, std::string* to) {
  to->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Reads what Append wrote. Both ends are the same program.
class Piece {
 public:
  explicit Piece(const std::string& bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool empty() const { return at_ == end_; }
  template <typename Value>
  Value Take() {
    Value value;
    std::memcpy(&value, at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }

 private:
  const char* at_;
  const char* end_;
};

}  // namespace

absl::StatusOr<GalleryShare> ReadShare(PostgresStore* store, const StoredCollection& collection,
                                       const RowShare& rows, const std::string& directory) {
  const auto items = static_cast<int64_t>(collection.items);
  const int64_t first = std::min<int64_t>(rows.first_row(), items);
  const int64_t end = std::min<int64_t>(rows.first_row() + rows.rows(), items);
  GalleryShare share;
  PM_ASSIGN_OR_RETURN(share.points,
                      PointFile::Create(directory, collection.parameters.feature_dim));
  PM_RETURN_IF_ERROR(
      store->ReadRange(collection, first, end - first, [&](int64_t /*count*/, Gallery part) {
        const FloatMatrix features = std::exchange(part.features, FloatMatrix());
        AppendRows(std::move(part), &share.columns);
        return share.points->Append("items", features);
      }));
  const Eigen::Index first_anchor = rows.first_row() + (end - first) - items;
  const Eigen::Index anchors = rows.rows() - (end - first);
  share.labels = share.columns.labels;
  if (anchors == 0) return share;
  if (collection.parameters.HasClasses()) {
    const auto anchor_labels = collection.anchors.labels.begin() + first_anchor;
    share.labels.insert(share.labels.end(), anchor_labels, anchor_labels + anchors);
  }
  PM_RETURN_IF_ERROR(share.points->Append(
      "anchors", collection.anchors.features.middleRows(first_anchor, anchors)));
  return share;
}

absl::StatusOr<std::map<int32_t, int64_t>> CountAllLabels(const Ranks& ranks,
                                                          const std::vector<int32_t>& labels) {
  std::string own;
  for (const auto& [label, rows] : CountLabels(labels)) {
    Append(label, &own);
    Append(rows, &own);
  }
  PM_ASSIGN_OR_RETURN(const std::vector<std::string> all, ranks.Exchange(own));
  std::map<int32_t, int64_t> rows_of_label;
  for (const std::string& of_rank : all) {
    for (Piece piece(of_rank); !piece.empty();) {
      const auto label = piece.Take<int32_t>();
      rows_of_label[label] += piece.Take<int64_t>();
    }
  }
  return rows_of_label;
}

absl::StatusOr<Matrix> CollectAnchors(const Ranks& ranks, const StoredCollection& collection,
                                      const GalleryShare& share, const Matrix& coordinates) {
  const auto items = static_cast<Eigen::Index>(share.columns.ids.size());
  std::string own;
  for (Eigen::Index row = items; row < coordinates.rows(); ++row) {
    for (const double value : coordinates.row(row)) Append(value, &own);
  }
  PM_ASSIGN_OR_RETURN(const std::vector<std::string> all, ranks.Exchange(own));
  Matrix anchors(collection.parameters.anchor_count, coordinates.cols());
  double* to = anchors.data();
  for (const std::string& of_rank : all) {
    for (Piece piece(of_rank); !piece.empty();) *to++ = piece.Take<double>();
  }
  return anchors;
}

RowCollection::RowCollection(const Ranks& ranks, const RowShare& rows, const GalleryShare& share,
                             const Matrix& coordinates, int64_t key)
    : ranks_(ranks),
      own_(key, {rows.first_row(), share.columns.ids, share.columns.labels, share.columns.payloads,
                 &coordinates}) {}

std::string RowCollection::Next() {
  while (from_ < ranks_.size()) {
    std::string piece = from_ == 0 ? own_.Next() : ranks_.Receive(from_);
    if (!piece.empty()) return piece;
    ++from_;
  }
  return "";
}

void RowCollection::SendAll() {
  std::string piece;
  do {
    piece = own_.Next();
    ranks_.Send(piece);
  } while (!piece.empty());
}

}  // namespace privatemail::server
