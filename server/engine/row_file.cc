#include "server/engine/row_file.h"

#include <algorithm>
#include <utility>

#include "common/base/cancellation.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::server {

absl::StatusOr<std::unique_ptr<RowFile>> RowFile::Create(const std::string& directory,
                                                         Eigen::Index cols) {
  PM_ASSIGN_OR_RETURN(std::unique_ptr<ScratchFile> file,
                      ScratchFile::Create(directory, "the features of a cell index"));
  return std::unique_ptr<RowFile>(new RowFile(std::move(file), directory, cols));
}

absl::Status RowFile::Append(const FloatMatrix& rows) {
  return Write(this->rows(), rows.data(), rows.rows());
}

absl::Status RowFile::Write(int64_t first, const float* rows, int64_t count) {
  return file_->Write(first * RowBytes(), {reinterpret_cast<const char*>(rows),
                                           static_cast<size_t>(count * RowBytes())});
}

absl::Status RowFile::Read(Eigen::Index first, FloatRows block) const {
  return file_->Read(first * RowBytes(), static_cast<size_t>(block.rows() * RowBytes()),
                     reinterpret_cast<char*>(block.data()));
}

// Reads forwards and writes runs of rows that follow each other in both.
absl::StatusOr<std::unique_ptr<const RowBlocks>> RowFile::Reordered(
    const std::vector<int64_t>& order, const std::atomic<bool>& stopped) const {
  constexpr int64_t kNowhere = -1;
  std::vector<int64_t> place_of(static_cast<size_t>(this->rows()), kNowhere);
  for (size_t place = 0; place < order.size(); ++place) {
    place_of[static_cast<size_t>(order[place])] = static_cast<int64_t>(place);
  }
  PM_ASSIGN_OR_RETURN(std::unique_ptr<RowFile> reordered, Create(directory_, cols_));
  PM_RETURN_IF_ERROR(
      VisitBlocks(*this, [&](Eigen::Index first, const FloatMatrix& block) -> absl::Status {
        const auto place = [&](Eigen::Index row) {
          return place_of[static_cast<size_t>(first + row)];
        };
        std::vector<Eigen::Index> rows;
        for (Eigen::Index row = 0; row < block.rows(); ++row) {
          if (place(row) != kNowhere) rows.push_back(row);
        }
        std::sort(rows.begin(), rows.end(),
                  [&](Eigen::Index a, Eigen::Index b) { return place(a) < place(b); });
        FloatMatrix run(block.rows(), block.cols());
        Eigen::Index length = 0;
        for (size_t i = 0; i < rows.size(); ++i) {
          run.row(length++) = block.row(rows[i]);
          const bool ends = i + 1 == rows.size() || place(rows[i + 1]) != place(rows[i]) + 1;
          if (!ends) continue;
          PM_RETURN_IF_ERROR(CheckNotStopped(stopped));
          PM_RETURN_IF_ERROR(reordered->Write(place(rows[i]) + 1 - length, run.data(), length));
          length = 0;
        }
        return absl::OkStatus();
      }));
  return reordered;
}

absl::StatusOr<std::unique_ptr<PointFile>> PointFile::Create(const std::string& directory,
                                                             Eigen::Index cols) {
  PM_ASSIGN_OR_RETURN(std::unique_ptr<ScratchFile> file,
                      ScratchFile::Create(directory, "the features of a build"));
  return std::unique_ptr<PointFile>(new PointFile(std::move(file), cols));
}

absl::Status PointFile::Append(absl::string_view field, const FloatMatrix& rows) {
  PM_RETURN_IF_ERROR(CheckColumns(field, cols_, rows.cols()));
  Vector inverse_length(rows.rows());
  PM_RETURN_IF_ERROR(InverseLengths(field, rows, inverse_length));
  PM_RETURN_IF_ERROR(file_->Append({reinterpret_cast<const char*>(rows.data()),
                                    static_cast<size_t>(rows.size()) * sizeof(float)}));
  inverse_length_.insert(inverse_length_.end(), inverse_length.begin(), inverse_length.end());
  return absl::OkStatus();
}

absl::Status PointFile::Read(Eigen::Index first, Matrix* block) const {
  FloatMatrix values(block->rows(), cols_);
  PM_RETURN_IF_ERROR(file_->Read(first * cols_ * static_cast<int64_t>(sizeof(float)),
                                 static_cast<size_t>(values.size()) * sizeof(float),
                                 reinterpret_cast<char*>(values.data())));
  const auto inverse_length =
      Eigen::Map<const Vector>(inverse_length_.data(), rows()).segment(first, block->rows());
  *block = values.cast<double>();
  block->array().colwise() *= inverse_length.array();
  return absl::OkStatus();
}

absl::StatusOr<SpooledGallery> SpoolGallery(Store& store, const PublicParameters& parameters,
                                            const Anchors& anchors, const std::string& directory,
                                            const Store::LoadWatch& watch) {
  SpooledGallery gallery;
  int64_t bytes = 0;
  PM_ASSIGN_OR_RETURN(gallery.points, PointFile::Create(directory, parameters.feature_dim));
  PM_RETURN_IF_ERROR(store.ReadGallery(parameters, [&](int64_t, Gallery part) -> absl::Status {
    const FloatMatrix features = std::exchange(part.features, FloatMatrix());
    bytes += BytesOf(part);
    if (watch) PM_RETURN_IF_ERROR(watch(bytes));
    AppendRows(std::move(part), &gallery.columns);
    return gallery.points->Append("items", features);
  }));
  PM_RETURN_IF_ERROR(gallery.points->Append("anchors", anchors.features));
  return gallery;
}

}  // namespace privatemail::server
