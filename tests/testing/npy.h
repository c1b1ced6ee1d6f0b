// Writing of .npy files.
#ifndef PRIVATEMAIL_TESTS_TESTING_NPY_H_
#define PRIVATEMAIL_TESTS_TESTING_NPY_H_

#include <cstdint>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/matrix.h"

namespace privatemail::testing {

inline absl::Status WriteNpyBytes(const std::string& path, absl::string_view descr,
                                  absl::string_view shape, const void* values, size_t size) {
  std::string header =
      absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", shape, "), }");
  constexpr size_t kBeforeHeader = 10, kAlignment = 64;
  while ((kBeforeHeader + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) return absl::PermissionDeniedError(absl::StrCat(path, ": cannot be opened to write"));
  file.write("\x93NUMPY\x01\x00", 8);
  file.put(static_cast<char>(header.size() & 0xff)).put(static_cast<char>(header.size() >> 8));
  file << header;
  file.write(static_cast<const char*>(values), static_cast<std::streamsize>(size));
  file.close();
  if (!file) return absl::DataLossError(absl::StrCat(path, ": cannot be written to its end"));
  return absl::OkStatus();
}

// .npy version 1, as numpy writes it: n x d float32, or n labels as int32.
inline absl::Status WriteNpy(const std::string& path, const FloatMatrix& vectors) {
  return WriteNpyBytes(path, "<f4", absl::StrCat(vectors.rows(), ", ", vectors.cols()),
                       vectors.data(), static_cast<size_t>(vectors.size()) * sizeof(float));
}

inline absl::Status WriteNpy(const std::string& path, absl::Span<const int32_t> labels) {
  return WriteNpyBytes(path, "<i4", absl::StrCat(labels.size(), ","), labels.data(),
                       labels.size() * sizeof(int32_t));
}

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_TESTING_NPY_H_
