// Statuses as Python exceptions.
#ifndef PRIVATEMAIL_CLIENT_PYTHON_STATUS_ERROR_H_
#define PRIVATEMAIL_CLIENT_PYTHON_STATUS_ERROR_H_

#include <pybind11/pybind11.h>

#include <exception>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace privatemail::client::python {

// Becomes the exception of privatemail.errors for its code.
class StatusError : public std::exception {
 public:
  explicit StatusError(absl::Status status) : status_(std::move(status)) {}
  const char* what() const noexcept override { return "privatemail status"; }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

inline void Check(const absl::Status& status) {
  if (!status.ok()) throw StatusError(status);
}

template <typename Value>
Value Check(absl::StatusOr<Value> value) {
  Check(value.status());
  return *std::move(value);
}

// Runs without the interpreter's lock. Calls nothing of Python.
template <typename Run>
auto Unlocked(Run run) {
  const pybind11::gil_scoped_release release;
  return run();
}

void RegisterStatusError(pybind11::module_& module);

}  // namespace privatemail::client::python

#endif  // PRIVATEMAIL_CLIENT_PYTHON_STATUS_ERROR_H_
