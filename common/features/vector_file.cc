#include "common/features/vector_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/input_file.h"
#include "common/base/status_macros.h"
#include "common/features/vector_formats.h"

namespace privatemail {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied byte by byte");

// .fvecs and .ivecs: each row is its length as int32, then that many values of 4 bytes.
constexpr size_t kValueBytes = 4;  // bytes of the count and of each value

// kind: of the values. Validates the length of every row.
absl::StatusOr<VectorFile> ParseTable(absl::string_view name, absl::string_view bytes, char kind) {
  if (bytes.size() < kValueBytes) {
    return BadFile(name, "expected at least 4 bytes, got ", bytes.size());
  }
  const auto columns = Load<int32_t>(bytes, 0);
  if (columns < 1) return BadFile(name, "row 0 says fewer columns than 1");
  const size_t row_size = kValueBytes + kValueBytes * static_cast<size_t>(columns);
  const size_t whole_rows = bytes.size() / row_size;
  for (size_t row = 0; row < whole_rows; ++row) {
    const auto count = Load<int32_t>(bytes, row * row_size);
    if (count != columns) {
      return BadFile(name, "row ", row, " says another number of columns than row 0");
    }
  }
  if (whole_rows == 0) {
    return BadFile(name, "row 0 says more columns than the ", bytes.size(), " bytes hold");
  }
  if (bytes.size() % row_size != 0) {
    return BadFile(name, "expected rows of ", row_size, " bytes (", columns, " columns), but ",
                   bytes.size() % row_size, " bytes are left after row ", whole_rows, " of ",
                   bytes.size(), " bytes");
  }
  return VectorFile(static_cast<int64_t>(whole_rows), columns,
                    {.first = bytes.data() + kValueBytes,
                     .kind = kind,
                     .row_stride = static_cast<int64_t>(row_size)},
                    nullptr);
}

absl::StatusOr<LabelColumn> ParseIvecsLabels(absl::string_view name, absl::string_view bytes) {
  PM_ASSIGN_OR_RETURN(const VectorFile table, ParseTable(name, bytes, 'i'));
  if (table.cols() != 1) {
    return BadFile(name, "expected 1 column of labels, got ", table.cols());
  }
  LabelColumn labels;
  for (int64_t row = 0; row < table.rows(); ++row) {
    labels.numbers.push_back(
        Load<int32_t>(bytes, (2 * static_cast<size_t>(row) + 1) * kValueBytes));
  }
  return labels;
}

template <typename T>
void CopyAs(const VectorFile::Layout& layout, int64_t first, int64_t rows, int64_t cols,
            float* out) {
  for (int64_t row = first; row < first + rows; ++row) {
    const char* at = layout.first + row * layout.row_stride;
    if constexpr (std::is_same_v<T, float>) {
      if (!layout.is_big_endian && layout.col_stride == sizeof(float)) {
        std::memcpy(out, at, static_cast<size_t>(cols) * sizeof(float));
        out += cols;
        continue;
      }
    }
    for (int64_t col = 0; col < cols; ++col, at += layout.col_stride) {
      std::array<char, sizeof(T)> bytes;
      std::memcpy(bytes.data(), at, sizeof(T));
      if (layout.is_big_endian) std::reverse(bytes.begin(), bytes.end());
      *out++ = static_cast<float>(std::bit_cast<T>(bytes));
    }
  }
}

// The format of a file without a known extension, as an extension.
absl::string_view ExtensionOf(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\x93NUMPY")) return ".npy";
  if (absl::StartsWith(bytes, "PK")) return ".npz";
  return ".csv";
}

// The name by whose extension the bytes of `path` are parsed.
std::string NameFor(const std::string& path, absl::string_view bytes) {
  const bool is_input = path == kStandardInput || absl::StartsWith(path, "/dev/fd/") ||
                        absl::StartsWith(path, "/proc/self/fd/") || path == "/dev/stdin";
  if (!is_input) return path;
  return absl::StrCat("standard input", ExtensionOf(bytes));
}

}  // namespace

void VectorFile::Copy(int64_t first, int64_t count, float* out) const {
  const auto as = [&]<typename T>(T) { CopyAs<T>(layout_, first, count, cols_, out); };
  switch (layout_.kind * 16 + layout_.width) {
    case 'f' * 16 + 2:
      return as(Eigen::half());
    case 'f' * 16 + 4:
      return as(float());
    case 'f' * 16 + 8:
      return as(double());
    case 'i' * 16 + 1:
      return as(int8_t());
    case 'i' * 16 + 2:
      return as(int16_t());
    case 'i' * 16 + 4:
      return as(int32_t());
    case 'i' * 16 + 8:
      return as(int64_t());
    case 'u' * 16 + 1:
      return as(uint8_t());
    case 'u' * 16 + 2:
      return as(uint16_t());
    case 'u' * 16 + 4:
      return as(uint32_t());
    default:
      return as(uint64_t());
  }
}

FloatMatrix VectorFile::All() const {
  FloatMatrix all(rows_, cols_);
  Copy(0, rows_, all.data());
  return all;
}

absl::StatusOr<VectorFile> VectorFile::Parse(absl::string_view name, absl::string_view bytes) {
  if (absl::EndsWithIgnoreCase(name, ".npy")) return ParseNpyVectors(name, bytes);
  if (absl::EndsWithIgnoreCase(name, ".fvecs")) return ParseTable(name, bytes, 'f');
  if (absl::EndsWithIgnoreCase(name, ".ivecs")) return ParseTable(name, bytes, 'i');
  if (absl::EndsWithIgnoreCase(name, ".csv")) return ParseCsvVectors(name, bytes);
  if (absl::EndsWithIgnoreCase(name, ".npz")) {
    auto inflated = std::make_shared<std::string>();
    PM_ASSIGN_OR_RETURN(const absl::string_view array, ArrayOf(name, bytes, 2, inflated.get()));
    PM_ASSIGN_OR_RETURN(VectorFile vectors, ParseNpyVectors(name, array));
    vectors.owner_ = std::move(inflated);
    return vectors;
  }
  return BadFile(name, "expected a name that ends in .npy, .npz, .fvecs, .ivecs or .csv");
}

absl::StatusOr<VectorFile> VectorFile::Open(const std::string& path) {
  PM_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  PM_ASSIGN_OR_RETURN(VectorFile vectors, Parse(NameFor(path, file.bytes()), file.bytes()));
  vectors.owner_ = std::make_shared<std::pair<InputFile, std::shared_ptr<const void>>>(
      file, std::move(vectors.owner_));
  return vectors;
}

absl::StatusOr<FloatMatrix> ReadVectors(const std::string& path) {
  PM_ASSIGN_OR_RETURN(const VectorFile vectors, VectorFile::Open(path));
  return vectors.All();
}

absl::StatusOr<LabelColumn> ParseLabels(absl::string_view name, absl::string_view bytes,
                                        int64_t rows) {
  if (absl::EndsWithIgnoreCase(name, ".npy")) return ParseNpyLabels(name, bytes);
  if (absl::EndsWithIgnoreCase(name, ".ivecs")) return ParseIvecsLabels(name, bytes);
  if (absl::EndsWithIgnoreCase(name, ".csv")) return ParseTextLabels(name, bytes, true, rows);
  if (absl::EndsWithIgnoreCase(name, ".txt")) return ParseTextLabels(name, bytes, false, rows);
  if (absl::EndsWithIgnoreCase(name, ".npz")) {
    std::string inflated;
    PM_ASSIGN_OR_RETURN(const absl::string_view array, ArrayOf(name, bytes, 1, &inflated));
    return ParseNpyLabels(name, array);
  }
  return BadFile(name, "expected a name that ends in .npy, .npz, .ivecs, .csv or .txt");
}

absl::StatusOr<LabelColumn> ReadLabels(const std::string& path, int64_t rows) {
  PM_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  return ParseLabels(NameFor(path, file.bytes()), file.bytes(), rows);
}

}  // namespace privatemail
