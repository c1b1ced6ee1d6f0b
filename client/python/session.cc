#include "client/python/session.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include "client/flags/removed_names.h"
#include "client/python/calls.h"
#include "client/python/extractor.h"
#include "privatemail/state_folder.h"

namespace privatemail::client::python {

namespace py = pybind11;

Session::Session(const ConnectionOptions& options, std::string state_folder)
    : process_(::getpid()),
      settings_{
          .state_folder = state_folder.empty() ? DefaultStateFolder() : std::move(state_folder),
          .limits = {.max_memory = options.max_memory, .max_computing = options.deadline}},
      transport_(std::make_unique<Transport>(Check(Transport::Create(options)))) {}

Session::~Session() {
  if (::getpid() == process_) return;
  (void)transport_.release();
  (void)searches_.release();
}

void Session::CheckProcess() const {
  if (::getpid() == process_) return;
  throw StatusError(absl::FailedPreconditionError(
      "this client belongs to the process that made it, and this one was forked from it: connect "
      "again here"));
}

const Transport& Session::transport() const {
  CheckProcess();
  SearchClient* searches = nullptr;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    searches = searches_.get();
  }
  // A program may choose its next call by what it found, but the time of the call must not show how
  // long ranking took.
  if (searches != nullptr) Check(searches->WaitForDeparture());
  return *transport_;
}

std::shared_ptr<const JointQueries> Session::Joint(const std::string& collection,
                                                   const std::optional<Anchors>& dummies) {
  const Transport& network = transport();
  const auto create = [&] {
    return std::make_shared<const JointQueries>(
        Check(JointQueries::Create(network, settings_, collection, dummies)));
  };
  if (dummies.has_value()) return create();
  const v1::GetCollectionResponse current = Check(network.GetCollection(collection));
  const std::lock_guard<std::mutex> guard(mutex_);
  std::shared_ptr<const JointQueries>& queries = joint_[collection];
  if (queries == nullptr ||
      queries->collection().SerializeAsString() != current.SerializeAsString()) {
    queries = create();
  }
  return queries;
}

SearchClient& Session::searches() {
  CheckProcess();
  const std::lock_guard<std::mutex> guard(mutex_);
  if (searches_ == nullptr) searches_ = Check(SearchClient::Create(*transport_, settings_));
  return *searches_;
}

namespace {

void AddSession(py::module_& module) {
  py::class_<Session, std::shared_ptr<Session>> session(module, "Session");
  session.def(
      py::init([](const std::string& server, const std::string& ca_file, const std::string& trust,
                  const std::string& certificate, const std::string& certificate_key, bool insecure,
                  const std::string& key_file, double deadline_seconds, int64_t max_memory,
                  const std::string& state_folder) {
        ConnectionOptions options;
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
        return std::make_shared<Session>(options, state_folder);
      }),
      py::kw_only(), py::arg("server"), py::arg("ca_file"), py::arg("trust"),
      py::arg("certificate"), py::arg("certificate_key"), py::arg("insecure"), py::arg("key_file"),
      py::arg("deadline"), py::arg("max_memory"), py::arg("state_folder"));
  session.def_property_readonly("state_folder",
                                [](const Session& self) { return self.settings().state_folder; });
  AddCollections(session);
  AddQueries(session);
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "The C++ core of privatemail. Its names may change; use the package's.";
  module.attr("__version__") = PRIVATEMAIL_VERSION;
  RegisterStatusError(module);
  AddExtractor(module);
  AddSession(module);
  AddNoise(module);
  module.def("removed_note", [](const std::string& name) { return cli::RemovedNote(name); });
}

}  // namespace privatemail::client::python
