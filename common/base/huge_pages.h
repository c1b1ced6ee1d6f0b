// Huge pages for large arrays.
#ifndef PRIVATEMAIL_COMMON_BASE_HUGE_PAGES_H_
#define PRIVATEMAIL_COMMON_BASE_HUGE_PAGES_H_

#include <cstddef>

namespace privatemail {

// Moves these bytes into huge pages, as far as the kernel grants them (transparent huge pages;
// Linux 6.1 immediately, earlier ones asynchronously). Random reads of many MiB then miss the TLB
// less often.
void UseHugePages(const void* data, size_t bytes);

// The elements of a vector.
template <typename Vector>
void UseHugePages(const Vector& vector) {
  UseHugePages(vector.data(), vector.size() * sizeof(*vector.data()));
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_HUGE_PAGES_H_
