// Scratch files of rows in single precision, for galleries that exceed memory.
#ifndef PRIVATEMAIL_SERVER_ENGINE_ROW_FILE_H_
#define PRIVATEMAIL_SERVER_ENGINE_ROW_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/embedding/public_parameters.h"
#include "common/numerics/point_source.h"
#include "common/numerics/row_source.h"
#include "server/store/scratch_file.h"
#include "server/store/store.h"
#include "server/store/types.h"

namespace privatemail::server {

// Rows of floats on disk. Server side; gallery features in the clear. Appending is not thread-safe
// and must end before reading begins; reading is thread-safe.
class RowFile : public RowSource {
 public:
  // holds: names the content in errors. Errors of ScratchFile.
  static absl::StatusOr<std::unique_ptr<RowFile>> Create(
      const std::string& directory, Eigen::Index cols,
      absl::string_view holds = "the features of a cell index");

  // rows: n x cols(). Errors of ScratchFile.
  absl::Status Append(const FloatMatrix& rows);

  Eigen::Index rows() const override { return file_->size() / RowBytes(); }
  Eigen::Index cols() const override { return cols_; }
  absl::Status Read(Eigen::Index first, FloatRows block) const override;

 private:
  RowFile(std::unique_ptr<ScratchFile> file, Eigen::Index cols)
      : file_(std::move(file)), cols_(cols) {}
  int64_t RowBytes() const { return cols_ * static_cast<int64_t>(sizeof(float)); }

  const std::unique_ptr<ScratchFile> file_;
  const Eigen::Index cols_;
};

// Rows in float on disk; Read scales each to length 1 in double. 8 bytes of memory a row. Server
// side; gallery features in the clear. Appending is not thread-safe and must end before reading
// begins; reading is thread-safe.
class PointFile : public PointSource {
 public:
  // Errors of ScratchFile.
  static absl::StatusOr<std::unique_ptr<PointFile>> Create(const std::string& directory,
                                                           Eigen::Index cols);

  // rows: n x cols(). `field` names them in errors. INVALID_ARGUMENT: another number of columns, or
  // a row that is zero or not finite; nothing is appended. Errors of ScratchFile.
  absl::Status Append(absl::string_view field, const FloatMatrix& rows);

  Eigen::Index rows() const override { return static_cast<Eigen::Index>(inverse_length_.size()); }
  Eigen::Index cols() const override { return file_->cols(); }
  absl::Status Read(Eigen::Index first, Matrix* block) const override;

 private:
  explicit PointFile(std::unique_ptr<RowFile> file) : file_(std::move(file)) {}

  const std::unique_ptr<RowFile> file_;
  std::vector<double> inverse_length_;
};

struct SpooledGallery {
  Gallery columns;                    // without features
  std::unique_ptr<PointFile> points;  // features of the gallery, then of the anchors
};

// Reads all items of one moment, some megabytes of features at a time. watch: as in LoadGallery,
// with the bytes in memory. Errors of Store::ReadGallery and PointFile.
absl::StatusOr<SpooledGallery> SpoolGallery(Store& store, const PublicParameters& parameters,
                                            const Anchors& anchors, const std::string& directory,
                                            const Store::LoadWatch& watch);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_ROW_FILE_H_
