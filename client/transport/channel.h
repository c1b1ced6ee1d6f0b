// The client's gRPC channel: load balancing, keepalive and retry policy.
#ifndef PRIVATEMAIL_CLIENT_TRANSPORT_CHANNEL_H_
#define PRIVATEMAIL_CLIENT_TRANSPORT_CHANNEL_H_

#include <grpcpp/channel.h>

#include <memory>

#include "absl/status/statusor.h"
#include "privatemail/transport.h"

namespace privatemail::client {

// The largest message that the channel receives; gRPC refuses others before their bytes arrive.
int MaxReceivedBytes(const ConnectionOptions& options);

// - round_robin over all addresses of the server's name; an unreachable address is skipped and
//   retried within a second.
// - Read-only calls and searches: up to 4 attempts with the same bytes on UNAVAILABLE, and on
//   CANCELLED, the status of a stopping daemon.
// - Servers on this machine are reached directly, others through the proxy of grpc_proxy,
//   https_proxy or http_proxy unless no_proxy names them.
// FAILED_PRECONDITION: this process was forked from one that made a channel.
// INVALID_ARGUMENT: the server is neither HOST:PORT nor a gRPC target; errors of
// MakeChannelCredentials.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ConnectionOptions& options,
                                                           const std::string& access_key);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_TRANSPORT_CHANNEL_H_
