// The bytes of an input file that is too large to copy, or of standard input.
#ifndef PRIVATEMAIL_COMMON_BASE_INPUT_FILE_H_
#define PRIVATEMAIL_COMMON_BASE_INPUT_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace privatemail {

// A path that stands for standard input.
inline constexpr char kStandardInput[] = "-";

// A regular file is mapped, and the system reads its pages when they are needed; a pipe, a terminal
// or standard input ("-") is read to its end. Copies share the bytes. Thread-safe.
class InputFile {
 public:
  // Errors as ReadFileBytes, but a pipe is none.
  static absl::StatusOr<InputFile> Open(const std::string& path);

  absl::string_view bytes() const { return bytes_; }

 private:
  absl::string_view bytes_;
  std::shared_ptr<const void> owner_;
};

// Skips the byte-order mark of UTF-8, which some editors and spreadsheets write. INVALID_ARGUMENT,
// which begins with `name`: the text is UTF-16.
absl::Status SkipByteOrderMark(absl::string_view name, absl::string_view* text);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_INPUT_FILE_H_
