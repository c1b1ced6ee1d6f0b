#include "server/embedding/point_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {
namespace {

absl::Status Unusable(absl::string_view doing) {
  const std::string message = absl::StrCat(
      "cannot ", doing,
      " the features of a build, which are in a file in data_dir: ", std::strerror(errno));
  const bool full = errno == ENOSPC || errno == EFBIG || errno == EDQUOT;
  return full ? absl::ResourceExhaustedError(message) : absl::UnavailableError(message);
}

absl::Status WriteAt(int file, const char* data, size_t size, off_t at) {
  while (size > 0) {
    const ssize_t written = ::pwrite(file, data, size, at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Unusable("write");
    data += written;
    at += written;
    size -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status ReadAt(int file, char* data, size_t size, off_t at) {
  while (size > 0) {
    const ssize_t read = ::pread(file, data, size, at);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return Unusable("read");
    if (read == 0) return absl::DataLossError("the file of features is shorter than was written");
    data += read;
    at += read;
    size -= static_cast<size_t>(read);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PointFile>> PointFile::Create(const std::string& directory,
                                                             Eigen::Index cols) {
  std::string path = absl::StrCat(directory, "/features-XXXXXX");
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make a file of features in ", directory, ": ", std::strerror(errno)));
  }
  ::unlink(path.c_str());
  return std::unique_ptr<PointFile>(new PointFile(file, cols));
}

PointFile::~PointFile() { ::close(file_); }

absl::Status PointFile::Append(absl::string_view field, const FloatMatrix& rows) {
  PM_RETURN_IF_ERROR(CheckColumns(field, cols_, rows.cols()));
  Vector inverse_length(rows.rows());
  PM_RETURN_IF_ERROR(InverseLengths(field, rows, inverse_length));
  PM_RETURN_IF_ERROR(WriteAt(file_, reinterpret_cast<const char*>(rows.data()),
                             static_cast<size_t>(rows.size()) * sizeof(float),
                             this->rows() * cols_ * static_cast<off_t>(sizeof(float))));
  inverse_length_.insert(inverse_length_.end(), inverse_length.begin(), inverse_length.end());
  return absl::OkStatus();
}

absl::Status PointFile::Read(Eigen::Index first, Matrix* block) const {
  FloatMatrix values(block->rows(), cols_);
  PM_RETURN_IF_ERROR(ReadAt(file_, reinterpret_cast<char*>(values.data()),
                            static_cast<size_t>(values.size()) * sizeof(float),
                            first * cols_ * static_cast<off_t>(sizeof(float))));
  const auto inverse_length =
      Eigen::Map<const Vector>(inverse_length_.data(), rows()).segment(first, block->rows());
  *block = values.cast<double>();
  block->array().colwise() *= inverse_length.array();
  return absl::OkStatus();
}

}  // namespace privatemail
