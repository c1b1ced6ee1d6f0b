// RPC calls: caller, limits, messages and outcome, over gRPC's callback API.
#ifndef PRIVATEMAIL_SERVER_SERVICES_CALL_H_
#define PRIVATEMAIL_SERVER_SERVICES_CALL_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/status.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/access/access_key.h"
#include "server/access/admission.h"
#include "server/access/key_ring.h"
#include "server/access/limits.h"
#include "server/services/idle_calls.h"
#include "server/services/metrics.h"
#include "server/services/rpc_table.h"

namespace privatemail::server {

// Short names of gRPC's callback API, for services whose methods exchange bytes.
using RpcContext = grpc::CallbackServerContext;
using Bytes = grpc::ByteBuffer;
using UnaryReactor = grpc::ServerUnaryReactor;
using ReadReactor = grpc::ServerReadReactor<Bytes>;
using WriteReactor = grpc::ServerWriteReactor<Bytes>;

Bytes ToByteBuffer(const std::string& bytes);
// Shares ownership of the bytes instead of copying them.
Bytes ToByteBuffer(std::shared_ptr<const std::string> bytes);

// State of one RPC: identity and rights of the caller, and data for logs and metrics.
// Not thread-safe: used by one handler.
class Call {
 public:
  // All but `rpc` must outlive the call.
  struct Dependencies {
    const Rpc& rpc;
    Limits limits;
    RpcContext* context;
    const KeyRing* keys;  // null: keys are off
    Metrics* metrics;
    IdleCalls* idle;
    ByteQuota* parsed;    // memory of the parsed messages of all calls
    ByteQuota* searches;  // memory of all searches
  };
  explicit Call(const Dependencies& dependencies)
      : dependencies_(dependencies), parsed_(dependencies.parsed), search_(dependencies.searches) {}
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Parses `bytes` into `message` and releases the quota of the previously parsed message. gRPC's
  // own parser would answer UNIMPLEMENTED without a log line, and end a stream as if it were
  // complete.
  // RESOURCE_EXHAUSTED (before parsing): the message would exceed max_request_memory, or together
  //   with the messages of all calls max_parsed_memory.
  // INVALID_ARGUMENT: `bytes` are not such a message, or a string in it is not UTF-8.
  absl::Status Parse(const Bytes& bytes, google::protobuf::Message* message);

  // Checks that the key covers the collection that `message` names. Streaming handlers call it for
  // every message before they use it; the dispatcher calls it for calls of a single message.
  // PERMISSION_DENIED: the key does not cover it, whether or not it exists.
  // INVALID_ARGUMENT: no collection is named.
  absl::Status CheckAccess(const google::protobuf::Message& message);

  // CheckAccess for a collection that is not a field of the message. UNAUTHENTICATED: the RPC needs
  // no key and none that is valid came.
  absl::Status CheckCollectionAccess(absl::string_view name);

  // Whether the key covers the collection; logs nothing.
  bool Covers(absl::string_view collection) const { return key_->Covers(collection); }

  // Whether the key has at least one of these scopes.
  bool HasScope(Scopes any_of) const { return key_->Has(any_of); }

  // Id of the key; empty: keys are off.
  const std::string& key_id() const { return key_->id; }

  // Adds to the estimated memory of this search, which counts until the answer is delivered.
  // RESOURCE_EXHAUSTED: all searches together would exceed max_search_memory, or those of
  // the key half of it.
  absl::Status ReserveSearchMemory(int64_t bytes) {
    return search_.TakeForKey(bytes, limits().max_search_memory, key_id());
  }
  // The answer is made: only its bytes still count.
  void ReduceSearchMemoryTo(int64_t bytes) { search_.ReduceTo(bytes); }

  // The limits at the start of the call.
  const Limits& limits() const { return dependencies_.limits; }

  // Whether the caller has disconnected, cancelled, or passed its deadline.
  bool Cancelled() const { return dependencies_.context->IsCancelled(); }

  // Why a stream ended early; OK if it did not.
  // DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED: the caller was idle for too long (IdleCalls).
  // UNAUTHENTICATED: the key was revoked or expired during the call.
  // INVALID_ARGUMENT: a message could not be parsed.
  // CANCELLED: the caller is gone.
  absl::Status StreamStatus() const;

  // For the logs: number of items, anchors or matches received, sent or counted.
  void AddRows(uint64_t count) { rows_ += count; }

  // For the audit log: id of the key that was created or revoked.
  void SetAuditSubject(std::string id) { audit_subject_ = std::move(id); }

  // For the metrics: fraction of a build that is done, 0 to 1.
  void ReportBuildProgress(double fraction) {
    is_build_ = true;
    dependencies_.metrics->SetBuildProgress(collection_, fraction);
  }

  // CollectionToProto, and the progress of a build that runs.
  void DescribeCollection(const CollectionView& view, v1::GetCollectionResponse* proto) const {
    CollectionToProto(view, proto);
    const std::optional<double> done = dependencies_.metrics->BuildProgress(view.published->name);
    if (done.has_value()) proto->set_build_share(*done);
  }

 protected:
  // Runs `wait`, which blocks on the caller and returns whether the caller did its part. Returns
  // false also when the caller was idle for too long or its key is no longer valid.
  bool AwaitCaller(IdleCalls::For what, absl::FunctionRef<bool()> wait);

  // Ends the stream if `status` is an error; returns whether the stream is still open.
  bool UpdateStream(absl::Status status) {
    stream_error_.Update(std::move(status));
    return stream_error_.ok();
  }

 private:
  friend class Dispatcher;

  // Sends the outcome. gRPC destroys the call once the caller has received it or is gone, possibly
  // before this returns.
  virtual void SendStatus(const grpc::Status& status) = 0;

  const Dependencies dependencies_;
  ByteQuota::Reservation parsed_;  // quota of the message that was parsed last
  ByteQuota::Reservation search_;
  const absl::Time start_ = absl::Now();
  std::shared_ptr<const AccessKey> key_;  // null: no valid key
  absl::Status key_error_;                // why key_ is null
  std::string collection_;
  std::string audit_subject_;
  uint64_t rows_ = 0;
  uint64_t request_bytes_ = 0;
  bool is_build_ = false;
  absl::Status stream_error_;
  std::optional<Admission::Ticket> ticket_;         // held until the answer is delivered
  std::optional<IdleCalls::Watch> delivery_watch_;  // from SendStatus on
};

// The messages of a client stream.
template <typename Message>
class MessageReader {
 public:
  virtual ~MessageReader() = default;

  // Blocks until the next message. False: end of the stream or error, see Call::StreamStatus.
  virtual bool Read(Message* message) = 0;
};

// The messages of a server stream.
template <typename Message>
class MessageWriter {
 public:
  virtual ~MessageWriter() = default;

  // Blocks while flow control does. False: the caller takes no more, see Call::StreamStatus.
  bool Write(const Message& message) {
    return WriteBytes(std::make_shared<const std::string>(message.SerializeAsString()));
  }

  // Writes an encoded Message without copying it.
  virtual bool WriteBytes(std::shared_ptr<const std::string> bytes) = 0;
};

// Completion of one gRPC operation: set by gRPC's thread, awaited by a worker.
class Completion {
 public:
  void Set(bool ok) {
    const std::lock_guard<std::mutex> guard(mutex_);
    is_set_ = true;
    ok_ = ok;
    changed_.notify_one();  // under the lock: the waiter may destroy the call at once
  }
  bool Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return is_set_; });
    is_set_ = false;
    return ok_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
  bool ok_ = false;
};

// A call that is its own gRPC reactor and deletes itself. Handlers run on workers, so an answer
// that its caller does not take holds memory and a ticket but no thread.
template <typename Reactor>
class ReactorCall : public Reactor, public Call {
 public:
  using Call::Call;

 private:
  void SendStatus(const grpc::Status& status) final { this->Finish(status); }
  void OnDone() final { delete this; }
};

using UnaryCall = ReactorCall<UnaryReactor>;

template <typename Message>
class ClientStreamCall final : public ReactorCall<ReadReactor>, public MessageReader<Message> {
 public:
  using ReactorCall<ReadReactor>::ReactorCall;

  bool Read(Message* message) override {
    const bool received = this->AwaitCaller(IdleCalls::For::kMessage, [&] {
      this->StartRead(&bytes_);
      return read_.Wait();
    });
    if (!received) return false;
    return this->UpdateStream(AtNumber(next_++, this->Parse(bytes_, message)));
  }

 private:
  void OnReadDone(bool ok) override { read_.Set(ok); }

  static absl::Status AtNumber(int64_t number, const absl::Status& status) {
    if (status.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat("message ", number, " of the stream: ", status.message()));
  }

  Bytes bytes_;
  int64_t next_ = 0;  // index of the next message
  Completion read_;
};

template <typename Message>
class ServerStreamCall final : public ReactorCall<WriteReactor>, public MessageWriter<Message> {
 public:
  using ReactorCall<WriteReactor>::ReactorCall;

  bool WriteBytes(std::shared_ptr<const std::string> bytes) override {
    bytes_ = ToByteBuffer(std::move(bytes));
    return this->AwaitCaller(IdleCalls::For::kAnswer, [&] {
      this->StartWrite(&bytes_);
      return written_.Wait();
    });
  }

 private:
  void OnWriteDone(bool ok) override { written_.Set(ok); }

  Bytes bytes_;
  Completion written_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_CALL_H_
