// A stand-in for Abseil's statusor.h; see status.h.
#ifndef PRIVATEMAIL_STANDALONE_ABSL_STATUS_STATUSOR_H_
#define PRIVATEMAIL_STANDALONE_ABSL_STATUS_STATUSOR_H_

#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

namespace absl {

template <typename T>
class StatusOr {
 public:
  StatusOr(Status status) : status_(std::move(status)) {}  // not OK
  template <typename U = T,
            typename = std::enable_if_t<!std::is_same_v<std::decay_t<U>, StatusOr> &&
                                        !std::is_same_v<std::decay_t<U>, Status> &&
                                        std::is_convertible_v<U&&, T>>>
  StatusOr(U&& value) : value_(std::forward<U>(value)) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace absl

#endif  // PRIVATEMAIL_STANDALONE_ABSL_STATUS_STATUSOR_H_
