// One call under way.
#ifndef PRIVATEMAIL_SERVER_SERVICES_CALL_H_
#define PRIVATEMAIL_SERVER_SERVICES_CALL_H_

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/sync_stream.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/access/access_key.h"
#include "server/access/limits.h"
#include "server/services/idle_streams.h"
#include "server/services/metrics.h"
#include "server/services/rpc_table.h"

namespace privatemail {

// What a handler knows of its caller, and what it tells the logs. Not thread-safe: its handler's
// alone.
class Call {
 public:
  Call(const Rpc& rpc, const Limits& limits, grpc::ServerContext* context, Metrics* metrics,
       IdleStreams* idle)
      : rpc_(rpc), limits_(limits), context_(context), metrics_(metrics), idle_(idle) {}

  // Of every message of the caller, before anything is done with it: may the key use this
  // collection? PERMISSION_DENIED, the same whether the collection exists or not. INVALID_ARGUMENT:
  // the collection is not named. The gate does it for calls with a single message.
  absl::Status Admit(const google::protobuf::Message& message);

  // The same for a collection that no field of the message names. UNAUTHENTICATED: the RPC needs no
  // key, and none that is valid came.
  absl::Status RequireCollection(absl::string_view name);

  // Whether the key covers a collection that the caller has not named.
  bool Covers(absl::string_view collection) const { return key_->Covers(collection); }

  // As they were when the call began.
  const Limits& limits() const { return limits_; }

  // The caller is gone or its deadline has passed: nobody waits for the result.
  bool Cancelled() const { return context_->IsCancelled(); }

  // Waits for the caller's next message. False: there is none; StreamStatus says why.
  template <typename Message>
  bool Read(grpc::ServerReader<Message>* reader, Message* message) {
    return Await([&] { return reader->Read(message); });
  }

  // Waits until the caller has taken enough to be sent more. False: it takes no more; StreamStatus
  // says why.
  template <typename Message>
  bool Write(grpc::ServerWriter<Message>* writer, const Message& message) {
    return Await([&] { return writer->Write(message); });
  }

  // DEADLINE_EXCEEDED naming limit and value: the caller let this call wait for longer than
  // stream_idle_seconds. CANCELLED: it is gone. OK: neither.
  absl::Status StreamStatus() const;

  // For the logs: how many items, anchors or matches went in or out, or were counted. Never which.
  void AddRows(uint64_t count) { rows_ += count; }

  // For the metrics: the share of a build that is done, 0 to 1.
  void ReportBuild(double done) {
    builds_ = true;
    metrics_->SetBuildProgress(collection_, done);
  }

 private:
  friend class Gate;

  bool Await(absl::FunctionRef<bool()> wait);

  const Rpc& rpc_;
  const Limits limits_;
  grpc::ServerContext* const context_;
  Metrics* const metrics_;
  IdleStreams* const idle_;
  std::shared_ptr<const AccessKey> key_;  // null: none that is valid
  absl::Status key_error_;                // then why
  std::string collection_;
  uint64_t rows_ = 0;
  uint64_t request_bytes_ = 0;
  bool builds_ = false;
  bool timed_out_ = false;  // the caller let it wait for too long
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_SERVICES_CALL_H_
