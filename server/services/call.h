// One RPC call: its caller, limits, messages and outcome.
#ifndef PRIVATEMAIL_SERVER_SERVICES_CALL_H_
#define PRIVATEMAIL_SERVER_SERVICES_CALL_H_

#include <google/protobuf/message.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/stopwatch.h"
#include "common/base/thread_pool.h"
#include "server/access/access_key.h"
#include "server/access/admission.h"
#include "server/access/arriving_messages.h"
#include "server/access/audit_log.h"
#include "server/access/key_ring.h"
#include "server/access/limits.h"
#include "server/services/idle_calls.h"
#include "server/services/metrics.h"
#include "server/services/rpc_table.h"

namespace privatemail::server {

class Call;

// An RPC and its handler, see Dispatcher.
struct Method {
  const Rpc& rpc;
  const google::protobuf::Message& request;  // prototype of the first message
  bool streams_requests;                     // `handle` reads and checks all messages itself
  // `request` is null if streams_requests.
  std::function<absl::Status(Call&, const google::protobuf::Message* request)> handle;
  // Whether the handler neither blocks nor computes for long, so that it may run on gRPC's thread:
  // a context switch would cost more. Null: never.
  std::function<bool(const google::protobuf::Message&)> is_cheap = nullptr;
};

// The state that all calls of a daemon share. Thread-safe.
struct SharedByCalls {
  const KeyRing* keys = nullptr;  // null: keys are off, every caller has all rights
  AuditLog* audit = nullptr;      // null: no audit log
  Admission* admission = nullptr;
  Metrics* metrics = nullptr;
  std::string shard;                                      // number and count: "2/8"; empty: none
  std::set<std::string> trusted_proxies;                  // addresses: 4 or 16 bytes
  std::function<std::vector<std::string>()> collections;  // the names of all
  ArrivingMessages arriving;
  RateLimiter rates = {};
  ByteQuota parsed{"memory of the messages of all calls in bytes", "memory / 16"};
  ByteQuota searches{"memory of all searches in bytes", "memory / 8"};
  std::atomic<uint64_t> left_out = 0;  // calls without lines in the logs since the last report
  IdleCalls idle = {};
  ThreadPool thread_pool = {};  // last: its jobs use the members above
};

// The connection that a call came by.
enum class CameBy {
  kNetwork,
  // server/connect, in this process: there is no flow control of a network, so that the call itself
  // shows the gateway when it may take more memory.
  //   - The initial metadata come once there is room for the message.
  //   - After the answer comes kEndOfAnswer, for which the gateway asks once its caller has taken
  //     the rest. Until then the call has its ticket and its memory.
  //   - It cuts callers that take nothing of an answer, and so cancels their calls.
  //   - The metadata kCallerMetadata have the address of the caller.
  kGateway,
};
inline constexpr absl::string_view kEndOfAnswer("\0", 1);  // no message has these bytes
inline constexpr char kCallerMetadata[] = "gateway-caller";
inline constexpr char kForwardedMetadata[] = "x-real-ip";
// Every call of a front has the number and count of the shard that it takes the daemon for.
inline constexpr char kShardMetadata[] = "privatemail-shard";
// Some have what all shards are to show, "KEY:VERSION" of a collection in the store and of its
// items, or the version of the embeddings that all are to build.
inline constexpr char kVersionMetadata[] = "privatemail-version";

// Reads the first message, authorises the caller, waits for a place, runs the handler, logs, and
// sends the outcome. It is its own gRPC reactor and deletes itself once the caller has received the
// outcome or is gone, so an answer that its caller does not take holds memory and a ticket but no
// thread. Handlers run on workers, where they may block; the public members are for them alone and
// not thread-safe.
class Call final : public grpc::ServerGenericBidiReactor {
 public:
  // All but the limits must outlive the call.
  Call(const Method& method, Limits limits, CameBy came_by,
       grpc::GenericCallbackServerContext* context, SharedByCalls* shared);

  // Blocks until the next message of a stream. False: end of the stream or error, see StreamStatus.
  // Checks sizes as follows; gRPC's own parser would end a stream as if it were complete.
  // RESOURCE_EXHAUSTED (before parsing): the message would exceed max_request_memory, or together
  //   with the messages of all calls max_parsed_memory.
  // INVALID_ARGUMENT: the bytes are not such a message, or a string in it is not UTF-8.
  bool Read(google::protobuf::Message* message);

  // Sends a message of a stream; blocks while flow control does. CANCELLED: the caller takes no
  // more. Errors of StreamStatus.
  absl::Status Write(const google::protobuf::Message& message) {
    return Write(std::make_shared<const std::string>(message.SerializeAsString()));
  }
  // The same for an encoded message, without copying it.
  absl::Status Write(std::shared_ptr<const std::string> bytes);

  // Sets the encoded answer, which an OK of the handler sends.
  void SetAnswer(std::string bytes);

  // RESOURCE_EXHAUSTED if an answer of so many bytes is longer than a message may be; says how to
  // stay below.
  absl::Status CheckAnswerSize(size_t bytes, absl::string_view remedy) const;

  // Checks that the key covers the collection that `message` names, which the audit log gets, as
  // the size of the message. Handlers of streams call it for every message before they use it.
  // PERMISSION_DENIED: the key does not cover it, whether or not it exists.
  // INVALID_ARGUMENT: no collection is named.
  absl::Status RecordAndCheckAccess(const google::protobuf::Message& message);

  // The same for a collection that is not a field of the message. UNAUTHENTICATED: the RPC needs
  // no key and none that is valid came.
  absl::Status RecordAndCheckCollection(absl::string_view name);

  // The caller's key. Without an id: keys are off.
  const AccessKey& key() const { return *key_; }

  // Adds to the estimated memory of this search, which counts until the answer is delivered.
  // RESOURCE_EXHAUSTED: all searches together would exceed max_search_memory, or those of
  // the key half of it.
  absl::Status ReserveSearchMemory(int64_t bytes) {
    return search_.Take(bytes, limits_.max_search_memory, key_->id);
  }
  // The answer is made: only its bytes still count.
  void ReduceSearchMemoryTo(int64_t bytes) { search_.ReduceTo(bytes); }

  // The limits at the start of the call.
  const Limits& limits() const { return limits_; }

  // The caller's; the infinite future: none.
  absl::Time deadline() const { return absl::FromChrono(context_->deadline()); }
  // The path of the RPC.
  const std::string& method() const { return context_->method(); }
  // For a call to another daemon, which ends with this one.
  std::unique_ptr<grpc::ClientContext> MakeClientContext() const {
    return grpc::ClientContext::FromCallbackServerContext(*context_);
  }
  // The first value of this name that came with the call; nullopt: none.
  std::optional<std::string> Metadata(const char* name) const {
    const auto found = context_->client_metadata().find(name);
    if (found == context_->client_metadata().end()) return std::nullopt;
    return std::string(found->second.data(), found->second.size());
  }

  // Whether the caller has disconnected, cancelled, or passed its deadline.
  bool Cancelled() const { return context_->IsCancelled() || DeadlineHasPassed(); }

  // Why a stream ended early; OK if it did not.
  // DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED: the caller was idle for too long (IdleCalls).
  // UNAUTHENTICATED: the key was revoked or expired during the call.
  // RESOURCE_EXHAUSTED, INVALID_ARGUMENT: errors of Read.
  // CANCELLED: the caller is gone.
  absl::Status StreamStatus() const;

  // Counts queries beyond the first of this call towards the key's rate, which its next calls wait
  // for: each costs as much as a call.
  void CountFurtherQueries(int64_t count) {
    shared_->rates.Owe(*key_, RateLimiter::Clock::now(), count);
  }

  // For the logs: number of items, anchors or matches received, sent or counted.
  void AddRows(uint64_t count) { entry_.rows += count; }

  // For the audit log: id of the key that was created or revoked.
  void SetAuditSubject(std::string id) { entry_.subject = std::move(id); }

  Metrics* metrics() const { return shared_->metrics; }

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { place_.StopWaiting(); }
  void OnDone() override { delete this; }

  bool DeadlineHasPassed() const {
    return std::chrono::system_clock::now() >= context_->deadline();
  }
  bool IsOpen() const { return method_.rpc.any_of == 0; }
  absl::Status Authenticate();
  // FAILED_PRECONDITION: a front takes this daemon for another shard than it is.
  absl::Status CheckShard() const;
  // Continues with the first message or its absence. Sets *continues if a worker takes over, which
  // sends the outcome.
  absl::Status Begin(bool received, bool* continues);
  absl::Status ParseRequest();
  absl::Status Parse(google::protobuf::Message* message);
  // Checks rate, scopes and, if it is known, the collection.
  absl::Status Authorise();
  absl::Status CheckScopes() const;
  absl::Status EnterQueue();
  absl::Status AwaitPlaceAndRun();
  absl::Status Handle();
  // Adds to NOT_FOUND of a collection the names of those that the key covers.
  absl::Status NameCollections(const absl::Status& not_found) const;
  // Starts an operation of gRPC and blocks until it ends. False: it failed, the caller was idle for
  // too long, or its key is no longer valid.
  bool AwaitCaller(absl::FunctionRef<void()> start);
  // Reads the next message as soon as there is room for it. The call may be gone afterwards.
  void StartReading();
  void ClearMessage();
  // message: null if the caller is to take an answer.
  void Watch(const ArrivingMessages::Place* message);
  // Returns an error if the call was ended during the wait, or its key is no longer valid.
  absl::Status EndWatch();
  // The address of the connection or, without the port, the one that a trusted proxy names.
  std::string Caller() const;
  void Record(const absl::Status& status);
  void SendOutcome(absl::Status status);
  void SendEndOfAnswer();

  const Method& method_;
  const Limits limits_;
  const CameBy came_by_;
  grpc::GenericCallbackServerContext* const context_;
  SharedByCalls* const shared_;
  const Stopwatch running_;
  grpc::ByteBuffer bytes_;                              // read last, or being written
  std::shared_ptr<google::protobuf::Message> request_;  // the first message, once it is parsed
  absl::Status parse_error_;                            // reported to authorised callers only
  bool has_next_ = false;                               // bytes_ are the next message of a stream
  int64_t number_ = 0;                                  // of the next message of a stream
  std::optional<absl::Notification> operation_ended_;   // set while AwaitCaller blocks
  bool has_succeeded_ = false;                          // the operation that ended last
  ByteQuota::Reservation parsed_;                       // quota of the message that was parsed last
  ByteQuota::Reservation search_;
  std::shared_ptr<const AccessKey> key_;  // null: no valid key
  absl::Status key_error_;                // why key_ is null
  AuditEntry entry_;                      // Record completes it
  absl::Status stream_error_;
  std::optional<grpc::ByteBuffer> answer_;
  // The operation after the write for the gateway that is under way. The end of an answer and the
  // status are two operations, since gRPC's transport in a process does not hold a status for a
  // message.
  enum class Next { kNothing, kEndOfAnswer, kStatus };
  Next next_ = Next::kNothing;
  std::optional<Admission::Ticket> ticket_;  // held until the answer is delivered
  ArrivingMessages::Place place_;          // until the message is parsed, or at once if it is short
  std::optional<IdleCalls::Watch> watch_;  // while the call waits for its caller
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_CALL_H_
