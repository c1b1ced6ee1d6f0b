// Reading of feature vectors and labels as .npy, .npz, .fvecs, .ivecs, .csv and .txt. The format
// follows from the extension, in any case; of a pipe or standard input ("-"), whose name has none,
// from the first bytes. Pure functions, thread-safe.
//
// No packaged library reads these formats. The parsers expect hostile input: shapes are compared
// with the size of the file before allocation, so memory is a small multiple of that size.
//
// - .npy: numpy's format, versions 1 to 3, any order of bytes, C or Fortran order. Vectors: 2-D
//   floats of 16 to 64 bits or integers. Labels: 1-D or n x 1 integers, whole floats or text, also
//   as Python objects. Those are a pickle; what it could run is refused and never run. Labels
//   may take 128 times its size in memory, since two bytes can repeat a text of 256.
// - .npz: an archive of .npy files, plain or deflated. Vectors: its only array of 2 dimensions.
//   Labels: its only one of 1 dimension.
// - .fvecs: each row is the number of columns as int32, then that many float32; little-endian.
// - .ivecs: as .fvecs with int32 values. Labels: one column. Vectors: values become floats.
// - .csv: lines of numbers separated by commas. Quotes and blanks around numbers are ignored, as
//   are empty lines.
// - .txt: labels only, one a line.
// A byte-order mark is skipped. A first line of names (each begins with a letter, '_' or '"'), or,
// over rows with decimals or text, of the numbers 0, 1, ... and perhaps names, is skipped in
// vectors; in labels only "label" or "labels" is, since another name may be that of a class. A
// first line whose first cell is empty is a header over an index column, as pandas writes them; of
// vectors also one whose first cell is "id" or ends in "_id". Over vectors its other cells are
// numbers only if the next line begins with an integer or text; otherwise it is a row that lacks
// its first number, and refused. The index of vectors gives ids, that of labels is skipped.
#ifndef PRIVATEMAIL_COMMON_FEATURES_VECTOR_FILE_H_
#define PRIVATEMAIL_COMMON_FEATURES_VECTOR_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/label_column.h"
#include "common/base/matrix.h"

namespace privatemail {

// n x d numbers, n, d >= 1, which become floats where they are copied: a mapped .npy or .fvecs file
// may be larger than memory. NaN and infinite values are copied unchanged (callers reject single
// rows); what is beyond float32 becomes infinite. Copies share the numbers. Thread-safe.
class VectorFile {
 public:
  // - PERMISSION_DENIED, DATA_LOSS: the file cannot be read
  // - INVALID_ARGUMENT: no such file, an extension other than .npy .npz .fvecs .ivecs .csv, or
  //   malformed content; the message names file, position and what was expected, never a value
  static absl::StatusOr<VectorFile> Open(const std::string& path);
  // Parses bytes that outlive it; the extension of `name` selects the format, and messages begin
  // with it.
  static absl::StatusOr<VectorFile> Parse(absl::string_view name, absl::string_view bytes);

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  // Writes rows first, ..., first + count - 1 to `out`, count x cols.
  void Copy(int64_t first, int64_t count, float* out) const;
  FloatMatrix All() const;
  // The ids of all rows, from the index column of a .csv file; empty: none, or the row numbers.
  const std::vector<std::string>& ids() const { return ids_; }

  // How numbers lie in memory. Each is a value of `kind` ('f', 'i' or 'u') and `width` bytes.
  struct Layout {
    const char* first = nullptr;
    char kind = 'f';
    int width = 4;
    bool is_big_endian = false;
    int64_t row_stride = 0;  // bytes from a row to the next
    int64_t col_stride = 4;
  };
  // The owner keeps layout.first valid; null: the caller does.
  VectorFile(int64_t rows, int64_t cols, Layout layout, std::shared_ptr<const void> owner,
             std::vector<std::string> ids = {})
      : rows_(rows), cols_(cols), layout_(layout), owner_(std::move(owner)), ids_(std::move(ids)) {}

 private:
  int64_t rows_, cols_;
  Layout layout_;
  std::shared_ptr<const void> owner_;
  std::vector<std::string> ids_;
};

// VectorFile::All of a file.
absl::StatusOr<FloatMatrix> ReadVectors(const std::string& path);

// Whether a column of this name holds ids: "id", "item_id", in any case.
bool IsIdColumn(absl::string_view name);

// n >= 1 labels from .npy, .npz, .ivecs, .csv or .txt. Errors as VectorFile::Open; INVALID_ARGUMENT
// naming the row if a number is not whole or does not fit int32.
// rows: that the labels are of. A .csv file of one line more has a header, if that is a text that
// no other line repeats. -1: unknown.
absl::StatusOr<LabelColumn> ReadLabels(const std::string& path, int64_t rows = -1);
absl::StatusOr<LabelColumn> ParseLabels(absl::string_view name, absl::string_view bytes,
                                        int64_t rows = -1);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_VECTOR_FILE_H_
