// Calls without the interpreter's lock that end when Ctrl-C is pressed.
#ifndef PRIVATEMAIL_CLIENT_PYTHON_INTERRUPTIBLE_H_
#define PRIVATEMAIL_CLIENT_PYTHON_INTERRUPTIBLE_H_

#include <functional>
#include <optional>
#include <utility>

#include "common/base/cancellation.h"

namespace privatemail::client::python {

// Of the call that this thread runs: whether Ctrl-C was pressed since. For other threads, too.
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

#endif  // PRIVATEMAIL_CLIENT_PYTHON_INTERRUPTIBLE_H_
