// The RPCs over HTTP: the Connect protocol before the daemon's own gRPC server.
#ifndef PRIVATEMAIL_SERVER_CONNECT_GATEWAY_H_
#define PRIVATEMAIL_SERVER_CONNECT_GATEWAY_H_

#include <grpcpp/channel.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/host_port.h"

namespace privatemail::server {

// Serves HTTP/1.1 without TLS and turns each request into a call on a channel in this process, so
// that keys, scopes, quotas, places for messages, deadlines and the audit log are those of gRPC.
// Thread-safe. One thread does all input and output, one converts long messages in
// JSON; a connection that waits costs memory but no thread.
//   - A header has at most 16 KiB and takes at most 5 s; a connection without a request is closed
//     after 60 s, and earlier if there are kMaxConnections.
//   - A body is read once its call has room for it (CameBy::kGateway); the call ends slow ones.
//   - A bare message, and the first one of a stream, has at most max_message_bytes, in JSON a
//     sixteenth; the next ones of a stream 4 MiB.
//   - A connection that its client closes, also half, cancels its call within a tenth of a second.
//   - Answers have at most Connections::kMaxUntakenBytes untaken; no piece waits longer than 60 s.
// Boost.Beast and not civetweb, which gives no socket: a call could not be cancelled when its
// caller is gone, and nothing would end a body that comes byte by byte and holds a thread.
class Gateway {
 public:
  static constexpr int kMaxConnections = 1024;

  struct Options {
    HostPort address;                       // an IP address
    std::set<std::string> allowed_origins;  // of web pages, such as "https://example.org"
    std::set<std::string> trusted_proxies;  // 4 or 16 bytes; only they may connect from elsewhere
    int64_t max_message_bytes = 0;
  };

  // FAILED_PRECONDITION: cannot listen there.
  static absl::StatusOr<std::unique_ptr<Gateway>> Start(Options options,
                                                        std::shared_ptr<grpc::Channel> channel);
  // Waits a moment for the last responses. The calls of the channel must have ended.
  ~Gateway();

  std::string address() const;  // with the actual port

  // Accepts no connection any more, closes those without a request, and waits until the others are
  // answered, at most until the deadline.
  void Drain(absl::Time deadline);

 private:
  class Listener;
  explicit Gateway(std::unique_ptr<Listener> listener);

  std::unique_ptr<Listener> listener_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONNECT_GATEWAY_H_
