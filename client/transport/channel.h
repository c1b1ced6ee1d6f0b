// The client's channel: to one daemon, or to several that share a store.
#ifndef PRIVATEMAIL_CLIENT_TRANSPORT_CHANNEL_H_
#define PRIVATEMAIL_CLIENT_TRANSPORT_CHANNEL_H_

#include <grpcpp/channel.h>

#include <memory>

#include "absl/status/statusor.h"
#include "privatemail/transport.h"

namespace privatemail::client {

// A channel to every address that the server's name has, call by call to the next (round_robin).
// One that is gone is left out, and tried again within a second. Calls that only read, and
// Retrieve, which may be answered any number of times, are sent again when a daemon ends them with
// UNAVAILABLE or, as it stops, with CANCELLED: the same bytes, up to four times in all.
// INVALID_ARGUMENT: the server is neither HOST:PORT nor a gRPC target; those of
// MakeChannelCredentials.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ConnectionOptions& options);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_TRANSPORT_CHANNEL_H_
