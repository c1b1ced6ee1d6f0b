// A connection and a state folder, for Python.
#ifndef PRIVATEMAIL_CLIENT_PYTHON_SESSION_H_
#define PRIVATEMAIL_CLIENT_PYTHON_SESSION_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "client/python/calls.h"
#include "common/embedding/smlq.h"
#include "privatemail/admin_client.h"
#include "privatemail/guarantee.h"
#include "privatemail/search.h"
#include "privatemail/transport.h"

namespace privatemail::client::python {

// Held by the client. Thread-safe; of the process that made it: a fork would share its connection
// and the locks of gRPC.
class Session {
 public:
  explicit Session(const SearchOptions& options) : client_(Check(SearchClient::Connect(options))) {}
  // The client's end may wait for its departure.
  ~Session() {
    const pybind11::gil_scoped_release release;
    client_.reset();
  }

  // For one call: after the wait of SearchClient::Admin.
  AdminClient admin() const { return Check(client_->Admin()); }
  SearchClient& client() const { return *client_; }

 private:
  std::unique_ptr<SearchClient> client_;
};

// A collection's settings from Python's, or the defaults for these labels of anchors.
EmbeddingSettings SettingsOf(const pybind11::dict& settings, const std::vector<int32_t>& labels);

pybind11::dict GuaranteeToDict(const Guarantee& guarantee);

void AddCollections(pybind11::class_<Session, std::shared_ptr<Session>>& session);
void AddQueries(pybind11::class_<Session, std::shared_ptr<Session>>& session);
void AddNoise(pybind11::module_& module);

}  // namespace privatemail::client::python

#endif  // PRIVATEMAIL_CLIENT_PYTHON_SESSION_H_
