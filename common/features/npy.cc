// Parser of numpy's .npy: magic, version, length of the header, header (a Python dict), values.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <regex>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/features/vector_formats.h"

namespace privatemail {
namespace {

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape = {};
  size_t values_at = 0;  // offset of the first value
};

// Parses the dict that numpy writes, of three keys in any order.
absl::StatusOr<Header> ParseDict(absl::string_view name, absl::string_view text) {
  constexpr size_t kMaxBytes = 1000;  // std::regex recurses; numpy writes about a hundred
  static const std::regex descr(R"('descr'\s*:\s*'([^']*)')"),
      order(R"('fortran_order'\s*:\s*(True|False))"), shape(R"('shape'\s*:\s*\(([0-9, ]*)\))");
  const std::string dict(absl::StripTrailingAsciiWhitespace(text).substr(0, kMaxBytes));
  std::smatch found_descr, found_order, found_shape;
  if (!std::regex_search(dict, found_descr, descr) ||
      !std::regex_search(dict, found_order, order) ||
      !std::regex_search(dict, found_shape, shape)) {
    return BadFile(name, "header: expected descr in quotes, fortran_order and shape, got '",
                   absl::CHexEscape(dict.substr(0, 100)), "'");
  }
  Header header = {.descr = found_descr[1], .fortran_order = found_order[1] == "True"};
  const std::string lengths = found_shape[1];
  for (const absl::string_view length :
       absl::StrSplit(lengths, absl::ByAnyChar(", "), absl::SkipEmpty())) {
    if (absl::SimpleAtoi(length, &header.shape.emplace_back())) continue;
    return BadFile(name, "header: expected lengths below 2^63, got ", length);
  }
  return header;
}

absl::StatusOr<Header> ParseHeader(absl::string_view name, absl::string_view bytes) {
  constexpr absl::string_view kMagic("\x93NUMPY", 6);
  if (!absl::StartsWith(bytes, kMagic)) {
    return BadFile(name, "expected an .npy file, which begins with \\x93NUMPY, got '",
                   absl::CHexEscape(bytes.substr(0, kMagic.size())), "'");
  }
  if (bytes.size() < 12)
    return BadFile(name, "the header is cut off after ", bytes.size(), " bytes");
  const int version = static_cast<unsigned char>(bytes[6]);
  if (version < 1 || version > 3) {
    return BadFile(name, "expected version 1, 2 or 3 of .npy, got ", version);
  }
  const size_t text_at = version == 1 ? 10 : 12;
  const size_t length = version == 1 ? Load<uint16_t>(bytes, 8) : Load<uint32_t>(bytes, 8);
  if (length > bytes.size() - text_at) {
    return BadFile(name, "the header says it has ", length, " bytes, but only ",
                   bytes.size() - text_at, " follow");
  }
  PM_ASSIGN_OR_RETURN(Header header, ParseDict(name, bytes.substr(text_at, length)));
  if (header.fortran_order) {
    return BadFile(name, "expected C order (row after row), got Fortran order");
  }
  header.values_at = text_at + length;
  return header;
}

std::string ShapeText(const Header& header) {
  return absl::StrCat("(", absl::StrJoin(header.shape, ", "), ")");
}

// Checks that exactly rows * columns values of `width` bytes follow the header, without overflow.
absl::Status CheckSize(absl::string_view name, absl::string_view bytes, const Header& header,
                       int64_t rows, int64_t columns, size_t width) {
  if (rows < 1 || columns < 1) {
    return BadFile(name, "expected at least one row and one column, got shape ", ShapeText(header));
  }
  const size_t present = bytes.size() - header.values_at;
  const auto n = static_cast<uint64_t>(rows), d = static_cast<uint64_t>(columns);
  if (n > present / width / d) {
    return BadFile(name, "shape ", ShapeText(header), " of '", header.descr,
                   "' needs more values than the ", present, " bytes after the header hold");
  }
  const uint64_t needed = n * d * width;
  if (needed != present) {
    return BadFile(name, "shape ", ShapeText(header), " of '", header.descr, "' needs ", needed,
                   " bytes, but ", present, " follow the header");
  }
  return absl::OkStatus();
}

template <typename Integer>
absl::StatusOr<std::vector<int32_t>> CopyLabels(absl::string_view name, absl::string_view bytes,
                                                const Header& header) {
  const int64_t rows = header.shape[0];
  PM_RETURN_IF_ERROR(CheckSize(name, bytes, header, rows, 1, sizeof(Integer)));
  std::vector<int32_t> labels(rows);
  for (int64_t row = 0; row < rows; ++row) {
    const auto value = Load<Integer>(bytes, header.values_at + row * sizeof(Integer));
    if (!std::in_range<int32_t>(value)) {
      return BadFile(name, "row ", row, ": label ", value,
                     " is beyond what a 32-bit integer holds");
    }
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): int8_t is a number here, not a character.
    labels[row] = static_cast<int32_t>(value);
  }
  return labels;
}

}  // namespace

absl::StatusOr<FloatMatrix> ParseNpyVectors(absl::string_view name, absl::string_view bytes) {
  PM_ASSIGN_OR_RETURN(const Header header, ParseHeader(name, bytes));
  if (header.descr != "<f4" && header.descr != "<f8") {
    return BadFile(name, "expected float32 '<f4' or float64 '<f8', got dtype '",
                   absl::CHexEscape(header.descr.substr(0, 40)), "'");
  }
  if (header.shape.size() != 2) {
    return BadFile(name, "expected an array of 2 dimensions, got ", header.shape.size());
  }
  const size_t width = header.descr == "<f4" ? sizeof(float) : sizeof(double);
  const int64_t rows = header.shape[0], columns = header.shape[1];
  PM_RETURN_IF_ERROR(CheckSize(name, bytes, header, rows, columns, width));
  FloatMatrix vectors(rows, columns);
  size_t offset = header.values_at;
  for (float& value : absl::MakeSpan(vectors.data(), vectors.size())) {
    value = width == sizeof(float) ? Load<float>(bytes, offset)
                                   : static_cast<float>(Load<double>(bytes, offset));
    offset += width;
  }
  return vectors;
}

absl::StatusOr<std::vector<int32_t>> ParseNpyLabels(absl::string_view name,
                                                    absl::string_view bytes) {
  PM_ASSIGN_OR_RETURN(const Header header, ParseHeader(name, bytes));
  const bool one_column = header.shape.size() == 2 && header.shape[1] == 1;
  if (header.shape.size() != 1 && !one_column) {
    return BadFile(name, "expected labels of shape (n,) or (n, 1), got ", header.shape.size(),
                   " dimensions",
                   header.shape.size() == 2 ? absl::StrCat(", shape ", ShapeText(header)) : "");
  }
  const std::string& descr = header.descr;
  if (descr == "|i1") return CopyLabels<int8_t>(name, bytes, header);
  if (descr == "|u1") return CopyLabels<uint8_t>(name, bytes, header);
  if (descr == "<i2") return CopyLabels<int16_t>(name, bytes, header);
  if (descr == "<u2") return CopyLabels<uint16_t>(name, bytes, header);
  if (descr == "<i4") return CopyLabels<int32_t>(name, bytes, header);
  if (descr == "<u4") return CopyLabels<uint32_t>(name, bytes, header);
  if (descr == "<i8") return CopyLabels<int64_t>(name, bytes, header);
  if (descr == "<u8") return CopyLabels<uint64_t>(name, bytes, header);
  return BadFile(name, "expected labels of an integer type such as '<i4', got dtype '",
                 absl::CHexEscape(descr.substr(0, 40)), "'");
}

}  // namespace privatemail
