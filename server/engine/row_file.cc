#include "server/engine/row_file.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::server {

absl::StatusOr<std::unique_ptr<RowFile>> RowFile::Create(const std::string& directory,
                                                         Eigen::Index cols,
                                                         absl::string_view holds) {
  PM_ASSIGN_OR_RETURN(std::unique_ptr<ScratchFile> file, ScratchFile::Create(directory, holds));
  return std::unique_ptr<RowFile>(new RowFile(std::move(file), cols));
}

absl::Status RowFile::Append(const FloatMatrix& rows) {
  return file_->Append({reinterpret_cast<const char*>(rows.data()),
                        static_cast<size_t>(rows.size()) * sizeof(float)});
}

absl::Status RowFile::Read(Eigen::Index first, FloatRows block) const {
  return file_->Read(first * RowBytes(), static_cast<size_t>(block.rows() * RowBytes()),
                     reinterpret_cast<char*>(block.data()));
}

absl::StatusOr<std::unique_ptr<PointFile>> PointFile::Create(const std::string& directory,
                                                             Eigen::Index cols) {
  PM_ASSIGN_OR_RETURN(std::unique_ptr<RowFile> file,
                      RowFile::Create(directory, cols, "the features of a build"));
  return std::unique_ptr<PointFile>(new PointFile(std::move(file)));
}

absl::Status PointFile::Append(absl::string_view field, const FloatMatrix& rows) {
  PM_RETURN_IF_ERROR(CheckColumns(field, cols(), rows.cols()));
  Vector inverse_length(rows.rows());
  PM_RETURN_IF_ERROR(InverseLengths(field, rows, inverse_length));
  PM_RETURN_IF_ERROR(file_->Append(rows));
  inverse_length_.insert(inverse_length_.end(), inverse_length.begin(), inverse_length.end());
  return absl::OkStatus();
}

absl::Status PointFile::Read(Eigen::Index first, Matrix* block) const {
  FloatMatrix values(block->rows(), cols());
  PM_RETURN_IF_ERROR(file_->Read(first, values));
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
    PM_RETURN_IF_ERROR(watch(bytes));
    AppendRows(std::move(part), &gallery.columns);
    return gallery.points->Append("items", features);
  }));
  PM_RETURN_IF_ERROR(gallery.points->Append("anchors", anchors.features));
  return gallery;
}

}  // namespace privatemail::server
