// Calls of C++ from Python: the interpreter's lock, statuses as exceptions, Ctrl-C.
#ifndef PRIVATEMAIL_CLIENT_PYTHON_CALLS_H_
#define PRIVATEMAIL_CLIENT_PYTHON_CALLS_H_

#include <pybind11/pybind11.h>

#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/cancellation.h"

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

// The arguments of privatemail.errors.of_status: code and message, and of an error about a field
// the argument, what was expected and what came.
pybind11::tuple ErrorTuple(const absl::Status& status);

void RegisterStatusError(pybind11::module_& module);

// Whether Ctrl-C was pressed since the call that this thread runs began; other threads may ask it.
CancelledFunction Interrupted();

// Runs `run` on a thread of its own, while this one, which alone receives signals, asks Python for
// them several times a second. After one, `run` is still awaited, which sees it as Interrupted();
// then the exception of its handler, KeyboardInterrupt, is thrown in place of a result.
void RunInterruptibly(const std::function<void()>& run);

// The same for a `run` with a result.
template <typename Run>
auto Interruptible(Run run) {
  std::optional<decltype(run())> result;
  RunInterruptibly([&] { result.emplace(run()); });
  return *std::move(result);
}

}  // namespace privatemail::client::python

#endif  // PRIVATEMAIL_CLIENT_PYTHON_CALLS_H_
