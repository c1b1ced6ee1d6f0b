#include "common/features/vector_file.h"

#include "absl/strings/match.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/features/vector_formats.h"

namespace privatemail {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied byte by byte");

// .fvecs and .ivecs: each row is its length as int32, then that many values of 4 bytes.
constexpr size_t kValueBytes = 4;  // bytes of the count and of each value

struct Table {
  int64_t rows = 0;
  int64_t columns = 0;
};

// Validates the length of every row, so that ParseTable needs no checks.
absl::StatusOr<Table> MeasureTable(absl::string_view name, absl::string_view bytes) {
  if (bytes.size() < kValueBytes) {
    return BadFile(name, "expected at least 4 bytes, got ", bytes.size());
  }
  const auto columns = Load<int32_t>(bytes, 0);
  if (columns < 1) return BadFile(name, "row 0 says ", columns, " columns, expected at least 1");
  const size_t row_size = kValueBytes + kValueBytes * static_cast<size_t>(columns);
  const size_t whole_rows = bytes.size() / row_size;
  for (size_t row = 0; row < whole_rows; ++row) {
    const auto count = Load<int32_t>(bytes, row * row_size);
    if (count != columns) {
      return BadFile(name, "row ", row, " says ", count, " columns, expected ", columns,
                     " as in row 0");
    }
  }
  if (bytes.size() % row_size != 0) {
    return BadFile(name, "expected rows of ", row_size, " bytes (", columns, " columns), but ",
                   bytes.size() % row_size, " bytes are left after row ", whole_rows, " of ",
                   bytes.size(), " bytes");
  }
  return Table{static_cast<int64_t>(whole_rows), columns};
}

template <typename Value>
absl::StatusOr<FloatMatrix> ParseTable(absl::string_view name, absl::string_view bytes) {
  PM_ASSIGN_OR_RETURN(const Table table, MeasureTable(name, bytes));
  FloatMatrix vectors(table.rows, table.columns);
  size_t offset = 0;
  for (int64_t row = 0; row < table.rows; ++row) {
    offset += kValueBytes;
    for (int64_t column = 0; column < table.columns; ++column, offset += kValueBytes) {
      vectors(row, column) = static_cast<float>(Load<Value>(bytes, offset));
    }
  }
  return vectors;
}

absl::StatusOr<std::vector<int32_t>> ParseIvecsLabels(absl::string_view name,
                                                      absl::string_view bytes) {
  PM_ASSIGN_OR_RETURN(const Table table, MeasureTable(name, bytes));
  if (table.columns != 1) {
    return BadFile(name, "expected 1 column of labels, got ", table.columns);
  }
  std::vector<int32_t> labels(table.rows);
  for (size_t row = 0; row < labels.size(); ++row) {
    labels[row] = Load<int32_t>(bytes, (2 * row + 1) * kValueBytes);
  }
  return labels;
}

}  // namespace

absl::StatusOr<FloatMatrix> ParseVectors(absl::string_view name, absl::string_view bytes) {
  if (absl::EndsWithIgnoreCase(name, ".npy")) return ParseNpyVectors(name, bytes);
  if (absl::EndsWithIgnoreCase(name, ".fvecs")) return ParseTable<float>(name, bytes);
  if (absl::EndsWithIgnoreCase(name, ".ivecs")) return ParseTable<int32_t>(name, bytes);
  if (absl::EndsWithIgnoreCase(name, ".csv")) return ParseCsvVectors(name, bytes);
  return BadFile(name, "expected a name that ends in .npy, .fvecs, .ivecs or .csv");
}

absl::StatusOr<std::vector<int32_t>> ParseLabels(absl::string_view name, absl::string_view bytes) {
  if (absl::EndsWithIgnoreCase(name, ".npy")) return ParseNpyLabels(name, bytes);
  if (absl::EndsWithIgnoreCase(name, ".ivecs")) return ParseIvecsLabels(name, bytes);
  if (absl::EndsWithIgnoreCase(name, ".csv") || absl::EndsWithIgnoreCase(name, ".txt")) {
    return ParseCsvLabels(name, bytes);
  }
  return BadFile(name, "expected a name that ends in .npy, .ivecs, .csv or .txt");
}

absl::StatusOr<FloatMatrix> ReadVectors(const std::string& path) {
  PM_ASSIGN_OR_RETURN(const std::string bytes, ReadFileBytes(path));
  return ParseVectors(path, bytes);
}

absl::StatusOr<std::vector<int32_t>> ReadLabels(const std::string& path) {
  PM_ASSIGN_OR_RETURN(const std::string bytes, ReadFileBytes(path));
  return ParseLabels(path, bytes);
}

}  // namespace privatemail
