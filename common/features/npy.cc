// Parser of numpy's .npy: magic, version, length of the header, header (a Python dict), values.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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
    return BadFile(name, "expected an .npy file, which begins with \\x93NUMPY, got other bytes");
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
  header.values_at = text_at + length;
  return header;
}

// The type of an array's values, "<f4": order of bytes, kind, and width in bytes, of 'U' in
// characters of 4 bytes.
struct ValueType {
  bool is_big_endian = false;
  char kind = 0;
  size_t width = 0;

  bool IsNumber() const {
    if (kind == 'f') return width == 2 || width == 4 || width == 8;
    return (kind == 'i' || kind == 'u') && (width == 1 || width == 2 || width == 4 || width == 8);
  }
};

constexpr absl::string_view kObjects = "|O";

ValueType ParseType(const std::string& descr) {
  constexpr size_t kMaxWidth = size_t{1} << 20;
  ValueType type;
  if (descr.size() < 3 || descr.find_first_of("<>|=") != 0 ||
      !absl::SimpleAtoi(descr.substr(2), &type.width) || type.width > kMaxWidth) {
    return type;  // of no kind
  }
  type.is_big_endian = descr[0] == '>';
  type.kind = descr[1] == 'b' ? 'u' : descr[1];  // truth values are bytes 0 and 1
  if (type.kind == 'U') type.width *= sizeof(char32_t);
  return type;
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

// The value of `type`, an integer or a float, as a label. Integers are exact in a double up to
// 2^53, far beyond what a label may be.
absl::StatusOr<int32_t> LabelAt(absl::string_view name, absl::string_view bytes,
                                const ValueType& type, size_t offset, int64_t row) {
  char value[8] = {};
  std::memcpy(value, bytes.data() + offset, type.width);
  if (type.is_big_endian) std::reverse(value, value + type.width);
  const absl::string_view view(value, sizeof(value));
  const bool is_negative = type.kind == 'i' && (value[type.width - 1] & 0x80) != 0;
  if (is_negative) std::memset(value + type.width, 0xff, sizeof(value) - type.width);
  double number = type.kind == 'u' ? static_cast<double>(Load<uint64_t>(view, 0))
                                   : static_cast<double>(Load<int64_t>(view, 0));
  if (type.kind == 'f') {
    number = type.width == 2   ? static_cast<double>(static_cast<float>(Load<Eigen::half>(view, 0)))
             : type.width == 4 ? static_cast<double>(Load<float>(view, 0))
                               : Load<double>(view, 0);
  }
  return LabelOf(name, row, number);
}

// UTF-8 of a text that numpy pads with NUL: bytes ('S'), or characters of 4 bytes ('U').
absl::StatusOr<std::string> TextAt(absl::string_view name, absl::string_view bytes,
                                   const ValueType& type, size_t offset, int64_t row) {
  if (type.kind == 'S') {
    const absl::string_view text = bytes.substr(offset, type.width);
    return std::string(text.substr(0, text.find_last_not_of('\0') + 1));
  }
  std::string text;
  size_t length = 0;  // without padding
  for (size_t at = 0; at < type.width; at += sizeof(char32_t)) {
    auto code = Load<uint32_t>(bytes, offset + at);
    if (type.is_big_endian) code = __builtin_bswap32(code);
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      return BadFile(name, "row ", row, ": expected text, got what is no character");
    }
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else {
      const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
      text += static_cast<char>((0xf0 << (3 - more)) | (code >> (6 * more)));
      for (int i = more - 1; i >= 0; --i) {
        text += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3f));
      }
    }
    if (code != 0) length = text.size();
  }
  text.resize(length);
  return text;
}

}  // namespace

std::optional<size_t> NpyDimensions(absl::string_view bytes) {
  const absl::StatusOr<Header> header = ParseHeader("", bytes);
  return header.ok() ? std::optional(header->shape.size()) : std::nullopt;
}

std::optional<int32_t> WholeLabel(double number) {
  using Limits = std::numeric_limits<int32_t>;
  if (std::isnan(number)) return Limits::min();  // kNoLabel
  if (!(number >= Limits::min() && number <= Limits::max()) || std::trunc(number) != number) {
    return std::nullopt;
  }
  return static_cast<int32_t>(number);
}

absl::StatusOr<int32_t> LabelOf(absl::string_view name, int64_t row, double number) {
  if (const std::optional<int32_t> label = WholeLabel(number); label.has_value()) return *label;
  if (std::trunc(number) == number) {
    return BadFile(name, "row ", row, ": the label is beyond what a 32-bit integer holds");
  }
  return BadFile(name, "row ", row, ": the label is no whole number");
}

absl::StatusOr<VectorFile> ParseNpyVectors(absl::string_view name, absl::string_view bytes) {
  PM_ASSIGN_OR_RETURN(const Header header, ParseHeader(name, bytes));
  if (header.descr == kObjects) {
    return BadFile(name, "it holds Python objects, whose format can run code and is not read: ",
                   "save it with np.save(path, array.astype(\"float32\"))");
  }
  const ValueType type = ParseType(header.descr);
  if (!type.IsNumber()) {
    return BadFile(name, "expected floats of 16 to 64 bits or integers, got dtype '",
                   absl::CHexEscape(header.descr.substr(0, 40)), "'");
  }
  if (header.shape.size() != 2) {
    return BadFile(name, "expected an array of 2 dimensions, got ", header.shape.size());
  }
  const int64_t rows = header.shape[0], columns = header.shape[1];
  PM_RETURN_IF_ERROR(CheckSize(name, bytes, header, rows, columns, type.width));
  const auto width = static_cast<int64_t>(type.width);
  return VectorFile(rows, columns,
                    {.first = bytes.data() + header.values_at,
                     .kind = type.kind,
                     .width = static_cast<int>(width),
                     .is_big_endian = type.is_big_endian,
                     .row_stride = header.fortran_order ? width : columns * width,
                     .col_stride = header.fortran_order ? rows * width : width},
                    nullptr);
}

absl::StatusOr<LabelColumn> ParseNpyLabels(absl::string_view name, absl::string_view bytes) {
  PM_ASSIGN_OR_RETURN(const Header header, ParseHeader(name, bytes));
  const bool one_column = header.shape.size() == 2 && header.shape[1] == 1;
  if (header.shape.size() != 1 && !one_column) {
    return BadFile(name, "expected labels of shape (n,) or (n, 1), got ", header.shape.size(),
                   " dimensions",
                   header.shape.size() == 2 ? absl::StrCat(", shape ", ShapeText(header)) : "");
  }
  if (header.descr == kObjects) {
    return ParseObjectLabels(name, bytes.substr(header.values_at), header.shape[0]);
  }
  const ValueType type = ParseType(header.descr);
  const bool is_text = type.kind == 'U' || type.kind == 'S';
  if (!(is_text && type.width > 0) && !type.IsNumber()) {
    return BadFile(name, "expected labels that are numbers or text, got dtype '",
                   absl::CHexEscape(header.descr.substr(0, 40)), "'");
  }
  PM_RETURN_IF_ERROR(CheckSize(name, bytes, header, header.shape[0], 1, type.width));
  LabelColumn labels;
  for (int64_t row = 0; row < header.shape[0]; ++row) {
    const size_t offset = header.values_at + static_cast<size_t>(row) * type.width;
    if (is_text) {
      PM_ASSIGN_OR_RETURN(labels.names.emplace_back(), TextAt(name, bytes, type, offset, row));
    } else {
      PM_ASSIGN_OR_RETURN(labels.numbers.emplace_back(), LabelAt(name, bytes, type, offset, row));
    }
  }
  return labels;
}

}  // namespace privatemail
