#include "server/services/shards.h"

#include <grpc/support/time.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/stopwatch.h"
#include "common/rpc/parse_message.h"
#include "common/rpc/status.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/services/log.h"

namespace privatemail::server {

namespace {

// The status of a call to this shard, for the caller of the front.
absl::Status Named(const std::string& shard, const absl::Status& status) {
  // A collection that was created or renamed here a moment ago is not there yet.
  const bool is_away = absl::IsNotFound(status) || absl::IsCancelled(status);
  absl::Status named(is_away ? absl::StatusCode::kUnavailable : status.code(),
                     absl::StrCat(shard, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { named.SetPayload(url, payload); });
  return named;
}

}  // namespace

// The replicas of a shard. Thread-safe.
class Shards::Shard {
 public:
  Shard(size_t number, size_t count, std::vector<std::string> replicas)
      : name_(absl::StrCat("shard ", number, " of ", count)),
        place_(absl::StrCat(number, "/", count)),
        replicas_(std::move(replicas)),
        order_(replicas_.size()) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  void Connect(const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    // A pod that was started again has another address.
    arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
    // Detects a machine that is gone. Shards refuse pings that come more often than every 10 s.
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 15'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
    std::vector<std::shared_ptr<grpc::Channel>> channels;
    for (const std::string& address : replicas_) {
      channels.push_back(grpc::CreateCustomChannel(address, credentials, arguments));
    }
    const std::lock_guard<std::mutex> guard(mutex_);
    channels_.swap(channels);
  }

  // "shard 2 of 4 (HOST:PORT|HOST:PORT)", or with one replica.
  std::string name() const { return absl::StrCat(name_, " (", absl::StrJoin(replicas_, "|"), ")"); }
  std::string name(size_t replica) const {
    return absl::StrCat(name_, " (", replicas_[replica], ")");
  }
  const std::string& place() const { return place_; }  // "2/4"
  std::shared_ptr<grpc::Channel> channel(size_t replica) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return channels_[replica];
  }

  // The replicas in the order in which they are asked.
  std::vector<size_t> order() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return order_;
  }
  void MoveToEnd(size_t replica) {
    const std::lock_guard<std::mutex> guard(mutex_);
    order_.erase(std::find(order_.begin(), order_.end(), replica));
    order_.push_back(replica);
  }

  // The time after which the next replica is asked as well. Two must never build at once.
  absl::Duration Patience(const std::string& method) const {
    constexpr absl::Duration kLeast = absl::Milliseconds(500);
    if (absl::EndsWith(method, "/BuildEmbedding")) return absl::InfiniteDuration();
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto slowest = slowest_.find(method);
    return slowest == slowest_.end() ? kLeast : kLeast + 2 * slowest->second;
  }
  void RecordAnswer(const std::string& method, absl::Duration took) {
    const std::lock_guard<std::mutex> guard(mutex_);
    absl::Duration& slowest = slowest_[method];
    slowest = std::max(took, slowest - slowest / 16);
  }

 private:
  const std::string name_;
  const std::string place_;
  const std::vector<std::string> replicas_;  // HOST:PORT
  mutable std::mutex mutex_;                 // guards the following
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<size_t> order_;                      // the replica that failed last is at the end
  std::map<std::string, absl::Duration> slowest_;  // by RPC; the maximum of recent answers
};

// A call to one replica. Its operations run one after another on a queue, with this as their tag.
struct Shards::Attempt {
  Attempt(const ShardCall& call, const grpc::ByteBuffer& request, const std::string& version,
          Turn* of, size_t asked, grpc::CompletionQueue* queue);

  // Goes on after an operation. True: the call has ended with `status`.
  // admit: called for each message that has arrived; its error ends the call.
  bool Proceed(bool succeeded, absl::FunctionRef<absl::Status(int64_t bytes)> admit);

  Turn* const turn;
  const size_t replica;
  const Stopwatch running;
  Messages messages;
  absl::Status status;

  enum class Operation { kWrite, kRead, kFinish };
  Operation operation = Operation::kWrite;
  const std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
  grpc::ByteBuffer message;
  grpc::Status finished;
};

// The part of a call that one shard answers.
struct Shards::Turn {
  Turn(Shard* of, const std::string& method)
      : shard(*of), order(of->order()), patience(of->Patience(method)) {}

  bool can_ask_next() const { return !ended && attempts.size() < order.size(); }
  absl::Duration left() const { return patience - attempts.back()->running.Elapsed(); }
  void Cancel() const {
    for (const auto& attempt : attempts) attempt->context->TryCancel();
  }

  Shard& shard;
  const std::vector<size_t> order;  // of replicas
  const absl::Duration patience;
  std::vector<std::unique_ptr<Attempt>> attempts;  // at the first replicas of `order`
  size_t failed = 0;                               // attempts whose replica is away or behind
  absl::Status aborted;                            // of a replica that is behind
  bool ended = false;                              // answered, or no replica is left
  Messages answer;
};

Shards::Attempt::Attempt(const ShardCall& call, const grpc::ByteBuffer& request,
                         const std::string& version, Turn* of, size_t asked,
                         grpc::CompletionQueue* queue)
    : turn(of), replica(asked), context(call.make_context()) {
  context->AddMetadata(kShardMetadata, turn->shard.place());
  if (!version.empty()) context->AddMetadata(kVersionMetadata, version);
  context->set_initial_metadata_corked(true);  // they go with the message, in one operation
  grpc::GenericStub stub(turn->shard.channel(replica));
  stream = stub.PrepareCall(context.get(), call.method, queue);
  stream->StartCall(nullptr);
  stream->WriteLast(request, grpc::WriteOptions(), this);
}

bool Shards::Attempt::Proceed(bool succeeded,
                              absl::FunctionRef<absl::Status(int64_t bytes)> admit) {
  if (operation == Operation::kFinish) {
    if (status.ok()) status = FromGrpc(finished);
    return true;
  }
  if (succeeded && operation == Operation::kRead) {
    status = admit(static_cast<int64_t>(message.Length()));
    if (!status.ok()) context->TryCancel();
    messages.push_back(std::move(message));
    message.Clear();
  }
  if (!succeeded || !status.ok()) {
    operation = Operation::kFinish;
    stream->Finish(&finished, this);
  } else {
    operation = Operation::kRead;
    stream->Read(&message, this);
  }
  return false;
}

ShardCall::ShardCall(Call& call)
    : method(call.method()),
      deadline(call.deadline()),
      cancelled([&call] { return call.Cancelled(); }),
      reserve([&call](int64_t bytes) { return call.ReserveSearchMemory(bytes); }),
      make_context([&call] { return call.MakeClientContext(); }) {}

ShardCall::ShardCall(std::string path, std::function<bool()> is_cancelled)
    : method(std::move(path)),
      cancelled(std::move(is_cancelled)),
      reserve([](int64_t /*bytes*/) { return absl::OkStatus(); }),
      make_context([] { return std::make_unique<grpc::ClientContext>(); }) {}

Shards::Shards(const std::vector<std::vector<std::string>>& addresses,
               const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  for (size_t i = 0; i < addresses.size(); ++i) {
    shards_.push_back(std::make_unique<Shard>(i + 1, addresses.size(), addresses[i]));
  }
  Connect(credentials);
  probes_.Add([this](const auto& /*stopped*/) { Probe(); });
}

Shards::~Shards() = default;

void Shards::Connect(const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  for (const auto& shard : shards_) shard->Connect(credentials);
}

Shards::Replicas Shards::Check(const std::string& service, bool until_ready) const {
  constexpr absl::Duration kMaxWait = absl::Seconds(2);
  using grpc::health::v1::HealthCheckResponse;
  struct Probe {
    absl::Status* outcome;
    grpc::ClientContext context;
    HealthCheckResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<HealthCheckResponse>> call;
  };
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Probe>> probes;
  Replicas replicas;
  for (const auto& shard : shards_) {
    auto& of_shard = replicas.emplace_back(shard->order().size(), absl::UnknownError(""));
    for (size_t replica = 0; replica < of_shard.size(); ++replica) {
      Probe& probe = *probes.emplace_back(std::make_unique<Probe>());
      probe.outcome = &of_shard[replica];
      probe.context.AddMetadata(kShardMetadata, shard->place());
      probe.context.set_deadline(absl::ToChronoTime(absl::Now() + kMaxWait));
      const auto stub = grpc::health::v1::Health::NewStub(shard->channel(replica));
      probe.call = stub->AsyncCheck(&probe.context, request, &queue);
      probe.call->Finish(&probe.response, &probe.status, &probe);
    }
  }
  for (size_t ended = 0; ended < probes.size(); ++ended) {
    void* tag = nullptr;
    bool succeeded = false;
    queue.Next(&tag, &succeeded);
    const Probe& probe = *static_cast<Probe*>(tag);
    *probe.outcome = FromGrpc(probe.status);
    if (probe.outcome->ok() && probe.response.status() != HealthCheckResponse::SERVING) {
      *probe.outcome = absl::UnavailableError("it does not serve yet");
    }
    if (!until_ready || !AreReady(replicas)) continue;
    for (const auto& other : probes) other->context.TryCancel();  // nothing depends on them
  }
  return replicas;
}

bool Shards::AreReady(const Replicas& replicas) {
  return absl::c_all_of(replicas, [](const std::vector<absl::Status>& shard) {
    return absl::c_any_of(shard, [](const auto& one) { return one.ok(); }) &&
           absl::c_none_of(shard, [](const auto& one) { return absl::IsFailedPrecondition(one); });
  });
}

void Shards::Probe() {
  Replicas now = Check("", /*until_ready=*/false);
  for (size_t i = 0; i < shards_.size(); ++i) {
    for (size_t replica = 0; replica < now[i].size(); ++replica) {
      const absl::Status& one = now[i][replica];
      const absl::StatusCode former =
          probed_.empty() ? absl::StatusCode::kOk : probed_[i][replica].code();
      if (one.code() == former) continue;
      const std::string name = shards_[i]->name(replica);
      Log(one.ok() ? LogLevel::kInfo : LogLevel::kWarning,
          one.ok() ? name + " serves" : absl::StrCat(name, " is not ready: ", one.message()));
    }
  }
  serve_ = AreReady(now);
  probed_ = std::move(now);
  probes_.Add([this](const auto& /*stopped*/) { Probe(); }, absl::Seconds(1));
}

absl::StatusOr<std::vector<Shards::Messages>> Shards::AskBytes(
    const ShardCall& call, const google::protobuf::Message& request, int64_t count,
    const std::string& version) {
  const std::string bytes = request.SerializeAsString();
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer buffer(&slice, 1);
  grpc::CompletionQueue queue;
  std::deque<Turn> turns;  // attempts point to them
  int64_t running = 0;
  absl::Status failure;
  // A little before the caller's deadline: its own error would not name the shard.
  const absl::Time deadline =
      call.deadline - std::min(absl::Seconds(1), (call.deadline - absl::Now()) / 20);
  const auto fail = [&](absl::Status status) {
    failure = std::move(status);
    for (const Turn& turn : turns) turn.Cancel();
  };
  const auto ask_next = [&](Turn& turn) {
    const size_t replica = turn.order[turn.attempts.size()];
    turn.attempts.push_back(
        std::make_unique<Attempt>(call, buffer, version, &turn, replica, &queue));
    ++running;
  };
  for (int64_t shard = 0; shard < count; ++shard) {
    ask_next(turns.emplace_back(shards_[static_cast<size_t>(shard)].get(), call.method));
  }
  while (running > 0) {
    if (failure.ok() && call.cancelled()) fail(absl::CancelledError("the caller is gone"));
    const absl::Duration rest = deadline - absl::Now();
    // None: all have answered, and attempts that were cancelled have not ended yet.
    const auto silent = absl::c_find_if(turns, [](const Turn& turn) { return !turn.ended; });
    if (failure.ok() && rest <= absl::ZeroDuration() && silent != turns.end()) {
      fail(Named(silent->shard.name(), absl::DeadlineExceededError("it does not answer in time")));
    }
    absl::Duration left = absl::Seconds(1);  // until it asks whether the call was cancelled
    if (rest > absl::ZeroDuration()) left = std::min(left, rest);
    Turn* late = nullptr;  // the next whose answer is late
    for (Turn& turn : turns) {
      if (!failure.ok() || !turn.can_ask_next() || turn.left() >= left) continue;
      left = turn.left();
      late = &turn;
    }
    void* tag = nullptr;
    bool succeeded = false;
    const gpr_timespec until =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                     gpr_time_from_micros(absl::ToInt64Microseconds(left), GPR_TIMESPAN));
    if (queue.AsyncNext(&tag, &succeeded, until) == grpc::CompletionQueue::TIMEOUT) {
      if (late == nullptr || !failure.ok()) continue;
      late->shard.MoveToEnd(late->attempts.back()->replica);
      ask_next(*late);
      continue;
    }
    Attempt& attempt = *static_cast<Attempt*>(tag);
    if (!attempt.Proceed(succeeded, call.reserve)) continue;
    --running;
    Turn& turn = *attempt.turn;
    if (turn.ended || !failure.ok()) continue;  // it was cancelled
    // A daemon that stops cancels its calls.
    const bool is_away = absl::IsUnavailable(attempt.status) || absl::IsCancelled(attempt.status);
    // Another replica may know a collection already, or have what this one has not yet.
    const bool is_behind = absl::IsNotFound(attempt.status) || absl::IsAborted(attempt.status) ||
                           absl::IsFailedPrecondition(attempt.status);
    const bool builds = turn.patience == absl::InfiniteDuration();
    // The shards may still take over what a build has saved: no replica builds it again.
    const bool has_built = builds && !attempt.messages.empty();
    if ((is_away || (is_behind && !builds)) && !has_built && !call.cancelled()) {
      if (is_away) turn.shard.MoveToEnd(attempt.replica);
      if (absl::IsAborted(attempt.status)) turn.aborted = attempt.status;
      if (turn.can_ask_next()) ask_next(turn);
      if (++turn.failed < turn.attempts.size()) continue;
    }
    turn.ended = true;
    if (attempt.status.ok()) {
      turn.shard.RecordAnswer(call.method, attempt.running.Elapsed());
      turn.answer = std::move(attempt.messages);
      turn.Cancel();
    } else {
      // A replica that is behind will answer soon, even if the other ones are away.
      const absl::Status& status = turn.aborted.ok() ? attempt.status : turn.aborted;
      fail(Named(is_away ? turn.shard.name() : turn.shard.name(attempt.replica), status));
    }
  }
  PM_RETURN_IF_ERROR(failure);
  std::vector<Messages> answers;
  for (Turn& turn : turns) answers.push_back(std::move(turn.answer));
  return answers;
}

absl::Status Shards::Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  return ParseMessage(
      bytes, [](int64_t /*memory*/) { return absl::OkStatus(); }, message);
}

}  // namespace privatemail::server
