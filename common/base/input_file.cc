#include "common/base/input_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/descriptor.h"

namespace privatemail {
namespace {

// Returns false with errno set.
bool ReadToEnd(int file, std::string* content) {
  constexpr size_t kPiece = size_t{1} << 20;
  for (;;) {
    const size_t before = content->size();
    content->resize(before + kPiece);
    const ssize_t size = ::read(file, content->data() + before, kPiece);
    content->resize(before + static_cast<size_t>(size > 0 ? size : 0));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return size == 0;
  }
}

}  // namespace

absl::StatusOr<InputFile> InputFile::Open(const std::string& path) {
  const bool is_standard_input = path == kStandardInput;
  const std::string name = is_standard_input ? "standard input" : path;
  const auto wrong = [&](absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", problem));
  };
  const auto denied = [&] {
    return absl::PermissionDeniedError(absl::StrCat(name, ": ", std::strerror(errno)));
  };
  const Descriptor file(is_standard_input ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                          : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) return errno == ENOENT ? wrong("no such file") : denied();
  struct stat properties = {};
  if (::fstat(file.get(), &properties) != 0) return denied();
  if (S_ISDIR(properties.st_mode)) return wrong("expected a file, but it is a folder");
  InputFile input;
  const auto size = static_cast<size_t>(properties.st_size);
  if (S_ISREG(properties.st_mode) && size > 0 && !is_standard_input) {
    void* const map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (map == MAP_FAILED) return denied();
    input.bytes_ = {static_cast<const char*>(map), size};
    input.owner_ = std::shared_ptr<const void>(map, [size](void* at) { ::munmap(at, size); });
    return input;
  }
  if (!is_standard_input && !S_ISFIFO(properties.st_mode) && !S_ISREG(properties.st_mode)) {
    return wrong("expected a regular file or a pipe");
  }
  auto content = std::make_shared<std::string>();
  if (!ReadToEnd(file.get(), content.get())) return denied();
  if (content->empty()) return wrong(is_standard_input ? "it is empty" : "the file is empty");
  input.bytes_ = *content;
  input.owner_ = std::move(content);
  return input;
}

absl::Status SkipByteOrderMark(absl::string_view name, absl::string_view* text) {
  if (absl::StartsWith(*text, "\xff\xfe") || absl::StartsWith(*text, "\xfe\xff")) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": expected UTF-8, but it is UTF-16"));
  }
  absl::ConsumePrefix(text, "\xef\xbb\xbf");
  return absl::OkStatus();
}

}  // namespace privatemail
