// The HTTP proxy that gRPC takes from the environment.
#ifndef PRIVATEMAIL_CLIENT_TRANSPORT_PROXY_H_
#define PRIVATEMAIL_CLIENT_TRANSPORT_PROXY_H_

#include <string>

namespace privatemail::client {

// Whether all addresses of a server, as of ConnectionOptions, are on this machine. No proxy leads
// to them.
bool IsOnThisMachine(const std::string& server);

// " through the proxy HOST:PORT of http_proxy", for a message; empty: gRPC connects directly. Shows
// no password.
std::string DescribeProxy(const std::string& server);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_TRANSPORT_PROXY_H_
