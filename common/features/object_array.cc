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
constexpr size_t kMaxTextBytes = 256;
constexpr int64_t kMaxDescription = 64;  // values that describe the array

// The globals of numpy's arrays: module and name, a line each.
constexpr absl::string_view kGlobals[] = {
    "numpy.core.multiarray\n_reconstruct\n", "numpy._core.multiarray\n_reconstruct\n",
    "numpy\nndarray\n", "numpy\ndtype\n", "_codecs\nencode\n"};

// The missing value of pandas, which an array of its nullable integers holds.
constexpr absl::string_view kPandasMissing = "pandas._libs.missing\nNA\n";

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
    {'c', kLines, kBeforeList | kList},             // GLOBAL
    {'\x93', 0, kBeforeList | kList},               // STACK_GLOBAL
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

// A value on the stack.
struct Value {
  bool is_label = false;  // text or a number
  std::optional<absl::string_view> text = std::nullopt;
  double number = std::numeric_limits<double>::quiet_NaN();  // NaN without text: missing
};

class ObjectReader {
 public:
  ObjectReader(absl::string_view name, absl::string_view pickle, int64_t rows)
      : name_(name), rows_(rows), left_(pickle) {}

  absl::StatusOr<LabelColumn> Read() {
    while (part_ != kEnd) PM_RETURN_IF_ERROR(ReadOpcode());
    if (rows_ < 1 || row_ != rows_ || !left_.empty()) {
      return BadFile(name_, "expected the ", rows_, " rows of the header, at least 1, got ", row_,
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
        return Push({.is_label = true, .text = argument});
      case 'h':
        return PushRemembered(Load<uint8_t>(argument, 0));
      case 'j':
        return PushRemembered(Load<uint32_t>(argument, 0));
      case 'q':
        return Remember(Load<uint8_t>(argument, 0));
      case 'r':
        return Remember(Load<uint32_t>(argument, 0));
      case '\x94':
        return Remember(memo_.size());
      case 'N':
        return Push({.is_label = true});
      case 'K':
        return PushNumber(Load<uint8_t>(argument, 0));
      case 'M':
        return PushNumber(Load<uint16_t>(argument, 0));
      case 'J':
        return PushNumber(Load<int32_t>(argument, 0));
      case 'G':
        return PushNumber(std::bit_cast<double>(__builtin_bswap64(Load<uint64_t>(argument, 0))));
      case '\x8a':
        return PushNumber(std::numeric_limits<double>::infinity());
      case 'c':
        return PushGlobal(argument);
      case '\x93': {
        if (stack_.size() < 2) return Refused();
        const Value module = stack_[stack_.size() - 2], name = stack_.back();
        stack_.resize(stack_.size() - 2);
        return PushGlobal(
            absl::StrCat(module.text.value_or(""), "\n", name.text.value_or(""), "\n"));
      }
      case 'a':
      case 'e':
        for (const Value& value : std::exchange(stack_, {})) PM_RETURN_IF_ERROR(AddRow(value));
        break;
      case ']':
        part_ = kList;
        stack_.clear();
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
    last_ = Value();
    return absl::OkStatus();
  }

  // Ends soon after the header's rows, since an opcode of a byte may push a value: after those come
  // at most module and name of a global.
  absl::Status Push(const Value& value) {
    if (part_ == kList && row_ + std::ssize(stack_) >= rows_ + 2) return TooManyRows();
    last_ = value;
    stack_.push_back(value);
    return absl::OkStatus();
  }
  absl::Status PushNumber(double number) { return Push({.is_label = true, .number = number}); }

  absl::Status PushGlobal(absl::string_view lines) {
    if (lines == kPandasMissing) return Push({.is_label = true});
    const auto* const end = std::end(kGlobals);
    const bool is_known = std::find(std::begin(kGlobals), end, lines) != end;
    return is_known && part_ == kBeforeList ? Push(Value()) : Refused();
  }

  absl::Status Remember(size_t place) {
    // numpy remembers each text once, and a few values that describe the array.
    if (place != memo_.size() || std::ssize(memo_) > rows_ + kMaxDescription) return Refused();
    memo_.push_back(last_);
    return absl::OkStatus();
  }

  absl::Status PushRemembered(size_t place) {
    return place < memo_.size() && memo_[place].is_label ? Push(memo_[place]) : Refused();
  }

  absl::Status AddRow(const Value& value) {
    const auto& [is_label, text, number] = value;
    const bool is_text = text.has_value();
    if (row_ == rows_) return TooManyRows();
    if (is_text && text->size() > kMaxTextBytes) {
      return BadFile(name_, "row ", row_, ": expected a label of at most ", kMaxTextBytes,
                     " bytes, got ", text->size());
    }
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

  absl::Status TooManyRows() const {
    return BadFile(name_, "expected the ", rows_, " rows of the header, at least 1, got more");
  }

  absl::Status Refused() const {
    constexpr char kRemedy[] =
        "which could run code and is not read: save text with np.save(path, labels.astype(str)), "
        "integers with labels.astype(int)";
    if (part_ != kList) {
      return BadFile(name_, "expected an array of text, numbers and None as numpy writes it, got ",
                     "another Python object, ", kRemedy);
    }
    return BadFile(name_, "row ", row_ + std::ssize(stack_),
                   ": expected text, a number or None, got another Python object, ", kRemedy);
  }

  const absl::string_view name_;
  const int64_t rows_;  // of the header
  absl::string_view left_;
  Part part_ = kBeforeList;
  std::vector<Value> stack_ = {};  // of the list those that are no rows yet
  Value last_;                     // what the last opcode left there
  std::vector<Value> memo_ = {};   // values by their place
  int64_t row_ = 0;
  std::optional<bool> has_texts_;  // of the rows so far; unset: all are missing
  LabelColumn labels_;
};

}  // namespace

absl::StatusOr<LabelColumn> ParseObjectLabels(absl::string_view name, absl::string_view pickle,
                                              int64_t rows) {
  return ObjectReader(name, pickle, rows).Read();
}

}  // namespace privatemail
