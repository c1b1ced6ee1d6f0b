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

// Whether a header's first cell names an index column. pandas leaves it empty, and calls it
// "Unnamed: 0" once it has read and written it.
bool IsIndexName(absl::string_view cell) {
  const absl::string_view name = WithoutQuotes(cell);
  return name.empty() || absl::EqualsIgnoreCase(name, "index") || name == "Unnamed: 0";
}

// Ids must not be lost as an index that nobody needs.
absl::Status CheckNoIds(absl::string_view file, int64_t line, absl::string_view cell) {
  const absl::string_view name = WithoutQuotes(cell);
  if (!absl::EqualsIgnoreCase(name, "id")) return absl::OkStatus();
  return BadFile(file, "line ", line, ": column ", name,
                 " holds ids: give them by --ids, in a file of one id a line, and leave the column "
                 "out");
}

bool IsName(absl::string_view cell) {
  double number;
  if (cell.empty() || absl::SimpleAtod(cell, &number)) return false;
  return absl::ascii_isalpha(cell[0]) || cell[0] == '_' || cell[0] == '"';
}

// Whether every cell begins like a name. nan and inf are numbers.
bool IsLineOfNames(absl::string_view line) {
  for (const absl::string_view text : absl::StrSplit(line, ',')) {
    if (!IsName(absl::StripAsciiWhitespace(text))) return false;
  }
  return true;
}

// Whether the line is 0,1,2,...: the header of pandas over columns without names, or a row.
bool CountsColumns(absl::string_view line) {
  int64_t column = 0;
  for (const absl::string_view text : absl::StrSplit(line, ',')) {
    int64_t number;
    if (!absl::SimpleAtoi(WithoutQuotes(text), &number) || number != column++) return false;
  }
  return true;
}

// Appends the numbers of one line and returns their count. first: column of the line's first cell.
absl::StatusOr<int64_t> AppendCells(absl::string_view name, int64_t line_number, int64_t first,
                                    absl::string_view line, std::vector<float>* values) {
  int64_t count = 0;
  for (const absl::string_view text : absl::StrSplit(line, ',')) {
    const absl::string_view cell = absl::StripAsciiWhitespace(text);
    if (!absl::SimpleAtof(cell, &values->emplace_back())) {
      return BadFile(name, "line ", line_number, " column ", first + count,
                     ": expected a number, got ", Described(cell),
                     cell.find_first_of("; \t") == absl::string_view::npos
                         ? ""
                         : ": commas separate columns, and points decimals");
    }
    ++count;
  }
  return count;
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

absl::StatusOr<VectorFile> ParseCsvVectors(absl::string_view name, absl::string_view bytes) {
  // Not reserved: the product of rows and columns could be any size.
  auto values = std::make_shared<std::vector<float>>();
  int64_t rows = 0, columns = 0;
  bool has_index = false, first_counts = false;
  const auto is_header = [&](int64_t number, absl::string_view line) -> absl::StatusOr<bool> {
    const size_t comma = line.find(',');
    PM_RETURN_IF_ERROR(CheckNoIds(name, number, line.substr(0, comma)));
    has_index = comma != absl::string_view::npos && IsIndexName(line.substr(0, comma));
    const absl::string_view names = line.substr(has_index ? comma + 1 : 0);
    first_counts = CountsColumns(names);
    const bool is_names = IsLineOfNames(names) || (has_index && first_counts);
    has_index = has_index && is_names;
    first_counts = first_counts && !is_names;
    return is_names;
  };
  const auto append = [&](int64_t number, absl::string_view line) -> absl::Status {
    const int64_t first = has_index ? 2 : 1;
    if (has_index) line.remove_prefix(std::min(line.find(','), line.size() - 1) + 1);
    if (rows == 1 && first_counts && line.find_first_of(".eEnN") != absl::string_view::npos) {
      values->clear();
      rows = 0;
      first_counts = false;
    }
    PM_ASSIGN_OR_RETURN(const int64_t cells, AppendCells(name, number, first, line, values.get()));
    if (rows++ == 0) columns = cells;
    if (cells == columns) return absl::OkStatus();
    return BadFile(name, "line ", number, ": expected ", columns,
                   " columns as in the first row, got ", cells);
  };
  PM_RETURN_IF_ERROR(ForEachLine(name, bytes, is_header, append));
  if (rows == 0) return BadFile(name, "expected at least one row of numbers, got none");
  const auto* first = reinterpret_cast<const char*>(values->data());
  const auto stride = columns * static_cast<int64_t>(sizeof(float));
  return VectorFile(rows, columns, {.first = first, .row_stride = stride}, std::move(values));
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
