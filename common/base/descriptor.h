// An owned file descriptor.
#ifndef PRIVATEMAIL_COMMON_BASE_DESCRIPTOR_H_
#define PRIVATEMAIL_COMMON_BASE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace privatemail {

// Closes the descriptor on destruction. Negative: there is none. Move-only.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }

 private:
  int value_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_DESCRIPTOR_H_
