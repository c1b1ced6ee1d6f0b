// The daemons that hold the parts of all collections, as a front calls them.
#ifndef PRIVATEMAIL_SERVER_SERVICES_SHARDS_H_
#define PRIVATEMAIL_SERVER_SERVICES_SHARDS_H_

#include <google/protobuf/message.h>
#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/background_queue.h"
#include "common/base/status_macros.h"
#include "server/services/call.h"

namespace privatemail::server {

// A call to the shards, which must not outlive what it was made of.
struct ShardCall {
  // For the caller of an RPC of the front.
  ShardCall(Call& call);  // NOLINT(google-explicit-constructor): it is that call
  // For the front itself. path: of the RPC.
  ShardCall(std::string path, std::function<bool()> is_cancelled);

  const std::string method;
  const absl::Time deadline = absl::InfiniteFuture();
  const std::function<bool()> cancelled;
  const std::function<absl::Status(int64_t bytes)> reserve;  // memory of what arrives
  const std::function<std::unique_ptr<grpc::ClientContext>()> make_context;
};

// Calls all shards at once, each on one of its replicas. A call that fails is made to the next
// replica; one that takes much longer than usual is made to the next one as well, and the first
// answer counts. A replica that failed or was slow comes last from then on. Buffers whole answers,
// so that none is partial and a failed replica is not seen. Thread-safe.
class Shards {
 public:
  // addresses: of each shard, its replicas as HOST:PORT.
  Shards(const std::vector<std::vector<std::string>>& addresses,
         const std::shared_ptr<grpc::ChannelCredentials>& credentials);
  ~Shards();

  // Calls that begin later use connections with these credentials.
  void Connect(const std::shared_ptr<grpc::ChannelCredentials>& credentials);

  // Whether a replica of each shard says within seconds that this service of grpc.health.v1 is
  // SERVING, and no daemon says that it is another shard.
  bool Serve(const std::string& service) const { return AreReady(Check(service, true)); }
  // The same of the server as a whole, as the daemons said seconds ago; at first false. Never
  // waits, since strangers may call it.
  bool Serve() const { return serve_; }

  int64_t size() const { return std::ssize(shards_); }

  using Messages = std::vector<grpc::ByteBuffer>;

  // The messages with which the first `count` shards answer the call's RPC, as they sent them.
  // Their memory counts as that of the search. The first failure ends the calls to all others.
  // version: goes as kVersionMetadata unless it is empty.
  // Statuses name the shard:
  //   UNAVAILABLE          no replica answers, or the shard does not know the collection yet
  //   DEADLINE_EXCEEDED    no replica answers in time
  //   FAILED_PRECONDITION  also: the daemon is another shard
  //   others               as the shard sent them
  absl::StatusOr<std::vector<Messages>> AskBytes(const ShardCall& call,
                                                 const google::protobuf::Message& request,
                                                 int64_t count, const std::string& version = "");
  // The same, parsed.
  template <typename Answer>
  absl::StatusOr<std::vector<std::vector<Answer>>> Ask(const ShardCall& call,
                                                       const google::protobuf::Message& request,
                                                       int64_t count,
                                                       const std::string& version = "") {
    PM_ASSIGN_OR_RETURN(const auto bytes, AskBytes(call, request, count, version));
    std::vector<std::vector<Answer>> answers(bytes.size());
    for (size_t shard = 0; shard < bytes.size(); ++shard) {
      for (const grpc::ByteBuffer& message : bytes[shard]) {
        PM_RETURN_IF_ERROR(Parse(message, &answers[shard].emplace_back()));
      }
    }
    return answers;
  }
  // The same of RPCs that answer with one message.
  template <typename Answer>
  absl::StatusOr<std::vector<Answer>> AskOne(const ShardCall& call,
                                             const google::protobuf::Message& request) {
    PM_ASSIGN_OR_RETURN(auto streams, Ask<Answer>(call, request, size()));
    std::vector<Answer> answers;
    for (auto& stream : streams) {
      if (stream.size() != 1) return absl::InternalError("a shard must answer with one message");
      answers.push_back(std::move(stream.front()));
    }
    return answers;
  }

 private:
  class Shard;
  struct Attempt;
  struct Turn;

  static absl::Status Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message);

  using Replicas = std::vector<std::vector<absl::Status>>;  // by shard and replica; OK: it serves
  // until_ready: replicas that are slower than the first ones which suffice are not waited for.
  Replicas Check(const std::string& service, bool until_ready) const;
  static bool AreReady(const Replicas& replicas);
  // Asks whether the shards serve, now and from then on every second, and logs what has changed.
  void Probe();

  std::vector<std::unique_ptr<Shard>> shards_;
  Replicas probed_;                                             // by the last probe, for the next
  std::atomic<bool> serve_ = false;                             // whether they were ready
  BackgroundQueue probes_{BackgroundQueue::Priority::kNormal};  // last: it uses the others
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_SHARDS_H_
