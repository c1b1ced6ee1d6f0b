#include "client/transport/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/transport/credentials.h"
#include "client/transport/proxy.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/rpc/host_port.h"
#include "common/rpc/status.h"

namespace privatemail::client {
namespace {

// Backoff is uniform in [0, bound]: 0.7 s in all on average, within the call's deadline. CANCELLED
// is retryable since the client cancels none of these calls: gRPC 1.51 returns it for calls that
// reach a daemon at the moment it stops.
constexpr char kServiceConfig[] = R"json({
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [{
    "name": [
      {"service": "privatemail.v1.RetrievalService"},
      {"service": "privatemail.v1.EncryptedService"},
      {"service": "privatemail.v1.CollectionsService", "method": "ListCollections"},
      {"service": "privatemail.v1.CollectionsService", "method": "GetItems"},
      {"service": "privatemail.v1.CollectionsService", "method": "ScrollItems"},
      {"service": "privatemail.v1.CollectionsService", "method": "CountItems"},
      {"service": "privatemail.v1.KeysService", "method": "ListKeys"},
      {"service": "grpc.health.v1.Health", "method": "Check"}
    ],
    "retryPolicy": {
      "maxAttempts": 4,
      "initialBackoff": "0.2s",
      "maxBackoff": "1s",
      "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"]
    }
  }]
})json";

// Backoff of reconnecting to an unreachable address.
constexpr int kMinReconnectMilliseconds = 100;
constexpr int kMaxReconnectMilliseconds = 1000;

// Keepalive pings during a call, and the time to answer one.
constexpr int kKeepaliveMilliseconds = 30'000;
constexpr int kKeepaliveTimeoutMilliseconds = 20'000;

// Whether gRPC resolves the name by a scheme; gRPC validates the rest.
bool IsTarget(const std::string& server) {
  return absl::StartsWith(server, "dns:") || absl::StartsWith(server, "ipv4:") ||
         absl::StartsWith(server, "ipv6:");
}

// gRPC's threads do not exist in a fork: its first call would wait for them without an end, and
// disturb the connections of its parent. gRPC also leaves some behind when the last channel closes.
absl::Status CheckNotForked() {
  static std::atomic<pid_t> first_process = 0;
  pid_t first = 0;
  if (first_process.compare_exchange_strong(first, ::getpid()) || first == ::getpid()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "this process was forked from one that has connected before, where gRPC cannot run: fork "
      "before the first connection, or start a new process (in Python by "
      "multiprocessing.get_context(\"spawn\"))");
}

}  // namespace

int MaxReceivedBytes(const ConnectionOptions& options) {
  return static_cast<int>(std::min<int64_t>(kMaxMessageBytes, options.max_memory));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ConnectionOptions& options,
                                                           const std::string& access_key) {
  PM_RETURN_IF_ERROR(CheckNotForked());
  const absl::StatusOr<HostPort> address = ParseHostPort("server", options.server);
  if (!IsTarget(options.server) && (!address.ok() || address->port == 0)) {
    return FieldError("server", "HOST:PORT with a port from 1 to 65535",
                      absl::StrCat("'", options.server, "'"));
  }
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials,
                      MakeChannelCredentials(options, access_key));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(MaxReceivedBytes(options));
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetServiceConfigJSON(kServiceConfig);
  // Buffers requests of any allowed size for retries.
  arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE, kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kMinReconnectMilliseconds);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMilliseconds);
  // Detects a frozen or vanished server also during uploads and builds, which have no deadline.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  if (IsOnThisMachine(options.server)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(options.server, credentials, arguments);
}

}  // namespace privatemail::client
