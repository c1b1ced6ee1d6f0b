// A stand-in for the parts of Abseil's status.h that the scheme `encrypted` uses.
//
// The C library and its WebAssembly build link no Abseil: these headers precede the real ones in
// their include path. All symbols are local to them.
#ifndef PRIVATEMAIL_STANDALONE_ABSL_STATUS_STATUS_H_
#define PRIVATEMAIL_STANDALONE_ABSL_STATUS_STATUS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace absl {

enum class StatusCode {
  kOk = 0,
  kInvalidArgument = 3,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnavailable = 14,
  kDataLoss = 15,
};

class Status {
 public:
  Status() = default;
  Status(StatusCode code, string_view message) : code_(code), message_(message) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  string_view message() const { return message_; }
  void IgnoreError() const {}

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status OkStatus() { return {}; }
inline Status InvalidArgumentError(string_view m) { return {StatusCode::kInvalidArgument, m}; }
inline Status ResourceExhaustedError(string_view m) { return {StatusCode::kResourceExhausted, m}; }
inline Status FailedPreconditionError(string_view m) {
  return {StatusCode::kFailedPrecondition, m};
}
inline Status UnavailableError(string_view m) { return {StatusCode::kUnavailable, m}; }
inline Status DataLossError(string_view m) { return {StatusCode::kDataLoss, m}; }
inline bool IsDataLoss(const Status& status) { return status.code() == StatusCode::kDataLoss; }

}  // namespace absl

#endif  // PRIVATEMAIL_STANDALONE_ABSL_STATUS_STATUS_H_
