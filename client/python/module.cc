#include <pybind11/pybind11.h>

#include "client/python/extractor.h"
#include "client/python/session.h"
#include "client/python/status_error.h"

PYBIND11_MODULE(_native, module) {
  module.doc() = "The C++ core of privatemail. Its names may change; use the package's.";
  module.attr("__version__") = PRIVATEMAIL_VERSION;
  privatemail::client::python::RegisterStatusError(module);
  privatemail::client::python::AddExtractor(module);
  privatemail::client::python::AddSession(module);
}
