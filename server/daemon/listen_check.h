// A check of addresses before gRPC and civetweb listen on them.
#ifndef PRIVATEMAIL_SERVER_DAEMON_LISTEN_CHECK_H_
#define PRIVATEMAIL_SERVER_DAEMON_LISTEN_CHECK_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/config/options.h"

namespace privatemail::server {

// Listens for a moment on every IP address of the host names, because the libraries give no reason
// when they cannot. Blocks while host names are resolved. FAILED_PRECONDITION: "cannot listen on
// 127.0.0.1:50051: Address already in use", also if two of the addresses are equal.
absl::Status CheckCanListen(absl::Span<const ListenAddress> addresses);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_LISTEN_CHECK_H_
