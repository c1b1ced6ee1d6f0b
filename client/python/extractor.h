// Features of images, for Python.
#ifndef PRIVATEMAIL_CLIENT_PYTHON_EXTRACTOR_H_
#define PRIVATEMAIL_CLIENT_PYTHON_EXTRACTOR_H_

#include <pybind11/pybind11.h>

namespace privatemail::client::python {

// Adds the class Extractor, which both modules have.
void AddExtractor(pybind11::module_& module);

}  // namespace privatemail::client::python

#endif  // PRIVATEMAIL_CLIENT_PYTHON_EXTRACTOR_H_
