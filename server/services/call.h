// One call under way.
#ifndef PRIVATEMAIL_SERVER_SERVICES_CALL_H_
#define PRIVATEMAIL_SERVER_SERVICES_CALL_H_

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/access/access_key.h"
#include "server/access/admission.h"
#include "server/access/byte_budget.h"
#include "server/access/key_ring.h"
#include "server/access/limits.h"
#include "server/services/idle_calls.h"
#include "server/services/metrics.h"
#include "server/services/rpc_table.h"

namespace privatemail::server {

// What a handler knows of its caller, and what it tells the logs. Not thread-safe: its handler's
// alone.
class Call {
 public:
  // What a call is made of; all but `rpc` must outlive it.
  struct Parts {
    const Rpc& rpc;
    Limits limits;
    grpc::CallbackServerContext* context;
    const KeyRing* keys;  // null: keys are off
    Metrics* metrics;
    IdleCalls* idle;
    ByteBudget* parsed;  // memory of the messages of all calls
  };
  explicit Call(const Parts& parts) : parts_(parts), parsed_(parts.parsed) {}
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Makes a message of what came, in place of the one before. RESOURCE_EXHAUSTED naming limit and
  // value, before anything is made: it would take more than max_request_memory, or with the
  // messages of all calls more than max_parsed_memory. INVALID_ARGUMENT: the bytes are no such
  // message.
  absl::Status Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message);

  // Of every message of the caller, before anything is done with it: may the key use this
  // collection? PERMISSION_DENIED, the same whether the collection exists or not. INVALID_ARGUMENT:
  // the collection is not named. The gate does it for calls with a single message.
  absl::Status Admit(const google::protobuf::Message& message);

  // The same for a collection that no field of the message names. UNAUTHENTICATED: the RPC needs no
  // key, and none that is valid came.
  absl::Status RequireCollection(absl::string_view name);

  // Whether the key covers a collection that the caller has not named.
  bool Covers(absl::string_view collection) const { return key_->Covers(collection); }

  // Whether the key has one of these.
  bool Has(Scopes any_of) const { return key_->Has(any_of); }

  // As they were when the call began.
  const Limits& limits() const { return parts_.limits; }

  // The caller is gone or its deadline has passed: nobody waits for the result.
  bool Cancelled() const { return parts_.context->IsCancelled(); }

  // Why a stream ended before its time. DEADLINE_EXCEEDED naming limit and value: the caller let
  // this call wait for longer than stream_idle_seconds. UNAUTHENTICATED: its key was revoked or
  // expired meanwhile. INVALID_ARGUMENT: a message of it cannot be parsed. CANCELLED: it is gone.
  // OK: none of these.
  absl::Status StreamStatus() const;

  // For the logs: how many items, anchors or matches went in or out, or were counted. Never which.
  void AddRows(uint64_t count) { rows_ += count; }

  // For the audit log: the id of the key that was made, or revoked if there is one.
  void SetSubject(std::string id) { subject_ = std::move(id); }

  // For the metrics: the share of a build that is done, 0 to 1.
  void ReportBuild(double done) {
    builds_ = true;
    parts_.metrics->SetBuildProgress(collection_, done);
  }

 protected:
  // Runs `wait`, which waits for the caller and says whether it did its part; false, too, when the
  // caller took too long or its key is no longer valid.
  bool Await(absl::FunctionRef<bool()> wait);

  // Takes an error for the end of the stream; whether it is none.
  bool Accept(absl::Status status) {
    ended_.Update(std::move(status));
    return ended_.ok();
  }

 private:
  friend class Gate;

  // Sends the outcome. The call is destroyed when the caller has taken it, or is gone: perhaps
  // before this returns.
  virtual void Answer(const grpc::Status& status) = 0;

  const Parts parts_;
  ByteBudget::Share parsed_;  // of the message that was parsed last
  const absl::Time start_ = absl::Now();
  std::shared_ptr<const AccessKey> key_;  // null: none that is valid
  absl::Status key_error_;                // then why
  std::string collection_;
  std::string subject_;
  uint64_t rows_ = 0;
  uint64_t request_bytes_ = 0;
  bool builds_ = false;
  absl::Status ended_;                       // why a stream ended before its time
  std::optional<Admission::Ticket> ticket_;  // held until the answer is taken
  std::optional<IdleCalls::Watch> untaken_;  // from the answer on
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_CALL_H_
