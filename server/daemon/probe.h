// Why an address cannot be listened on, which gRPC keeps to itself.
#ifndef PRIVATEMAIL_SERVER_DAEMON_PROBE_H_
#define PRIVATEMAIL_SERVER_DAEMON_PROBE_H_

#include "absl/status/status.h"
#include "server/daemon/options.h"

namespace privatemail {

// Binds the address for a moment. FAILED_PRECONDITION with the system's reason when that fails:
// "cannot listen on 127.0.0.1:50051: Address already in use". Blocks while a host name is resolved.
absl::Status CheckCanListen(const ListenAddress& address);

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_DAEMON_PROBE_H_
