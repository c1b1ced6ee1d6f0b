#include "server/services/shards.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/channel_arguments.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/blocking_counter.h"
#include "common/rpc/parse_message.h"
#include "common/rpc/status.h"

namespace privatemail::server {

// A call of a searcher that all shards are to answer.
struct Shards::Running {
  Call& call;
  const std::string method;
  const uint64_t version;
  grpc::ByteBuffer request;
  std::mutex mutex{};                      // guards the following, and the call
  absl::Status failure{};                  // the first
  std::set<grpc::ClientContext*> calls{};  // to shards, that can be cancelled

  void Fail(const absl::Status& status) {
    const std::lock_guard<std::mutex> guard(mutex);
    if (!failure.ok()) return;
    failure = status;
    for (grpc::ClientContext* one : calls) one->TryCancel();
  }
};

Shards::Shards(const std::vector<std::vector<std::string>>& addresses,
               const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // Detects a machine that is gone. Shards refuse pings that come more often than every 10 s.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 15'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  for (size_t i = 0; i < addresses.size(); ++i) {
    auto shard = std::make_unique<Shard>();
    shard->name = absl::StrCat("shard ", i + 1, " of ", addresses.size(), " (",
                               absl::StrJoin(addresses[i], "|"), ")");
    for (const std::string& address : addresses[i]) {
      shard->replicas.push_back(grpc::CreateCustomChannel(address, credentials, arguments));
    }
    shards_.push_back(std::move(shard));
  }
}

absl::StatusOr<std::vector<Shards::Messages>> Shards::AskBytes(
    Call& call, const google::protobuf::Message& request, int64_t count, uint64_t version) {
  const std::string bytes = request.SerializeAsString();
  const grpc::Slice slice(bytes);
  Running running{.call = call,
                  .method = call.method(),
                  .version = version,
                  .request = grpc::ByteBuffer(&slice, 1)};
  std::vector<Messages> answers(static_cast<size_t>(count));
  const auto ask = [&](size_t shard) {
    const absl::Status status = AskShard(*shards_[shard], running, &answers[shard]);
    if (!status.ok()) running.Fail(status);
  };
  absl::BlockingCounter left(static_cast<int>(count));
  for (size_t shard = 0; shard < answers.size(); ++shard) {
    pool_.Run([&, shard] {
      ask(shard);
      left.DecrementCount();
    });
  }
  left.Wait();
  PM_RETURN_IF_ERROR(running.failure);
  return answers;
}

absl::Status Shards::AskShard(Shard& shard, Running& running, Messages* messages) {
  const size_t first = shard.preferred;
  absl::Status status;
  for (size_t i = 0; i < shard.replicas.size(); ++i) {
    const size_t replica = (first + i) % shard.replicas.size();
    messages->clear();
    status = AskReplica(shard.replicas[replica], running, messages);
    if (status.ok()) shard.preferred = replica;
    // A daemon that stops cancels its calls.
    if (!absl::IsUnavailable(status) && !absl::IsCancelled(status)) break;
    if (running.call.Cancelled()) break;
  }
  if (status.ok()) return status;
  // A collection that was created or renamed here a moment ago is not there yet.
  const bool unavailable = absl::IsNotFound(status) || absl::IsCancelled(status);
  absl::Status named(unavailable ? absl::StatusCode::kUnavailable : status.code(),
                     absl::StrCat(shard.name, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { named.SetPayload(url, payload); });
  return named;
}

absl::Status Shards::AskReplica(const std::shared_ptr<grpc::Channel>& channel, Running& running,
                                Messages* messages) {
  const std::unique_ptr<grpc::ClientContext> context = running.call.MakeClientContext();
  if (running.version > 0) {
    context->AddMetadata(kVersionMetadata, absl::StrCat(running.version));
  }
  {
    const std::lock_guard<std::mutex> guard(running.mutex);
    if (!running.failure.ok()) return absl::AbortedError("another shard failed");
    running.calls.insert(context.get());
  }
  grpc::CompletionQueue queue;
  const auto succeeds = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  grpc::GenericStub stub(channel);
  const auto stream = stub.PrepareCall(context.get(), running.method, &queue);
  stream->StartCall(nullptr);
  absl::Status admitted;
  if (succeeds()) {
    stream->WriteLast(running.request, grpc::WriteOptions(), nullptr);
    succeeds();  // otherwise the status says why
    grpc::ByteBuffer message;
    while (stream->Read(&message, nullptr), succeeds()) {
      const std::lock_guard<std::mutex> guard(running.mutex);
      admitted = running.call.ReserveSearchMemory(static_cast<int64_t>(message.Length()));
      if (!admitted.ok()) break;
      messages->push_back(std::move(message));
      message.Clear();
    }
    if (!admitted.ok()) context->TryCancel();
  }
  grpc::Status status;
  stream->Finish(&status, nullptr);
  succeeds();
  const std::lock_guard<std::mutex> guard(running.mutex);
  running.calls.erase(context.get());
  return admitted.ok() ? FromGrpc(status) : admitted;
}

absl::Status Shards::Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  return ParseMessage(
      bytes, [](int64_t /*memory*/) { return absl::OkStatus(); }, message);
}

}  // namespace privatemail::server
