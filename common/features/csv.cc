// Parser of .csv and .txt: lines of numbers separated by commas, and lines of labels.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/input_file.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/features/vector_formats.h"

namespace privatemail {
namespace {

// Describes a cell without its value, which may be private.
std::string Described(absl::string_view cell) {
  if (cell.empty()) return "nothing";
  std::string text = absl::StrCat("text of length ", cell.size());
  if (absl::StrContains(cell, ';')) absl::StrAppend(&text, " with ';'");
  return text;
}

// Calls `use` for each line that is not blank, with its number from 1, until an error. The first of
// them is skipped if it `is_header`.
absl::Status ForEachLine(
    absl::string_view name, absl::string_view bytes,
    absl::FunctionRef<absl::StatusOr<bool>(int64_t number, absl::string_view line)> is_header,
    absl::FunctionRef<absl::Status(int64_t number, absl::string_view line)> use) {
  PM_RETURN_IF_ERROR(SkipByteOrderMark(name, &bytes));
  int64_t number = 0;
  bool first = true;
  for (const absl::string_view whole : absl::StrSplit(bytes, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(whole);
    if (line.empty()) continue;
    if (std::exchange(first, false)) {
      PM_ASSIGN_OR_RETURN(const bool skip, is_header(number, line));
      if (skip) continue;
    }
    PM_RETURN_IF_ERROR(use(number, line));
  }
  return absl::OkStatus();
}

absl::string_view WithoutQuotes(absl::string_view cell) {
  cell = absl::StripAsciiWhitespace(cell);
  if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {
    cell = cell.substr(1, cell.size() - 2);
  }
  return cell;
}

// The place at which the first cell of the line ends, which quotes may enclose.
size_t EndOfFirstCell(absl::string_view line) {
  bool quoted = false;
  size_t at = 0;
  for (; at < line.size() && (quoted || line[at] != ','); ++at) {
    quoted = quoted != (line[at] == '"');
  }
  return at;
}

// Whether a header's first cell names an index column. pandas leaves it empty, and calls it
// "Unnamed: 0" once it has read and written it.
bool IsIndexName(absl::string_view cell) {
  const absl::string_view name = WithoutQuotes(cell);
  return name.empty() || absl::EqualsIgnoreCase(name, "index") || name == "Unnamed: 0";
}

// The ids of a file of labels would be lost.
absl::Status CheckNoIds(absl::string_view file, int64_t line, absl::string_view cell) {
  const absl::string_view name = WithoutQuotes(cell);
  if (!IsIdColumn(name)) return absl::OkStatus();
  return BadFile(file, "line ", line, ": column ", name,
                 " holds ids: give them by --ids, in a file of one id a line, and leave the column "
                 "out");
}

bool IsNumber(absl::string_view cell) {
  double number;
  return absl::SimpleAtod(cell, &number);
}

// Quoted numbers are names unless quotes enclose the numbers of rows, too.
bool IsName(absl::string_view cell, bool rows_are_quoted) {
  cell = absl::StripAsciiWhitespace(cell);
  const absl::string_view content = WithoutQuotes(cell);
  if (IsNumber(content)) return content.size() < cell.size() && !rows_are_quoted;
  if (cell.empty()) return false;
  const bool is_ascii = absl::ascii_isascii(static_cast<unsigned char>(cell[0]));
  return !is_ascii || absl::ascii_isalpha(cell[0]) || cell[0] == '_' || cell[0] == '"';
}

// The content of a first line: a row, or a header. pandas calls columns without names 0,1,2,...
enum class FirstLine { kRow, kNames, kNumbers, kNamesAndNumbers };

FirstLine KindOfFirstLine(const std::vector<absl::string_view>& cells, bool rows_are_quoted) {
  int64_t names = 0, numbers = 0;
  for (const absl::string_view cell : cells) {
    int64_t number;
    if (IsName(cell, rows_are_quoted)) {  // nan and inf are numbers
      ++names;
    } else if (!absl::SimpleAtoi(WithoutQuotes(cell), &number) || number != numbers++) {
      return FirstLine::kRow;
    }
  }
  return names == std::ssize(cells) ? FirstLine::kNames
         : names == 0               ? FirstLine::kNumbers
                                    : FirstLine::kNamesAndNumbers;
}

// Integers that follow each other, such as years, as names of columns.
bool AreConsecutive(const std::vector<absl::string_view>& cells) {
  int64_t before = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    int64_t number;
    if (!absl::SimpleAtoi(WithoutQuotes(cells[i]), &number)) return false;
    if (i > 0 && number != before + 1) return false;
    before = number;
  }
  return true;
}

// Whether the line has text or decimals, which a header of numbers is over, but a row of integers
// is not.
bool HasTextOrDecimals(absl::string_view line) {
  return std::any_of(line.begin(), line.end(),
                     [](char c) { return c == '.' || absl::ascii_isalpha(c); });
}

// The second line that is not blank; empty if there is none.
absl::string_view SecondLine(absl::string_view bytes) {
  bool is_second = false;
  for (const absl::string_view whole : absl::StrSplit(bytes, '\n')) {
    const absl::string_view line = absl::StripAsciiWhitespace(whole);
    if (!line.empty() && std::exchange(is_second, true)) return line;
  }
  return "";
}

// Whether the line may follow a header of such numbers over an index column, and not a row whose
// first number is missing: pandas writes all numbers of that column with decimals then.
bool FollowsIndexHeader(absl::string_view line, const std::vector<absl::string_view>& numbers) {
  const size_t end = EndOfFirstCell(line);
  const absl::string_view first = WithoutQuotes(line.substr(0, end));
  int64_t integer;
  return (!IsNumber(first) || absl::SimpleAtoi(first, &integer)) &&
         (AreConsecutive(numbers) || HasTextOrDecimals(line.substr(end)));
}

// The cells of a line, which quotes may enclose; "" within quotes is one quote.
std::vector<std::string> SplitCells(absl::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      const bool is_escaped = quoted && i + 1 < line.size() && line[i + 1] == '"';
      if (is_escaped) cells.back() += line[++i];
      if (!is_escaped) quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
  return cells;
}

// Appends the numbers of one line and returns their count. names: of the header's columns, if there
// is one. first: column of the line's first cell.
absl::StatusOr<int64_t> AppendCells(absl::string_view name, int64_t line_number,
                                    const std::vector<std::string>& names, int64_t first,
                                    absl::string_view line, std::vector<float>* values) {
  int64_t column = first;
  const bool is_first_row = values->empty();
  for (const absl::string_view text : absl::StrSplit(line, ',')) {
    const absl::string_view cell = WithoutQuotes(text);
    if (!absl::SimpleAtof(cell, &values->emplace_back())) {
      const bool has_separator = cell.find_first_of("; \t") != absl::string_view::npos;
      const bool is_named =
          column <= std::ssize(names) && !IsNumber(names[static_cast<size_t>(column - 1)]);
      return BadFile(
          name, "line ", line_number, " column ", column,
          is_named ? absl::StrCat(" (", Printable(names[static_cast<size_t>(column - 1)]), ")")
                   : "",
          ": expected a number, got ", Described(cell),
          is_named && is_first_row && !cell.empty() ? ": leave a column of text out, or give it by "
                                                      "--labels or --ids, in a file of its own"
          : has_separator ? ": commas separate columns, and points decimals"
                          : "");
    }
    ++column;
  }
  return column - first;
}

// Whether the first of the lines, which are one more than the rows, is no label of one of them: a
// text that no other line repeats.
bool IsColumnName(const std::vector<std::string>& lines) {
  double number;
  return lines.size() > 1 && !lines[0].empty() && !absl::SimpleAtod(lines[0], &number) &&
         std::count(lines.begin(), lines.end(), lines[0]) == 1;
}

// Only these words: any other name may be that of a class, which must not be skipped in silence.
bool IsLabelHeader(absl::string_view line) {
  const absl::string_view name = WithoutQuotes(line);
  return absl::EqualsIgnoreCase(name, "label") || absl::EqualsIgnoreCase(name, "labels");
}

// Fills the numbers if no label is a name. lines: of each label.
absl::Status AddNumbers(absl::string_view name, const std::vector<int64_t>& lines,
                        LabelColumn* labels) {
  std::vector<double> numbers;
  for (const std::string& text : labels->names) {
    double number = std::nan("");  // of a missing label
    if (!text.empty() && !absl::SimpleAtod(text, &number)) return absl::OkStatus();
    numbers.push_back(number);
  }
  for (size_t row = 0; row < numbers.size(); ++row) {
    const std::optional<int32_t> label = WholeLabel(numbers[row]);
    if (label.has_value()) {
      labels->numbers.push_back(*label);
      continue;
    }
    if (std::trunc(numbers[row]) != numbers[row]) {
      return BadFile(name, "line ", lines[row],
                     " column 1: expected one integer, got a number with decimals");
    }
    return BadFile(name, "row ", row, " (line ", lines[row],
                   "): the label is beyond what a 32-bit integer holds");
  }
  for (size_t row = 0; row < numbers.size(); ++row) {  // "1.0", of integers beside missing ones
    std::string& text = labels->names[row];
    if (absl::StrContains(text, '.')) text = absl::StrCat(labels->numbers[row]);
  }
  return absl::OkStatus();
}

}  // namespace

bool IsIdColumn(absl::string_view name) {
  return absl::EqualsIgnoreCase(name, "id") || absl::EndsWithIgnoreCase(name, "_id");
}

absl::StatusOr<VectorFile> ParseCsvVectors(absl::string_view name, absl::string_view bytes) {
  // Not reserved: the product of rows and columns could be any size.
  auto values = std::make_shared<std::vector<float>>();
  int64_t rows = 0, columns = 0;
  std::vector<std::string> names, ids;
  bool has_index = false, ids_are_row_numbers = true;
  bool first_may_be_row = false;  // a first line of numbers, perhaps beside names
  absl::Status first_line;        // its error as a row
  const auto is_header = [&](int64_t number, absl::string_view line) -> absl::StatusOr<bool> {
    const size_t end = EndOfFirstCell(line);
    const absl::string_view first = line.substr(0, end);
    has_index = end < line.size() && (IsIndexName(first) || IsIdColumn(WithoutQuotes(first)));
    const std::vector<absl::string_view> cells =
        absl::StrSplit(line.substr(has_index ? end + 1 : 0), ',');
    if (has_index && cells.front().empty()) {
      return BadFile(name, "line ", number,
                     ": expected one index column, which has no name, got more");
    }
    const absl::string_view second = SecondLine(bytes);
    FirstLine kind = KindOfFirstLine(cells, second.empty() || second.back() == '"');
    if (kind == FirstLine::kRow && has_index && WithoutQuotes(first).empty() &&
        FollowsIndexHeader(second, cells)) {
      kind = FirstLine::kNumbers;
    }
    has_index = has_index && kind != FirstLine::kRow;
    if (kind == FirstLine::kRow) return false;
    const std::vector<std::string> header = SplitCells(line);
    for (size_t i = 0; i < header.size(); ++i) {
      if (i > 0 && IsIdColumn(header[i])) {
        return BadFile(name, "line ", number, ": expected column ", Printable(header[i]),
                       " as the first, since it holds ids, got it as column ", i + 1,
                       ": move it or leave it out");
      }
      if (IsLabelHeader(header[i])) {
        return BadFile(name, "line ", number, ": column ", Printable(header[i]),
                       " holds labels: give them by --labels, in a file of its own");
      }
    }
    first_may_be_row = !has_index && kind != FirstLine::kNames;
    if (first_may_be_row && kind == FirstLine::kNumbers) return false;
    if (first_may_be_row) {
      first_line = AppendCells(name, number, {}, 1, line, values.get()).status();
    }
    values->clear();
    names = header;
    return true;
  };
  const auto append = [&](int64_t number, absl::string_view line) -> absl::Status {
    if (has_index) {
      const size_t end = EndOfFirstCell(line);
      ids.push_back(SplitCells(line.substr(0, end)).front());
      ids_are_row_numbers = ids_are_row_numbers && ids.back() == absl::StrCat(rows);
      line.remove_prefix(std::min(end + 1, line.size()));
    }
    if (first_may_be_row && (rows == 1 || !first_line.ok())) {
      first_may_be_row = false;
      if (HasTextOrDecimals(line)) {
        values->clear();
        rows = 0;
      } else if (!first_line.ok()) {
        return first_line;
      }
    }
    PM_ASSIGN_OR_RETURN(const int64_t cells,
                        AppendCells(name, number, names, has_index ? 2 : 1, line, values.get()));
    if (rows++ == 0) columns = cells;
    const int64_t named = std::ssize(names) - (has_index ? 1 : 0);
    if (!names.empty() && cells != named) {
      return BadFile(name, "line ", number, ": expected ", named, " columns as in the header, got ",
                     cells);
    }
    if (cells == columns) return absl::OkStatus();
    return BadFile(name, "line ", number, ": expected ", columns,
                   " columns as in the first row, got ", cells);
  };
  PM_RETURN_IF_ERROR(ForEachLine(name, bytes, is_header, append));
  if (rows == 0) PM_RETURN_IF_ERROR(first_line);
  if (rows == 0) return BadFile(name, "expected at least one row of numbers, got none");
  if (ids_are_row_numbers) ids.clear();
  const auto* first = reinterpret_cast<const char*>(values->data());
  const auto stride = columns * static_cast<int64_t>(sizeof(float));
  return VectorFile(rows, columns, {.first = first, .row_stride = stride}, std::move(values),
                    std::move(ids));
}

absl::StatusOr<LabelColumn> ParseTextLabels(absl::string_view name, absl::string_view bytes,
                                            bool has_cells, int64_t rows) {
  LabelColumn labels;
  std::vector<int64_t> lines;
  bool has_index = false;
  const auto is_header = [&](int64_t number, absl::string_view line) -> absl::StatusOr<bool> {
    const std::vector<std::string> cells = SplitCells(line);
    if (has_cells && cells.size() == 2) PM_RETURN_IF_ERROR(CheckNoIds(name, number, cells[0]));
    // The first of two cells alone tells: any name may be that of the labels.
    has_index = has_cells && cells.size() == 2 && IsIndexName(cells[0]);
    return has_index || IsLabelHeader(line);
  };
  const auto append = [&](int64_t number, absl::string_view line) -> absl::Status {
    std::vector<std::string> cells;
    cells.emplace_back(line);
    if (has_cells) cells = SplitCells(line);
    if (cells.size() != (has_index ? 2 : 1)) {
      return BadFile(name, "line ", number, ": expected one label, got ", cells.size(), " cells");
    }
    labels.names.push_back(std::move(cells.back()));
    lines.push_back(number);
    return absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(ForEachLine(name, bytes, is_header, append));
  if (labels.names.empty()) return BadFile(name, "expected at least one label, got none");
  if (has_cells && std::ssize(labels.names) == rows + 1 && IsColumnName(labels.names)) {
    labels.names.erase(labels.names.begin());
    lines.erase(lines.begin());
  }
  PM_RETURN_IF_ERROR(AddNumbers(name, lines, &labels));
  return labels;
}

}  // namespace privatemail
