// Feature vectors and labels in files: .npy, .fvecs, .ivecs, .csv and .txt, told apart by the end
// of the name in any case. Pure functions, safe from any thread.
//
// No packaged library reads these formats. The parsers are written for hostile input: a shape is
// compared with the number of bytes that are there before anything is allocated, so memory stays
// within a small multiple of the file's size.
//
// - .npy: numpy's format, versions 1 to 3, C order, little-endian. Vectors: 2-D float32 or float64.
//   Labels: 1-D or n x 1, integers of 8 to 64 bits.
// - .fvecs: each row is the number of columns as int32, then that many float32; little-endian.
// - .ivecs: the same with int32 values. Labels: one column. As vectors, the values become floats.
// - .csv: lines of numbers with commas between; blanks around a number and empty lines are skipped.
// - .txt: labels only, one integer a line.
// In .csv and .txt a first line of names (each begins with a letter, '_' or '"') is skipped.
#ifndef PRIVATEMAIL_COMMON_FEATURES_VECTOR_FILE_H_
#define PRIVATEMAIL_COMMON_FEATURES_VECTOR_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/matrix.h"

namespace privatemail {

// n x d, n and d at least 1. NaN and infinite values are handed on as they are (whoever uses a row
// rejects that row alone), and a float64 beyond float32 becomes infinite.
// PERMISSION_DENIED, DATA_LOSS: the file cannot be read. INVALID_ARGUMENT: there is none, the
// name's end is none of .npy .fvecs .ivecs .csv, or the content is not what it says; the message
// names the file, the place, what was expected and what came.
absl::StatusOr<FloatMatrix> ReadVectors(const std::string& path);

// One label a row, at least one. From .npy, .ivecs, .csv or .txt; errors as above, and
// INVALID_ARGUMENT naming the row for a value that int32 cannot hold.
absl::StatusOr<std::vector<int32_t>> ReadLabels(const std::string& path);

// The same for bytes in memory; `name` chooses the format and begins every message.
absl::StatusOr<FloatMatrix> ParseVectors(absl::string_view name, absl::string_view bytes);
absl::StatusOr<std::vector<int32_t>> ParseLabels(absl::string_view name, absl::string_view bytes);

// Writes version 1 of the format, replacing a file that is there:
// - bytes 0-7: 0x93 'N' 'U' 'M' 'P' 'Y' 0x01 0x00
// - bytes 8-9: length of the header text, little-endian
// - then "{'descr': '<f4', 'fortran_order': False, 'shape': (n, d), }", blanks and '\n': values
//   begin at a multiple of 64
// - then n * d float32, row after row, little-endian
// Labels are '<i4' of shape (n,). PERMISSION_DENIED: the file cannot be opened. DATA_LOSS: it
// cannot be written to its end.
absl::Status WriteNpy(const std::string& path, const FloatMatrix& vectors);
absl::Status WriteNpy(const std::string& path, absl::Span<const int32_t> labels);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_VECTOR_FILE_H_
