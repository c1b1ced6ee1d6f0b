// Rows that would not fit into memory, in a file.
#ifndef PRIVATEMAIL_SERVER_EMBEDDING_POINT_FILE_H_
#define PRIVATEMAIL_SERVER_EMBEDDING_POINT_FILE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/numerics/point_source.h"

namespace privatemail {

// Rows in single precision, each scaled to length 1 in double when it is read, in a file without a
// name: it is gone with this object, or with the process. Rows are appended while a store is read;
// afterwards the file is a source of points. 8 bytes of memory a row. Server side; gallery features
// in the clear, mode 0600. Reading is thread-safe; appending is not, and ends before reading
// begins.
class PointFile : public PointSource {
 public:
  // FAILED_PRECONDITION with the reason: no file can be made in `directory`.
  static absl::StatusOr<std::unique_ptr<PointFile>> Create(const std::string& directory,
                                                           Eigen::Index cols);
  ~PointFile() override;
  PointFile(const PointFile&) = delete;
  PointFile& operator=(const PointFile&) = delete;

  // rows: any number x cols(). `field` names them in errors. INVALID_ARGUMENT: another number of
  // columns, or a row that is zero or not finite; nothing is appended then. RESOURCE_EXHAUSTED: no
  // space is left. UNAVAILABLE: they cannot be written.
  absl::Status Append(absl::string_view field, const FloatMatrix& rows);

  Eigen::Index rows() const override { return static_cast<Eigen::Index>(inverse_length_.size()); }
  Eigen::Index cols() const override { return cols_; }
  absl::Status Read(Eigen::Index first, Matrix* block) const override;

 private:
  PointFile(int file, Eigen::Index cols) : file_(file), cols_(cols) {}

  int file_;
  Eigen::Index cols_;
  std::vector<double> inverse_length_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_EMBEDDING_POINT_FILE_H_
