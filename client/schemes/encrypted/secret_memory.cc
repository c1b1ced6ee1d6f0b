#include "client/schemes/encrypted/secret_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace privatemail::client {
namespace {

constexpr uint8_t kMark = 1;

// Through a volatile pointer, so that no compiler leaves the call out.
void* (*const volatile kWrite)(void*, int, size_t) = std::memset;

}  // namespace

absl::StatusOr<SecretPages> SecretPages::Allocate(size_t bytes) {
  const size_t size = kMarkBytes + bytes;
  void* const pages =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory of ", size, " bytes for secrets: ", std::strerror(errno)));
  }
  // Systems may refuse each of these. Wiping and the check of the process do not depend on them.
#ifdef MADV_WIPEONFORK
  (void)::madvise(pages, size, MADV_DONTDUMP);
  (void)::madvise(pages, size, MADV_WIPEONFORK);
#endif
  (void)::mlock(pages, size);
  auto* const first = static_cast<uint8_t*>(pages);
  first[0] = kMark;
  return SecretPages(::getpid(), first, size);
}

SecretPages::~SecretPages() {
  if (pages_ == nullptr) return;
  kWrite(pages_, 0, size_);
  (void)::munmap(pages_, size_);
}

absl::Status SecretPages::CheckProcess() const {
  // A later process may have the number of the first one.
  if (::getpid() == process_ && pages_[0] == kMark) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the secret key of this session belongs to the process that made it, and this one was forked "
      "from it: create a new client here");
}

}  // namespace privatemail::client
