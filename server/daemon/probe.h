// Why an address cannot be listened on, which gRPC keeps to itself.
#ifndef PRIVATEMAIL_SERVER_DAEMON_PROBE_H_
#define PRIVATEMAIL_SERVER_DAEMON_PROBE_H_

#include <string>

#include "server/daemon/options.h"

namespace privatemail {

// Tries to bind the address and returns the system's reason: "Address already in use", "Permission
// denied", "Name or service not known". Blocks while a host name is resolved.
std::string WhyNotListening(const ListenAddress& address);

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_DAEMON_PROBE_H_
