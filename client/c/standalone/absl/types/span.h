// A stand-in for Abseil's span.h; see ../status/status.h.
#ifndef PRIVATEMAIL_STANDALONE_ABSL_TYPES_SPAN_H_
#define PRIVATEMAIL_STANDALONE_ABSL_TYPES_SPAN_H_

#include <cstddef>
#include <span>

namespace absl {

template <typename T>
using Span = std::span<T>;

template <typename T>
Span<T> MakeSpan(T* data, size_t size) {
  return {data, size};
}

}  // namespace absl

#endif  // PRIVATEMAIL_STANDALONE_ABSL_TYPES_SPAN_H_
