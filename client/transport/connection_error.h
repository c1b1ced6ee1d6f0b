// The meaning of an error of a connection, and its remedy.
#ifndef PRIVATEMAIL_CLIENT_TRANSPORT_CONNECTION_ERROR_H_
#define PRIVATEMAIL_CLIENT_TRANSPORT_CONNECTION_ERROR_H_

#include "absl/status/status.h"
#include "privatemail/transport.h"

namespace privatemail::client {

// Adds the server's name, its proxy and a remedy to errors of the connection: UNAVAILABLE, and
// CANCELLED by the server as UNAVAILABLE; DEADLINE_EXCEEDED; gRPC's for a message above max_memory.
// Others stay as they are.
absl::Status ExplainConnectionError(const ConnectionOptions& options, const absl::Status& status);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_TRANSPORT_CONNECTION_ERROR_H_
