#include "client/python/status_error.h"

namespace privatemail::client::python {

namespace py = pybind11;

void RegisterStatusError(py::module_& /*module*/) {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const StatusError& error) {
      const absl::Status& status = error.status();
      const py::object exception = py::module_::import("privatemail.errors")
                                       .attr("of_status")(absl::StatusCodeToString(status.code()),
                                                          std::string(status.message()));
      PyErr_SetObject(py::type::of(exception).ptr(), exception.ptr());
    }
  });
}

}  // namespace privatemail::client::python
