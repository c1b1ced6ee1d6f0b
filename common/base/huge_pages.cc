#include "common/base/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace privatemail {

void UseHugePages(const void* data, size_t bytes) {
  constexpr uintptr_t kHugePage = 2 << 20;
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, which headers of before Linux 6.1 lack
  const auto first = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = (first + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (first + bytes) / kHugePage * kHugePage;
  if (begin >= end) return;
  auto* const pages = reinterpret_cast<void*>(begin);
  // Failures are ignored: small pages hold the same.
  ::madvise(pages, end - begin, MADV_HUGEPAGE);
  ::madvise(pages, end - begin, kCollapse);
}

}  // namespace privatemail
