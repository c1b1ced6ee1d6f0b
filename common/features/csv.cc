// Parser of .csv and .txt: lines of numbers separated by commas.
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
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

// Splits text into non-blank lines and lines into cells, without copying.
class Lines {
 public:
  explicit Lines(absl::string_view bytes) : rest_(bytes) {
    absl::ConsumePrefix(&rest_, "\xef\xbb\xbf");  // the byte order mark of some spreadsheets
  }

  std::optional<absl::string_view> Next() {
    while (!rest_.empty()) {
      const absl::string_view line = absl::StripAsciiWhitespace(TakeUntil('\n', &rest_));
      ++number_;
      if (!line.empty()) return line;
    }
    return std::nullopt;
  }

  int64_t number() const { return number_; }  // of the last line returned, from 1

  // Removes and returns the text of *rest up to the separator.
  static absl::string_view TakeUntil(char separator, absl::string_view* rest) {
    const size_t end = rest->find(separator);
    const absl::string_view taken = rest->substr(0, end);
    rest->remove_prefix(end == absl::string_view::npos ? rest->size() : end + 1);
    return taken;
  }

 private:
  absl::string_view rest_;
  int64_t number_ = 0;
};

// Whether every cell begins like a name. nan and inf are numbers.
bool IsLineOfNames(absl::string_view line) {
  bool more = true;
  while (more) {
    more = line.find(',') != absl::string_view::npos;
    const absl::string_view cell = absl::StripAsciiWhitespace(Lines::TakeUntil(',', &line));
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
  bool more = true;
  while (more) {
    more = line.find(',') != absl::string_view::npos;
    const absl::string_view cell = absl::StripAsciiWhitespace(Lines::TakeUntil(',', &line));
    ++column;
    float value;
    if (!absl::SimpleAtof(cell, &value)) {
      return BadFile(name, "line ", line_number, " column ", column, ": expected a number, got ",
                     Quoted(cell));
    }
    values->push_back(value);
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
  Lines lines(bytes);
  // Not reserved: the product of rows and columns could be any size.
  std::vector<float> values;
  int64_t rows = 0, columns = 0;
  bool first = true;
  while (const auto line = lines.Next()) {
    if (std::exchange(first, false) && IsLineOfNames(*line)) continue;
    PM_ASSIGN_OR_RETURN(const int64_t cells, AppendCells(name, lines.number(), *line, &values));
    if (rows == 0) columns = cells;
    if (cells != columns) {
      return BadFile(name, "line ", lines.number(), ": expected ", columns,
                     " columns as in the first row, got ", cells);
    }
    ++rows;
  }
  if (rows == 0) return BadFile(name, "expected at least one row of numbers, got none");
  return FloatMatrix(Eigen::Map<const FloatMatrix>(values.data(), rows, columns));
}

absl::StatusOr<std::vector<int32_t>> ParseCsvLabels(absl::string_view name,
                                                    absl::string_view bytes) {
  Lines lines(bytes);
  std::vector<int32_t> labels;
  bool first = true;
  while (const auto line = lines.Next()) {
    if (std::exchange(first, false) && IsLabelHeader(*line)) continue;
    PM_ASSIGN_OR_RETURN(const int32_t label,
                        ParseLabel(name, lines.number(), std::ssize(labels), *line));
    labels.push_back(label);
  }
  if (labels.empty()) return BadFile(name, "expected at least one label, got none");
  return labels;
}

}  // namespace privatemail
