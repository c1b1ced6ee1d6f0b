// The calls of each connection, for the limits of connections.
#ifndef PRIVATEMAIL_SERVER_SERVICES_CONNECTION_PROCESSOR_H_
#define PRIVATEMAIL_SERVER_SERVICES_CONNECTION_PROCESSOR_H_

#include <grpcpp/security/auth_metadata_processor.h>

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "server/access/connections.h"
#include "server/services/dispatcher.h"

namespace privatemail::server {

// Sees the headers of every call before its message is received: numbers the connection, and
// reports the call to Connections. Thread-safe.
class ConnectionProcessor final : public grpc::AuthMetadataProcessor {
 public:
  // slot: of the listener whose connections it sees. The others must outlive it.
  ConnectionProcessor(size_t slot, Connections* connections, Dispatcher* dispatcher)
      : slot_(slot), connections_(connections), dispatcher_(dispatcher) {}

  bool IsBlocking() const override { return false; }

  // Accepts every call, but those of proxies without a valid key: the dispatcher refuses others
  // with the reason, after their message, whose size limits of the connection bound.
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override;

 private:
  // The first call of a connection stores its number, which all calls of the connection share.
  uint64_t Identify(grpc::AuthContext* context);

  const size_t slot_;
  Connections* const connections_;
  Dispatcher* const dispatcher_;
  std::mutex mutex_;  // of the properties of the listener's connections
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_CONNECTION_PROCESSOR_H_
