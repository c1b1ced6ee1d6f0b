// Memory for a session's secret key and for what is computed with it. Not installed.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_SECRET_MEMORY_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_SECRET_MEMORY_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"

namespace privatemail::client {

// Private pages of one process. Held by the client; everything in them is private.
// - Locked in memory, left out of core dumps and zero in a forked process, as far as the system
//   supports it.
// - Zeroed before they are given back.
class SecretPages {
 public:
  // RESOURCE_EXHAUSTED: the system has no such memory.
  static absl::StatusOr<SecretPages> Allocate(size_t bytes);
  ~SecretPages();
  SecretPages(SecretPages&& other) noexcept
      : process_(other.process_),
        pages_(std::exchange(other.pages_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  SecretPages& operator=(SecretPages&&) = delete;

  void* bytes() const { return pages_ + kMarkBytes; }

  // FAILED_PRECONDITION: another process made them, from which this one was forked.
  absl::Status CheckProcess() const;

 private:
  static constexpr size_t kMarkBytes = 64;  // keeps what follows aligned

  SecretPages(pid_t process, uint8_t* pages, size_t size)
      : process_(process), pages_(pages), size_(size) {}

  pid_t process_;
  uint8_t* pages_;  // begin with a mark, which a fork zeroes
  size_t size_;
};

// An array of zeros in such pages.
template <typename Value>
class SecretArray {
  static_assert(std::is_trivially_copyable_v<Value>);

 public:
  static absl::StatusOr<SecretArray> Allocate(size_t size) {
    PM_ASSIGN_OR_RETURN(SecretPages pages, SecretPages::Allocate(size * sizeof(Value)));
    return SecretArray(std::move(pages), size);
  }

  Value* data() const { return static_cast<Value*>(pages_.bytes()); }
  size_t size() const { return size_; }
  Value& operator[](size_t i) const { return data()[i]; }
  Value* begin() const { return data(); }
  Value* end() const { return data() + size_; }
  absl::Span<uint8_t> bytes() const {
    return absl::MakeSpan(static_cast<uint8_t*>(pages_.bytes()), size_ * sizeof(Value));
  }

  absl::Status CheckProcess() const { return pages_.CheckProcess(); }

 private:
  SecretArray(SecretPages pages, size_t size) : pages_(std::move(pages)), size_(size) {}

  SecretPages pages_;
  size_t size_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_SECRET_MEMORY_H_
