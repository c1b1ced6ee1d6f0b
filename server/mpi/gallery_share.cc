#include "server/mpi/gallery_share.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/functional/function_ref.h"
#include "common/base/status_macros.h"
#include "common/embedding/label_graph.h"

namespace privatemail::server {
namespace {

// A message is sent when it exceeds this size; one item takes far less than 2 GiB.
constexpr size_t kPieceBytes = 16 << 20;

template <typename Value>
void Append(const Value& value, std::string* to) {
  to->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendText(const std::string& text, std::string* to) {
  Append(static_cast<uint32_t>(text.size()), to);
  to->append(text);
}

// Reads what Append and AppendText wrote. Both ends are the same program.
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
  std::string TakeText() {
    const auto size = Take<uint32_t>();
    at_ += size;
    return {at_ - size, size};
  }

 private:
  const char* at_;
  const char* end_;
};

// Serializes coordinates, and id, label and payload of items; `take` gets some megabytes at a time.
void Write(const GalleryShare& share, const Matrix& coordinates,
           absl::FunctionRef<void(const std::string&)> take) {
  std::string piece;
  for (Eigen::Index row = 0; row < coordinates.rows(); ++row) {
    const auto i = static_cast<size_t>(row);
    const bool is_item = i < share.columns.ids.size();
    Append(is_item, &piece);
    if (is_item) {
      AppendText(share.columns.ids[i], &piece);
      Append(share.columns.labels[i], &piece);
      AppendText(share.columns.payloads[i], &piece);
    }
    for (const double value : coordinates.row(row)) Append(value, &piece);
    if (piece.size() < kPieceBytes && row + 1 < coordinates.rows()) continue;
    take(piece);
    piece.clear();
  }
}

// Appends rows to an embedding.
class Reader {
 public:
  Reader(const StoredCollection& collection, Embedding* embedding) : embedding_(*embedding) {
    const int dim = collection.parameters.settings.embedding_dim;
    embedding_.coordinates.resize(static_cast<Eigen::Index>(collection.items), dim);
    embedding_.anchor_coordinates.resize(collection.parameters.anchor_count, dim);
  }

  void Read(const std::string& bytes) {
    Piece piece(bytes);
    while (!piece.empty()) {
      const bool is_item = piece.Take<bool>();
      if (is_item) {
        embedding_.ids.push_back(piece.TakeText());
        embedding_.labels.push_back(piece.Take<int32_t>());
        embedding_.payloads.push_back(piece.TakeText());
      }
      Matrix& to = is_item ? embedding_.coordinates : embedding_.anchor_coordinates;
      Eigen::Index& row = is_item ? items_ : anchors_;
      for (double& value : to.row(row)) value = piece.Take<double>();
      ++row;
    }
  }

 private:
  Embedding& embedding_;
  Eigen::Index items_ = 0;
  Eigen::Index anchors_ = 0;
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
  const auto anchor_labels = collection.anchors.labels.begin() + first_anchor;
  share.labels.insert(share.labels.end(), anchor_labels, anchor_labels + anchors);
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

Embedding Collect(const Ranks& ranks, const StoredCollection& collection, const GalleryShare& share,
                  const Matrix& coordinates) {
  Embedding embedding;
  if (ranks.rank() > 0) {
    Write(share, coordinates, [&](const std::string& piece) { ranks.Send(piece); });
    ranks.Send("");
    return embedding;
  }
  Reader reader(collection, &embedding);
  Write(share, coordinates, [&](const std::string& piece) { reader.Read(piece); });
  for (int rank = 1; rank < ranks.size(); ++rank) {
    for (std::string piece = ranks.Receive(rank); !piece.empty(); piece = ranks.Receive(rank)) {
      reader.Read(piece);
    }
  }
  return embedding;
}

}  // namespace privatemail::server
