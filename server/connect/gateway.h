// The RPCs over HTTP: the Connect protocol before the daemon's own gRPC server.
#ifndef PRIVATEMAIL_SERVER_CONNECT_GATEWAY_H_
#define PRIVATEMAIL_SERVER_CONNECT_GATEWAY_H_

#include <grpcpp/channel.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "server/connect/http_server.h"

namespace privatemail::server {

// Turns each request into a call on a channel in this process, so that keys, scopes, quotas, places
// for messages, deadlines and the audit log are those of gRPC. The calls of the channel must have
// ended before the HTTP server ends. One thread converts long messages in JSON.
//   - A body is read once its call has room for it (CameBy::kGateway); the call ends slow ones.
//   - A bare message, and the first one of a stream, has at most max_message_bytes, in JSON a
//     sixteenth; the next ones of a stream 4 MiB.
//   - A connection that is cut cancels its call.
// allowed_origins: of web pages, such as "https://example.org".
HttpServer::Serve ServeRpcs(std::set<std::string> allowed_origins, int64_t max_message_bytes,
                            std::shared_ptr<grpc::Channel> channel);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONNECT_GATEWAY_H_
