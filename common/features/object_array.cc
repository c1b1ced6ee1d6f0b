// Reader of an array of Python objects in .npy, which is a pickle: one column of texts, numbers and
// None, in protocols 2 to 5. It knows the opcodes that numpy needs for them, refuses every other
// one, and calls nothing that a pickle names.
// https://github.com/python/cpython/blob/main/Lib/pickletools.py
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/features/vector_formats.h"

namespace privatemail {
namespace {

// A text may be repeated by references of two bytes. More than a label may have.
constexpr size_t kMaxTextBytes = 1024;

// What numpy's arrays name: module and name, a line each.
constexpr absl::string_view kGlobals[] = {
    "numpy.core.multiarray\n_reconstruct\n", "numpy._core.multiarray\n_reconstruct\n",
    "numpy\nndarray\n", "numpy\ndtype\n", "_codecs\nencode\n"};

// The values are those of the only list. The other two parts describe the array.
enum Part { kBeforeList = 1, kList = 2, kAfterList = 4, kEnd = 8 };

struct Opcode {
  char code;
  int argument;  // its bytes; -1, -4: those of its length; kLines: two lines
  int parts;     // in which it may be
};
constexpr int kLines = -2;

constexpr Opcode kOpcodes[] = {
    {'\x80', 1, kBeforeList},                       // PROTO
    {'\x95', 8, kBeforeList | kList | kAfterList},  // FRAME
    {'X', -4, kBeforeList | kList},                 // BINUNICODE
    {'\x8c', -1, kBeforeList | kList},              // SHORT_BINUNICODE
    {'C', -1, kBeforeList},                         // SHORT_BINBYTES
    {'N', 0, kBeforeList | kList},                  // NONE
    {'\x88', 0, kBeforeList},                       // NEWTRUE
    {'\x89', 0, kBeforeList},                       // NEWFALSE
    {'K', 1, kBeforeList | kList},                  // BININT1
    {'M', 2, kBeforeList | kList},                  // BININT2
    {'J', 4, kBeforeList | kList},                  // BININT
    {'\x8a', -1, kBeforeList | kList},              // LONG1, beyond 32 bits
    {'G', 8, kBeforeList | kList},                  // BINFLOAT, big-endian
    {'h', 1, kBeforeList | kList},                  // BINGET
    {'j', 4, kBeforeList | kList},                  // LONG_BINGET
    {'q', 1, kBeforeList | kList | kAfterList},     // BINPUT
    {'r', 4, kBeforeList | kList | kAfterList},     // LONG_BINPUT
    {'\x94', 0, kBeforeList | kList | kAfterList},  // MEMOIZE
    {'c', kLines, kBeforeList},                     // GLOBAL
    {'\x93', 0, kBeforeList},                       // STACK_GLOBAL
    {'\x85', 0, kBeforeList},                       // TUPLE1
    {'\x86', 0, kBeforeList},                       // TUPLE2
    {'\x87', 0, kBeforeList},                       // TUPLE3
    {'R', 0, kBeforeList},                          // REDUCE
    {']', 0, kBeforeList},                          // EMPTY_LIST
    {'(', 0, kBeforeList | kList},                  // MARK
    {'a', 0, kList},                                // APPEND
    {'e', 0, kList},                                // APPENDS
    {'t', 0, kBeforeList | kList},                  // TUPLE
    {'b', 0, kBeforeList | kAfterList},             // BUILD
    {'.', 0, kAfterList},                           // STOP
};

class ObjectReader {
 public:
  ObjectReader(absl::string_view name, absl::string_view pickle) : name_(name), left_(pickle) {}

  absl::StatusOr<LabelColumn> Read(int64_t rows) {
    while (part_ != kEnd) PM_RETURN_IF_ERROR(ReadOpcode());
    if (rows < 1 || row_ != rows || !left_.empty()) {
      return BadFile(name_, "expected the ", rows, " rows of the header, at least 1, got ", row_,
                     " and ", left_.size(), " bytes after them");
    }
    if (has_texts_.value_or(false)) {
      labels_.numbers.clear();
    } else {
      labels_.names.clear();
    }
    return std::move(labels_);
  }

 private:
  absl::StatusOr<absl::string_view> Take(size_t bytes) {
    if (bytes > left_.size()) return BadFile(name_, "the array of Python objects is cut off");
    const absl::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }

  absl::StatusOr<absl::string_view> TakeArgument(int size) {
    if (size >= 0) return Take(static_cast<size_t>(size));
    if (size == kLines) {
      const size_t end = left_.find('\n', left_.find('\n') + 1);
      return Take(end == absl::string_view::npos ? end : end + 1);
    }
    PM_ASSIGN_OR_RETURN(const absl::string_view length, Take(static_cast<size_t>(-size)));
    return Take(size == -1 ? Load<uint8_t>(length, 0) : Load<uint32_t>(length, 0));
  }

  absl::Status ReadOpcode() {
    PM_ASSIGN_OR_RETURN(const absl::string_view code, Take(1));
    const auto* const opcode = std::find_if(std::begin(kOpcodes), std::end(kOpcodes),
                                            [&](const Opcode& one) { return one.code == code[0]; });
    if (opcode == std::end(kOpcodes) || (opcode->parts & part_) == 0) return Refused();
    PM_ASSIGN_OR_RETURN(const absl::string_view argument, TakeArgument(opcode->argument));
    switch (opcode->code) {
      case '\x80':
      case '\x95':
        return absl::OkStatus();
      case 'X':
      case '\x8c':
        return AddText(argument);
      case 'h':
        return AddRemembered(Load<uint8_t>(argument, 0));
      case 'j':
        return AddRemembered(Load<uint32_t>(argument, 0));
      case 'q':
        return Remember(Load<uint8_t>(argument, 0));
      case 'r':
        return Remember(Load<uint32_t>(argument, 0));
      case '\x94':
        return Remember(memo_.size());
      case 'N':
        return AddNumber(std::nan(""));
      case 'K':
        return AddNumber(Load<uint8_t>(argument, 0));
      case 'M':
        return AddNumber(Load<uint16_t>(argument, 0));
      case 'J':
        return AddNumber(Load<int32_t>(argument, 0));
      case 'G':
        return AddNumber(std::bit_cast<double>(__builtin_bswap64(Load<uint64_t>(argument, 0))));
      case '\x8a':
        return AddNumber(std::numeric_limits<double>::infinity());
      case 'c':
        return CheckGlobal(argument);
      case '\x93':
        return CheckGlobal(absl::StrCat(former_text_.value_or(""), "\n", text_.value_or(""), "\n"));
      case ']':
        part_ = kList;
        break;
      case 't':
        if (part_ == kList) part_ = kAfterList;
        break;
      case '.':
        part_ = kEnd;
        break;
      default:
        break;
    }
    text_.reset();
    return absl::OkStatus();
  }

  absl::Status AddText(absl::string_view text) {
    former_text_ = std::exchange(text_, text);
    if (part_ != kList) return absl::OkStatus();
    if (text.size() <= kMaxTextBytes) return AddRow(text, std::nan(""));
    return BadFile(name_, "row ", row_, ": expected a label of at most ", kMaxTextBytes,
                   " bytes, got ", text.size());
  }

  absl::Status Remember(size_t place) {
    if (place != memo_.size()) return Refused();
    memo_.push_back(text_);
    return absl::OkStatus();
  }

  absl::Status AddRemembered(size_t place) {
    if (place >= memo_.size() || !memo_[place].has_value()) return Refused();
    return AddText(*memo_[place]);
  }

  // NaN: a missing value.
  absl::Status AddNumber(double number) {
    text_.reset();
    return part_ == kList ? AddRow(std::nullopt, number) : absl::OkStatus();
  }

  absl::Status AddRow(std::optional<absl::string_view> text, double number) {
    const bool is_text = text.has_value();
    if (is_text || !std::isnan(number)) {
      if (has_texts_.value_or(is_text) != is_text) {
        return BadFile(name_, "row ", row_, ": expected ", is_text ? "a number" : "text",
                       " as in the rows before, got ", is_text ? "text" : "a number");
      }
      has_texts_ = is_text;
    }
    PM_ASSIGN_OR_RETURN(labels_.numbers.emplace_back(), LabelOf(name_, row_, number));
    labels_.names.emplace_back(text.value_or(""));
    ++row_;
    return absl::OkStatus();
  }

  absl::Status CheckGlobal(absl::string_view lines) {
    text_.reset();
    const auto* const end = std::end(kGlobals);
    return std::find(std::begin(kGlobals), end, lines) == end ? Refused() : absl::OkStatus();
  }

  absl::Status Refused() const {
    constexpr char kRemedy[] =
        "which could run code and is not read: save it with np.save(path, labels.astype(str))";
    if (part_ != kList) {
      return BadFile(name_, "expected an array of text, numbers and None as numpy writes it, got ",
                     "another Python object, ", kRemedy);
    }
    return BadFile(name_, "row ", row_, ": expected text, a number or None, got another Python ",
                   "object, ", kRemedy);
  }

  const absl::string_view name_;
  absl::string_view left_;
  Part part_ = kBeforeList;
  std::optional<absl::string_view> text_, former_text_;      // the last values, if they are texts
  std::vector<std::optional<absl::string_view>> memo_ = {};  // values by their place, as text_
  int64_t row_ = 0;
  std::optional<bool> has_texts_;  // of the rows so far; unset: all are missing
  LabelColumn labels_;
};

}  // namespace

absl::StatusOr<LabelColumn> ParseObjectLabels(absl::string_view name, absl::string_view pickle,
                                              int64_t rows) {
  return ObjectReader(name, pickle).Read(rows);
}

}  // namespace privatemail
