#include "client/python/session.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include "client/python/calls.h"
#include "client/python/extractor.h"
#include "client/search/charge_text.h"

namespace privatemail::client::python {

namespace py = pybind11;

namespace {

void AddSession(py::module_& module) {
  py::class_<Session, std::shared_ptr<Session>> session(module, "Session");
  session.def(
      py::init([](const std::string& server, const std::string& ca_file, const std::string& trust,
                  const std::string& certificate, const std::string& certificate_key, bool insecure,
                  const std::string& key_file, double deadline_seconds, int64_t max_memory,
                  const std::string& state_folder) {
        SearchOptions search;
        ConnectionOptions& options = search.connection;
        options.server = server;
        options.ca_file = ca_file;
        options.trust_fingerprint = trust;
        options.certificate_file = certificate;
        options.certificate_key_file = certificate_key;
        options.insecure = insecure;
        options.key_file = key_file;
        options.deadline = absl::Seconds(deadline_seconds);
        options.max_memory = max_memory;
        options.cancelled = [] { return Interrupted()(); };  // of the thread that calls
        search.limits = {.max_memory = max_memory, .max_computing = options.deadline};
        if (!state_folder.empty()) search.state_folder = state_folder;
        return std::make_shared<Session>(search);
      }),
      py::kw_only(), py::arg("server"), py::arg("ca_file"), py::arg("trust"),
      py::arg("certificate"), py::arg("certificate_key"), py::arg("insecure"), py::arg("key_file"),
      py::arg("deadline"), py::arg("max_memory"), py::arg("state_folder"));
  session.def_property_readonly("state_folder",
                                [](const Session& self) { return self.client().state_folder(); });
  AddCollections(session);
  AddQueries(session);
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "The C++ core of privatemail. Its names may change; use the package's.";
  module.attr("__version__") = PRIVATEMAIL_VERSION;
  module.attr("reads_numpy_2") = PYBIND11_VERSION_HEX >= 0x020C0000;
  RegisterStatusError(module);
  AddExtractor(module);
  module.def("describe_grant", &GrantText);
  AddSession(module);
  AddNoise(module);
}

}  // namespace privatemail::client::python
