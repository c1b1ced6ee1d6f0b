#include "privatemail/transport.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/transport/call.h"
#include "client/transport/channel.h"
#include "client/transport/connection_error.h"
#include "client/transport/credentials.h"
#include "common/base/cancellation.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/rpc/status.h"
#include "common/wire/parameters_proto.h"
#include "common/wire/snapshot.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "privatemail/v1/collections.grpc.pb.h"
#include "privatemail/v1/encrypted.grpc.pb.h"
#include "privatemail/v1/keys.grpc.pb.h"
#include "privatemail/v1/retrieval.grpc.pb.h"

namespace privatemail::client {
namespace {

constexpr int64_t kMinMaxMemory = 1'000'000;  // takes every error and description of a collection

enum class OnRateLimit { kReturn, kWait };

// The end of one attempt of a call.
struct Attempted {
  absl::Status status;
  std::optional<absl::Duration> retry_after;
};

// Attempts of a call; the options' deadline bounds all together. OnRateLimit::kWait: repeated after
// the wait that a refusal for the key's rate names (RESOURCE_EXHAUSTED with kRetryAfterMetadata);
// returns the refusal if the wait exceeds the deadline. Times depend on the server's answers only.
absl::Status CallWithDeadline(const ConnectionOptions& options, OnRateLimit on_rate_limit,
                              absl::FunctionRef<Attempted(absl::Time deadline)> attempt) {
  const absl::Time deadline = absl::Now() + options.deadline;
  while (true) {
    const auto [status, wait] = attempt(deadline);
    const bool repeat = on_rate_limit == OnRateLimit::kWait && absl::IsResourceExhausted(status);
    if (!repeat || !wait.has_value() || absl::Now() + *wait >= deadline) return status;
    PM_RETURN_IF_ERROR(SleepUnlessCancelled(*wait, options.cancelled));
  }
}

// gRPC's own error does not name the field.
absl::Status CheckSize(const char* field, const google::protobuf::MessageLite& message) {
  const size_t bytes = message.ByteSizeLong();
  if (bytes <= static_cast<size_t>(kMaxMessageBytes)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(field, " make a message of ", bytes,
                                                   " bytes, expected at most ", kMaxMessageBytes));
}

// A message that the server cannot parse may end its stream without an error.
absl::Status CheckUpsertCounts(uint64_t sent, const v1::UpsertItemsResponse& response) {
  const uint64_t answered =
      response.inserted() + response.updated() + response.unchanged() + response.rejected();
  if (answered == sent) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the server answered for ", answered, " of ", sent,
                                          " items: the others may not be stored"));
}

// Ends the call. Errors of the client itself stay as they are.
absl::Status FinishCall(const ConnectionOptions& options, Call* call) {
  const absl::Status status = call->Finish();
  return call->cancelled() ? status : ExplainConnectionError(options, status);
}

// "/privatemail.v1.KeysService/ListKeys"
template <typename Service>
std::string MethodOf(absl::string_view name) {
  return absl::StrCat("/", Service::service_full_name(), "/", name);
}

// One unary call of a service.
template <typename Response>
absl::StatusOr<Response> CallUnary(const ConnectionOptions& options,
                                   const std::shared_ptr<grpc::Channel>& channel,
                                   const std::string& method,
                                   const google::protobuf::Message& request,
                                   OnRateLimit on_rate_limit = OnRateLimit::kReturn) {
  Response response;
  const auto attempt = [&](absl::Time deadline) {
    Call call(channel, method, options, deadline);
    call.WriteLast(request);
    call.Read(&response);
    return Attempted{FinishCall(options, &call), call.retry_after()};
  };
  PM_RETURN_IF_ERROR(CallWithDeadline(options, on_rate_limit, attempt));
  return response;
}

// All messages of a stream; a callback of make_accept sees each on arrival.
template <typename Message, typename MakeAccept>
absl::StatusOr<std::vector<Message>> ReadAll(const ConnectionOptions& options,
                                             const std::shared_ptr<grpc::Channel>& channel,
                                             const std::string& method,
                                             const google::protobuf::Message& request,
                                             MakeAccept make_accept) {
  std::vector<Message> messages;
  const auto attempt = [&](absl::Time deadline) {
    messages.clear();
    auto accept = make_accept();
    Call call(channel, method, options, deadline);
    call.WriteLast(request);
    for (Message message; call.Read(&message); messages.push_back(std::move(message))) {
      if (const absl::Status status = accept(message); !status.ok()) call.Cancel(status);
    }
    return Attempted{FinishCall(options, &call), call.retry_after()};
  };
  PM_RETURN_IF_ERROR(CallWithDeadline(options, OnRateLimit::kWait, attempt));
  return messages;
}

}  // namespace

absl::StatusOr<Transport> Transport::Create(const ConnectionOptions& options) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("--max-memory", options.max_memory, kMinMaxMemory,
                                         std::numeric_limits<int64_t>::max()));
  PM_ASSIGN_OR_RETURN(const std::string access_key, ReadAccessKey(options));
  PM_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, MakeChannel(options, access_key));
  return Transport(options, std::move(channel));
}

absl::StatusOr<v1::GetCollectionResponse> Transport::GetCollection(
    const std::string& name, CollectionDetails details) const {
  v1::GetCollectionRequest request;
  request.set_collection(name);
  request.set_with_changes(details.changes);
  request.set_with_quality(details.quality);
  request.set_parameters_level(kParametersLevel);
  PM_ASSIGN_OR_RETURN(v1::GetCollectionResponse response,
                      CallUnary<v1::GetCollectionResponse>(
                          options_, channel_, MethodOf<v1::RetrievalService>("GetCollection"),
                          request, OnRateLimit::kWait));
  // Budgets and caches are looked up by name: a wrong one would charge another collection.
  if (response.name() == name) return response;
  return absl::DataLossError(absl::StrCat("collection: the server was asked for ", Printable(name),
                                          ", but answered for ", Printable(response.name())));
}

absl::StatusOr<std::vector<v1::GetAnchorsResponse>> Transport::GetAnchors(
    const std::string& name, const std::string& fingerprint) const {
  v1::GetAnchorsRequest request;
  request.set_collection(name);
  request.set_fingerprint(fingerprint);
  return ReadAll<v1::GetAnchorsResponse>(
      options_, channel_, MethodOf<v1::RetrievalService>("GetAnchors"), request,
      [] { return [](const v1::GetAnchorsResponse&) { return absl::OkStatus(); }; });
}

absl::StatusOr<std::vector<v1::RetrieveCellsResponse>> Transport::RetrieveCells(
    const v1::RetrieveCellsRequest& request,
    const std::function<AcceptCells()>& make_accept) const {
  return ReadAll<v1::RetrieveCellsResponse>(
      options_, channel_, MethodOf<v1::RetrievalService>("RetrieveCells"), request, make_accept);
}

absl::StatusOr<v1::RetrieveResponse> Transport::Retrieve(const v1::RetrieveRequest& request) const {
  return CallUnary<v1::RetrieveResponse>(
      options_, channel_, MethodOf<v1::RetrievalService>("Retrieve"), request, OnRateLimit::kWait);
}

absl::StatusOr<EncryptedAnswer> Transport::SearchEncrypted(
    const v1::SearchEncryptedRequest& request) const {
  PM_RETURN_IF_ERROR(CheckSize("queries", request));
  std::optional<EncryptedAnswer> answer;
  const auto attempt = [&](absl::Time deadline) {
    answer.emplace(request, options_.max_memory);
    Call call(channel_, MethodOf<v1::EncryptedService>("SearchEncrypted"), options_, deadline);
    call.WriteLast(request);
    // The answer counts what it keeps of a message.
    for (v1::SearchEncryptedResponse message; call.Read(&message); call.ForgetMessages()) {
      const absl::Status status = answer->Add(std::move(message));
      if (!status.ok()) call.Cancel(status);
    }
    return Attempted{FinishCall(options_, &call), call.retry_after()};
  };
  PM_RETURN_IF_ERROR(CallWithDeadline(options_, OnRateLimit::kWait, attempt));
  PM_RETURN_IF_ERROR(answer->CheckComplete());
  return *std::move(answer);
}

absl::StatusOr<v1::CreateCollectionResponse> Transport::CreateCollection(
    const v1::CreateCollectionRequest& request) const {
  PM_RETURN_IF_ERROR(CheckSize("anchors", request));
  return CallUnary<v1::CreateCollectionResponse>(
      options_, channel_, MethodOf<v1::CollectionsService>("CreateCollection"), request);
}

absl::StatusOr<v1::ListCollectionsResponse> Transport::ListCollections() const {
  return CallUnary<v1::ListCollectionsResponse>(options_, channel_,
                                                MethodOf<v1::CollectionsService>("ListCollections"),
                                                v1::ListCollectionsRequest());
}

absl::StatusOr<v1::DeleteCollectionResponse> Transport::DeleteCollection(
    const std::string& name) const {
  v1::DeleteCollectionRequest request;
  request.set_name(name);
  return CallUnary<v1::DeleteCollectionResponse>(
      options_, channel_, MethodOf<v1::CollectionsService>("DeleteCollection"), request);
}

absl::StatusOr<v1::DeleteItemsResponse> Transport::DeleteItems(
    const v1::DeleteItemsRequest& request) const {
  return CallUnary<v1::DeleteItemsResponse>(
      options_, channel_, MethodOf<v1::CollectionsService>("DeleteItems"), request);
}

absl::StatusOr<v1::GetItemsResponse> Transport::GetItems(const v1::GetItemsRequest& request) const {
  return CallUnary<v1::GetItemsResponse>(options_, channel_,
                                         MethodOf<v1::CollectionsService>("GetItems"), request);
}

absl::StatusOr<v1::ScrollItemsResponse> Transport::ScrollItems(
    const v1::ScrollItemsRequest& request) const {
  return CallUnary<v1::ScrollItemsResponse>(
      options_, channel_, MethodOf<v1::CollectionsService>("ScrollItems"), request);
}

absl::StatusOr<v1::CountItemsResponse> Transport::CountItems(
    const v1::CountItemsRequest& request) const {
  return CallUnary<v1::CountItemsResponse>(options_, channel_,
                                           MethodOf<v1::CollectionsService>("CountItems"), request);
}

absl::StatusOr<v1::UpsertItemsResponse> Transport::UpsertItems(
    const std::function<bool(v1::UpsertItemsRequest*)>& next) const {
  Call call(channel_, MethodOf<v1::CollectionsService>("UpsertItems"), options_,
            absl::InfiniteFuture());
  v1::UpsertItemsRequest request;
  uint64_t sent = 0;
  while (next(&request)) {
    if (const absl::Status status = CheckSize("items", request); !status.ok()) {
      call.Cancel(status);
      break;
    }
    sent += static_cast<uint64_t>(request.items_size());
    if (!call.Write(request)) break;  // Finish returns why
    request.Clear();
  }
  call.WritesDone();
  v1::UpsertItemsResponse response;
  call.Read(&response);
  PM_RETURN_IF_ERROR(FinishCall(options_, &call));
  PM_RETURN_IF_ERROR(CheckUpsertCounts(sent, response));
  return response;
}

absl::StatusOr<v1::BuildEmbeddingResponse> Transport::BuildEmbedding(
    const std::string& name, const std::function<void(const v1::BuildEmbeddingResponse&)>& progress,
    bool accept_misalignment) const {
  v1::BuildEmbeddingRequest request;
  request.set_collection(name);
  request.set_accept_misalignment(accept_misalignment);
  Call call(channel_, MethodOf<v1::CollectionsService>("BuildEmbedding"), options_,
            absl::InfiniteFuture());
  call.WriteLast(request);
  v1::BuildEmbeddingResponse response;
  while (call.Read(&response)) {
    progress(response);
    call.ForgetMessages();
  }
  PM_RETURN_IF_ERROR(FinishCall(options_, &call));
  return response;
}

absl::Status Transport::SnapshotCollection(
    const std::string& name, const std::function<absl::Status(absl::string_view)>& take) const {
  v1::SnapshotCollectionRequest request;
  request.set_collection(name);
  Call call(channel_, MethodOf<v1::CollectionsService>("SnapshotCollection"), options_,
            absl::InfiniteFuture());
  call.WriteLast(request);
  for (v1::SnapshotCollectionResponse response; call.Read(&response); call.ForgetMessages()) {
    if (const absl::Status taken = take(response.data()); !taken.ok()) call.Cancel(taken);
  }
  return FinishCall(options_, &call);
}

absl::StatusOr<v1::RestoreCollectionResponse> Transport::RestoreCollection(
    const std::string& name, const std::function<absl::StatusOr<bool>(std::string*)>& next) const {
  Call call(channel_, MethodOf<v1::CollectionsService>("RestoreCollection"), options_,
            absl::InfiniteFuture());
  v1::RestoreCollectionRequest request;
  request.set_collection(name);
  while (true) {
    const absl::StatusOr<bool> more = next(request.mutable_data());
    if (!more.ok()) call.Cancel(more.status());
    if (!more.ok() || !*more || !call.Write(request)) break;  // Finish returns why
  }
  call.WritesDone();
  v1::RestoreCollectionResponse response;
  call.Read(&response);
  PM_RETURN_IF_ERROR(FinishCall(options_, &call));
  return response;
}

absl::StatusOr<v1::CreateKeyResponse> Transport::CreateKey(
    const v1::CreateKeyRequest& request) const {
  return CallUnary<v1::CreateKeyResponse>(options_, channel_,
                                          MethodOf<v1::KeysService>("CreateKey"), request);
}

absl::StatusOr<v1::ListKeysResponse> Transport::ListKeys() const {
  return CallUnary<v1::ListKeysResponse>(options_, channel_, MethodOf<v1::KeysService>("ListKeys"),
                                         v1::ListKeysRequest());
}

absl::StatusOr<v1::RevokeKeyResponse> Transport::RevokeKey(const std::string& id) const {
  v1::RevokeKeyRequest request;
  request.set_id(id);
  return CallUnary<v1::RevokeKeyResponse>(options_, channel_,
                                          MethodOf<v1::KeysService>("RevokeKey"), request);
}

absl::StatusOr<bool> Transport::CheckHealth(const std::string& service) const {
  using grpc::health::v1::HealthCheckResponse;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  PM_ASSIGN_OR_RETURN(
      const HealthCheckResponse response,
      CallUnary<HealthCheckResponse>(options_, channel_,
                                     MethodOf<grpc::health::v1::Health>("Check"), request));
  return response.status() == HealthCheckResponse::SERVING;
}

absl::StatusOr<bool> Transport::IsServing(const std::string& collection) const {
  return CheckHealth(collection.empty() ? "" : "privatemail.collection." + collection);
}

absl::StatusOr<bool> Transport::IsReadOnly() const {
  const absl::StatusOr<bool> writable = CheckHealth("privatemail.writes");
  if (absl::IsNotFound(writable.status())) return false;
  PM_RETURN_IF_ERROR(writable.status());
  return !*writable;
}

}  // namespace privatemail::client
