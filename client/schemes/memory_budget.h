// The limit on what answers of a server take together on this machine.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_MEMORY_BUDGET_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_MEMORY_BUDGET_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/field_error.h"

namespace privatemail::client {

// RESOURCE_EXHAUSTED: the bytes of `what` exceed max_memory.
inline absl::Status CheckMemory(double bytes, absl::string_view what, int64_t max_memory) {
  if (bytes <= static_cast<double>(max_memory)) return absl::OkStatus();
  return FieldError(
      absl::StatusCode::kResourceExhausted, "max_memory",
      absl::StrCat("at least ", static_cast<int64_t>(std::min(bytes, 1e18)), " bytes for ", what),
      absl::StrCat(max_memory));
}

// Counts bytes against ClientLimits::max_memory. Not thread-safe.
class MemoryBudget {
 public:
  // what: "the answers of this search"
  MemoryBudget(std::string what, int64_t max_memory)
      : what_(std::move(what)), max_memory_(max_memory) {}

  // RESOURCE_EXHAUSTED: all reserved bytes together exceed max_memory.
  absl::Status Reserve(int64_t bytes) {
    reserved_ += bytes;
    return CheckMemory(static_cast<double>(reserved_), what_, max_memory_);
  }

 private:
  std::string what_;
  int64_t max_memory_;
  int64_t reserved_ = 0;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_MEMORY_BUDGET_H_
