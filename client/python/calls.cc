#include "client/python/calls.h"

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <string>

#include "common/base/field_error.h"

namespace privatemail::client::python {
namespace {

namespace py = pybind11;

constexpr std::chrono::milliseconds kPollEvery(50);

thread_local const std::atomic<bool>* interrupted_call = nullptr;  // of this thread

// The Python argument of a field of the core: its name, unless the package has another.
std::string ArgumentOf(const std::string& field) {
  static const std::map<std::string, std::string> kOthers = {
      {"certificate_file", "certificate"},
      {"certificate_key_file", "certificate_key"},
      {"id", "key_id"},
      {"target", "query"},
      {"targets", "queries"},
      {"trust_fingerprint", "trust"},
      {"with_payloads", "payloads"}};
  const auto other = kOthers.find(field);
  return other == kOthers.end() ? field : other->second;
}

// A message may hold bytes of a file or of a server that are not UTF-8.
py::object ToText(absl::string_view text) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "replace"));
}

}  // namespace

py::tuple ErrorTuple(const absl::Status& status) {
  const std::optional<FieldProblem> problem = FieldProblemOf(status);
  const std::string code = absl::StatusCodeToString(status.code());
  if (!problem.has_value()) return py::make_tuple(code, ToText(status.message()));
  const std::string argument = ArgumentOf(problem->field);
  return py::make_tuple(code, ToText(WithFieldName(status, argument).message()), argument,
                        ToText(problem->expected), ToText(problem->actual));
}

void RegisterStatusError(py::module_& /*module*/) {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const StatusError& error) {
      const py::object exception =
          py::module_::import("privatemail.errors").attr("of_status")(*ErrorTuple(error.status()));
      PyErr_SetObject(py::type::of(exception).ptr(), exception.ptr());
    }
  });
}

CancelledFunction Interrupted() {
  return [call = interrupted_call] { return call != nullptr && *call; };
}

void RunInterruptibly(const std::function<void()>& run) {
  std::atomic<bool> interrupted = false;
  std::optional<py::error_already_set> raised;
  std::future<void> done;
  {
    const py::gil_scoped_release release;
    done = std::async(std::launch::async, [&] {
      interrupted_call = &interrupted;
      run();
    });
    while (done.wait_for(kPollEvery) != std::future_status::ready) {
      const py::gil_scoped_acquire acquire;
      if (PyErr_CheckSignals() == 0) continue;
      raised.emplace();
      interrupted = true;
    }
  }
  if (raised.has_value()) throw py::error_already_set(*raised);
  done.get();
}

}  // namespace privatemail::client::python
