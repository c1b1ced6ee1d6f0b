// The daemons that hold the parts of all collections, as a front calls them.
#ifndef PRIVATEMAIL_SERVER_SERVICES_SHARDS_H_
#define PRIVATEMAIL_SERVER_SERVICES_SHARDS_H_

#include <google/protobuf/message.h>
#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "server/services/call.h"

namespace privatemail::server {

// Metadata of a call to a shard: the version of the collection that all shards are to show.
inline constexpr char kVersionMetadata[] = "privatemail-version";

// Calls all shards at once, each on the replica that answered last or, if that fails, on the next.
// Buffers whole answers, so that none is partial and a failed replica is not seen. Thread-safe.
class Shards {
 public:
  // addresses: of each shard, its replicas as HOST:PORT.
  Shards(const std::vector<std::vector<std::string>>& addresses,
         const std::shared_ptr<grpc::ChannelCredentials>& credentials);

  int64_t size() const { return std::ssize(shards_); }

  // The messages with which the first `count` shards answer the call's RPC, as they sent them.
  // Their memory counts as that of the search. The first failure ends the calls to all others.
  // Statuses name the shard:
  //   UNAVAILABLE  no replica answers, or the shard does not know the collection yet
  //   others       as the shard sent them
  template <typename Answer>
  absl::StatusOr<std::vector<std::vector<Answer>>> Ask(Call& call,
                                                       const google::protobuf::Message& request,
                                                       int64_t count, uint64_t version = 0) {
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
  absl::StatusOr<std::vector<Answer>> AskOne(Call& call, const google::protobuf::Message& request) {
    PM_ASSIGN_OR_RETURN(auto streams, Ask<Answer>(call, request, size()));
    std::vector<Answer> answers;
    for (auto& stream : streams) {
      if (stream.size() != 1) return absl::InternalError("a shard must answer with one message");
      answers.push_back(std::move(stream.front()));
    }
    return answers;
  }

 private:
  struct Shard {
    std::string name;  // "shard 2 of 4 (HOST:PORT|HOST:PORT)"
    std::vector<std::shared_ptr<grpc::Channel>> replicas;
    std::atomic<size_t> preferred = 0;
  };
  struct Running;
  using Messages = std::vector<grpc::ByteBuffer>;

  absl::StatusOr<std::vector<Messages>> AskBytes(Call& call,
                                                 const google::protobuf::Message& request,
                                                 int64_t count, uint64_t version);
  static absl::Status AskShard(Shard& shard, Running& running, Messages* messages);
  static absl::Status AskReplica(const std::shared_ptr<grpc::Channel>& channel, Running& running,
                                 Messages* messages);
  static absl::Status Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message);

  std::vector<std::unique_ptr<Shard>> shards_;
  ThreadPool pool_;  // last: its jobs use the shards
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_SHARDS_H_
