// A connection and a state folder, for Python.
#ifndef PRIVATEMAIL_CLIENT_PYTHON_SESSION_H_
#define PRIVATEMAIL_CLIENT_PYTHON_SESSION_H_

#include <pybind11/pybind11.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/queries/cell_queries.h"
#include "client/queries/joint_queries.h"
#include "client/search/search_client.h"
#include "common/embedding/smlq.h"
#include "privatemail/guarantee.h"
#include "privatemail/transport.h"

namespace privatemail::client::python {

// Held by the client. Thread-safe; of the process that made it: a fork would share its connection
// and the locks of gRPC.
class Session {
 public:
  Session(const ConnectionOptions& options, std::string state_folder);
  // In a fork the connection is leaked: gRPC would wait for threads that are not there.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // For one call. Waits for the departure after an encrypted search (SearchClient).
  // FAILED_PRECONDITION: another process made it.
  const Transport& transport() const;
  const QuerySettings& settings() const { return settings_; }

  // The queries of a collection, with parameters and anchors that are still the server's; cached
  // unless dummies are given.
  std::shared_ptr<const JointQueries> Joint(const std::string& collection,
                                            const std::optional<Anchors>& dummies);

  // Encrypted searches, whose secret key lives as long as the session.
  SearchClient& searches();

 private:
  void CheckProcess() const;

  const pid_t process_;
  QuerySettings settings_;
  std::unique_ptr<Transport> transport_;
  mutable std::mutex mutex_;  // guards the following
  std::map<std::string, std::shared_ptr<const JointQueries>> joint_;
  std::unique_ptr<SearchClient> searches_;
};

// A collection's settings from Python's, or the defaults for these labels of anchors.
EmbeddingSettings SettingsOf(const pybind11::dict& settings, const std::vector<int32_t>& labels);

pybind11::dict GuaranteeToDict(const Guarantee& guarantee);

void AddCollections(pybind11::class_<Session, std::shared_ptr<Session>>& session);
void AddQueries(pybind11::class_<Session, std::shared_ptr<Session>>& session);
void AddNoise(pybind11::module_& module);

}  // namespace privatemail::client::python

#endif  // PRIVATEMAIL_CLIENT_PYTHON_SESSION_H_
