// Parser of .csv and .txt: lines of numbers separated by commas.
#include <limits>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/features/vector_formats.h"

namespace privatemail {
namespace {

// The beginning of a cell for a message; a cell can be as long as the file.
std::string Quoted(absl::string_view cell) {
  constexpr size_t kMaxQuoted = 40;
  return absl::StrCat("'", absl::CHexEscape(cell.substr(0, kMaxQuoted)),
                      cell.size() > kMaxQuoted ? "...'" : "'");
}

// Calls `use` for each line that is not blank, with its number from 1, until an error. The first of
// them is skipped if it `is_header`.
absl::Status ForEachLine(
    absl::string_view bytes, absl::FunctionRef<bool(absl::string_view line)> is_header,
    absl::FunctionRef<absl::Status(int64_t number, absl::string_view line)> use) {
  absl::ConsumePrefix(&bytes, "\xef\xbb\xbf");  // the byte order mark of some spreadsheets
  int64_t number = 0;
  bool first = true;
  for (const absl::string_view whole : absl::StrSplit(bytes, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(whole);
    if (line.empty() || (std::exchange(first, false) && is_header(line))) continue;
    PM_RETURN_IF_ERROR(use(number, line));
  }
  return absl::OkStatus();
}

// Whether every cell begins like a name. nan and inf are numbers.
bool IsLineOfNames(absl::string_view line) {
  for (const absl::string_view text : absl::StrSplit(line, ',')) {
    const absl::string_view cell = absl::StripAsciiWhitespace(text);
    double number;
    if (cell.empty() || absl::SimpleAtod(cell, &number)) return false;
    if (!absl::ascii_isalpha(cell[0]) && cell[0] != '_' && cell[0] != '"') return false;
  }
  return true;
}

// Appends the numbers of one line and returns their count.
absl::StatusOr<int64_t> AppendCells(absl::string_view name, int64_t line_number,
                                    absl::string_view line, std::vector<float>* values) {
  int64_t column = 0;
  for (const absl::string_view text : absl::StrSplit(line, ',')) {
    const absl::string_view cell = absl::StripAsciiWhitespace(text);
    ++column;
    if (absl::SimpleAtof(cell, &values->emplace_back())) continue;
    return BadFile(name, "line ", line_number, " column ", column, ": expected a number, got ",
                   Quoted(cell));
  }
  return column;
}

absl::StatusOr<int32_t> ParseLabel(absl::string_view name, int64_t line_number, int64_t row,
                                   absl::string_view line) {
  int64_t wide;
  if (absl::SimpleAtoi(line, &wide) && wide >= std::numeric_limits<int32_t>::min() &&
      wide <= std::numeric_limits<int32_t>::max()) {
    return static_cast<int32_t>(wide);
  }
  double number;
  if (absl::SimpleAtod(line, &number) && std::trunc(number) == number) {
    return BadFile(name, "row ", row, " (line ", line_number, "): label ", Quoted(line),
                   " is beyond what a 32-bit integer holds");
  }
  return BadFile(name, "line ", line_number, " column 1: expected one integer, got ", Quoted(line));
}

// Only these words: any other name may be that of a class, which must not be skipped in silence.
bool IsLabelHeader(absl::string_view line) {
  absl::ConsumePrefix(&line, "\"");
  absl::ConsumeSuffix(&line, "\"");
  return absl::EqualsIgnoreCase(line, "label") || absl::EqualsIgnoreCase(line, "labels");
}

}  // namespace

absl::StatusOr<FloatMatrix> ParseCsvVectors(absl::string_view name, absl::string_view bytes) {
  // Not reserved: the product of rows and columns could be any size.
  std::vector<float> values;
  int64_t rows = 0, columns = 0;
  const auto append = [&](int64_t number, absl::string_view line) -> absl::Status {
    PM_ASSIGN_OR_RETURN(const int64_t cells, AppendCells(name, number, line, &values));
    if (rows++ == 0) columns = cells;
    if (cells == columns) return absl::OkStatus();
    return BadFile(name, "line ", number, ": expected ", columns,
                   " columns as in the first row, got ", cells);
  };
  PM_RETURN_IF_ERROR(ForEachLine(bytes, IsLineOfNames, append));
  if (rows == 0) return BadFile(name, "expected at least one row of numbers, got none");
  return FloatMatrix(Eigen::Map<const FloatMatrix>(values.data(), rows, columns));
}

absl::StatusOr<std::vector<int32_t>> ParseCsvLabels(absl::string_view name,
                                                    absl::string_view bytes) {
  std::vector<int32_t> labels;
  const auto append = [&](int64_t number, absl::string_view line) -> absl::Status {
    PM_ASSIGN_OR_RETURN(labels.emplace_back(), ParseLabel(name, number, std::ssize(labels), line));
    return absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(ForEachLine(bytes, IsLabelHeader, append));
  if (labels.empty()) return BadFile(name, "expected at least one label, got none");
  return labels;
}

}  // namespace privatemail
