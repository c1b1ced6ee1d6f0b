// Rows that would not fit into memory, in a file.
#ifndef PRIVATEMAIL_SERVER_ENGINE_POINT_FILE_H_
#define PRIVATEMAIL_SERVER_ENGINE_POINT_FILE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/numerics/point_source.h"
#include "server/store/scratch_file.h"

namespace privatemail::server {

// Rows in single precision in a scratch file, each scaled to length 1 in double when it is read.
// Rows are appended while a store is read; afterwards the file is a source of points. 8 bytes of
// memory a row. Server side; gallery features in the clear. Reading is thread-safe; appending is
// not, and ends before reading begins.
class PointFile : public PointSource {
 public:
  // Errors of ScratchFile.
  static absl::StatusOr<std::unique_ptr<PointFile>> Create(const std::string& directory,
                                                           Eigen::Index cols);

  // rows: any number x cols(). `field` names them in errors. INVALID_ARGUMENT: another number of
  // columns, or a row that is zero or not finite; nothing is appended then. Errors of ScratchFile.
  absl::Status Append(absl::string_view field, const FloatMatrix& rows);

  Eigen::Index rows() const override { return static_cast<Eigen::Index>(inverse_length_.size()); }
  Eigen::Index cols() const override { return cols_; }
  absl::Status Read(Eigen::Index first, Matrix* block) const override;

 private:
  PointFile(std::unique_ptr<ScratchFile> file, Eigen::Index cols)
      : file_(std::move(file)), cols_(cols) {}

  std::unique_ptr<ScratchFile> file_;
  Eigen::Index cols_;
  std::vector<double> inverse_length_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_POINT_FILE_H_
