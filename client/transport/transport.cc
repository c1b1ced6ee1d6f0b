#include "privatemail/transport.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/schemes/published_collection.h"
#include "client/transport/channel.h"
#include "client/transport/credentials.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "common/wire/parameters_proto.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "privatemail/v1/collections.grpc.pb.h"
#include "privatemail/v1/keys.grpc.pb.h"
#include "privatemail/v1/retrieval.grpc.pb.h"

namespace privatemail::client {
namespace {

// Lower bound on the server's retry-after: 0 would make a busy loop.
constexpr absl::Duration kMinWait = absl::Milliseconds(10);

std::optional<absl::Duration> ParseRetryAfter(const grpc::ClientContext& context) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto found = metadata.find(kRetryAfterMetadata);
  if (found == metadata.end()) return std::nullopt;
  int64_t milliseconds = 0;
  const absl::string_view text(found->second.data(), found->second.size());
  if (!absl::SimpleAtoi(text, &milliseconds) || milliseconds < 0) return std::nullopt;
  return std::max(kMinWait, absl::Milliseconds(milliseconds));
}

enum class OnRateLimit { kReturn, kWait };

// A call; `timeout` bounds all attempts together. OnRateLimit::kWait: repeated after the wait that
// a refusal for the key's rate names (RESOURCE_EXHAUSTED with kRetryAfterMetadata); returns the
// refusal if the wait exceeds `timeout`. Times depend on the server's answers only.
absl::Status CallWithDeadline(absl::Duration timeout, OnRateLimit on_rate_limit,
                              absl::FunctionRef<absl::Status(grpc::ClientContext*)> call) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(deadline));
    const absl::Status status = call(&context);
    if (on_rate_limit == OnRateLimit::kReturn || !absl::IsResourceExhausted(status)) return status;
    const std::optional<absl::Duration> wait = ParseRetryAfter(context);
    if (!wait.has_value() || absl::Now() + *wait >= deadline) return status;
    absl::SleepFor(*wait);
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

// The message of the pinned certificate's verifier within gRPC's error; empty if there is none.
std::string FingerprintMismatchIn(absl::string_view reason) {
  constexpr size_t kHexDigits = 64;
  const size_t start = reason.find(kFingerprintMismatch);
  const size_t trusted = reason.find(kTrustNames, start);
  if (start == reason.npos || trusted == reason.npos) return "";
  return std::string(reason.substr(start, trusted + kTrustNames.size() + kHexDigits - start));
}

// Whether the server is a host name and not an IP address.
bool NamesHost(absl::string_view server) {
  return !absl::StartsWith(server, "[") &&
         std::any_of(server.begin(), server.end(), [](char c) { return absl::ascii_isalpha(c); });
}

// A remedy for a reason of gRPC's that is known; otherwise the reason.
std::string Remedy(const ConnectionOptions& options, absl::string_view reason) {
  const std::string lower = absl::AsciiStrToLower(reason);
  const auto says = [&](absl::string_view part) { return absl::StrContains(lower, part); };
  if (std::string mismatch = FingerprintMismatchIn(reason); !mismatch.empty()) {
    return mismatch;
  }
  if (says("certificate verify failed")) {
    return "its certificate is not trusted: give --trust with the fingerprint that privatemaild "
           "printed, or --ca";
  }
  if (says("connection refused")) {
    return absl::StrCat("connection refused: is privatemaild running?",
                        NamesHost(options.server)
                            ? " (A name may have several addresses: give --server the right one.)"
                            : "");
  }
  if (says("is not in peer certificate")) {
    return absl::StrCat("its certificate is for other names (", reason,
                        "): give --server one that it names, or --trust its fingerprint");
  }
  if (says("wrong version number")) return "it does not speak TLS: does it run with --insecure?";
  const bool hung_up = says("socket closed") || says("connection reset") || says("broken pipe");
  if (hung_up && options.insecure) {
    return "it closed the connection: it probably speaks TLS, so replace --insecure by --trust or "
           "--ca";
  }
  if (options.certificate_file.empty() && (hung_up || says("certificate required"))) {
    return absl::StrCat("it closed the connection (", reason,
                        "): if it requires client certificates, give --cert and --cert-key");
  }
  return std::string(reason);
}

// Adds the server's name and a remedy to errors of the connection.
absl::Status Explain(const ConnectionOptions& options, const absl::Status& status) {
  // UNAVAILABLE from the server itself, about its store or collection.
  for (const absl::string_view begin :
       {"the store is unavailable", "what answers for the cells", "embedding_version "}) {
    if (absl::StartsWith(status.message(), begin)) return status;
  }
  if (status.code() == absl::StatusCode::kUnavailable) {
    return absl::UnavailableError(absl::StrCat(
        "server ", options.server, " cannot be reached: ", Remedy(options, status.message())));
  }
  // Cancelled by the server: cancellations of the client return their own status.
  if (status.code() == absl::StatusCode::kCancelled) {
    return absl::UnavailableError(
        absl::StrCat("server ", options.server, " ended the call: it is probably being stopped"));
  }
  if (status.code() == absl::StatusCode::kDeadlineExceeded) {
    return absl::DeadlineExceededError(absl::StrCat("server ", options.server,
                                                    " did not answer within ",
                                                    absl::FormatDuration(options.deadline)));
  }
  return status;
}

using CollectionsStub = v1::CollectionsService::Stub;
using KeysStub = v1::KeysService::Stub;
using RetrievalStub = v1::RetrievalService::Stub;

// One unary call of a service.
template <typename Service, typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Call(
    const ConnectionOptions& options, const std::shared_ptr<grpc::Channel>& channel,
    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
    const Request& request, OnRateLimit on_rate_limit = OnRateLimit::kReturn) {
  const auto stub = Service::NewStub(channel);
  Response response;
  PM_RETURN_IF_ERROR(Explain(
      options, CallWithDeadline(options.deadline, on_rate_limit, [&](grpc::ClientContext* context) {
        return FromGrpc(((*stub).*method)(context, request, &response));
      })));
  return response;
}

// All messages of a stream; a callback of make_accept sees each on arrival.
template <typename Message, typename Call, typename MakeAccept>
absl::StatusOr<std::vector<Message>> ReadAll(const ConnectionOptions& options, Call call,
                                             MakeAccept make_accept) {
  std::vector<Message> messages;
  absl::Status refused;
  const absl::Status read =
      CallWithDeadline(options.deadline, OnRateLimit::kWait, [&](grpc::ClientContext* context) {
        messages.clear();
        auto accept = make_accept();
        const auto reader = call(context);
        Message message;
        while (refused.ok() && reader->Read(&message)) {
          refused = accept(message);
          messages.push_back(std::move(message));
        }
        if (!refused.ok()) context->TryCancel();
        return FromGrpc(reader->Finish());
      });
  PM_RETURN_IF_ERROR(refused);
  PM_RETURN_IF_ERROR(Explain(options, read));
  return messages;
}

}  // namespace

absl::StatusOr<Transport> Transport::Create(const ConnectionOptions& options) {
  PM_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, MakeChannel(options));
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
                      Call<v1::RetrievalService>(options_, channel_, &RetrievalStub::GetCollection,
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
  const auto stub = v1::RetrievalService::NewStub(channel_);
  return ReadAll<v1::GetAnchorsResponse>(
      options_, [&](grpc::ClientContext* context) { return stub->GetAnchors(context, request); },
      [] {
        return [limit = AnchorByteLimit()](const auto& chunk) mutable { return limit.Add(chunk); };
      });
}

absl::StatusOr<std::vector<v1::RetrieveCellsResponse>> Transport::RetrieveCells(
    const v1::RetrieveCellsRequest& request,
    const std::function<AcceptCells()>& make_accept) const {
  const auto stub = v1::RetrievalService::NewStub(channel_);
  return ReadAll<v1::RetrieveCellsResponse>(
      options_, [&](grpc::ClientContext* context) { return stub->RetrieveCells(context, request); },
      make_accept);
}

absl::StatusOr<v1::RetrieveResponse> Transport::Retrieve(const v1::RetrieveRequest& request) const {
  return Call<v1::RetrievalService>(options_, channel_, &RetrievalStub::Retrieve, request,
                                    OnRateLimit::kWait);
}

absl::StatusOr<v1::CreateCollectionResponse> Transport::CreateCollection(
    const v1::CreateCollectionRequest& request) const {
  PM_RETURN_IF_ERROR(CheckSize("anchors", request));
  return Call<v1::CollectionsService>(options_, channel_, &CollectionsStub::CreateCollection,
                                      request);
}

absl::StatusOr<v1::ListCollectionsResponse> Transport::ListCollections() const {
  return Call<v1::CollectionsService>(options_, channel_, &CollectionsStub::ListCollections,
                                      v1::ListCollectionsRequest());
}

absl::StatusOr<v1::DeleteCollectionResponse> Transport::DeleteCollection(
    const std::string& name) const {
  v1::DeleteCollectionRequest request;
  request.set_name(name);
  return Call<v1::CollectionsService>(options_, channel_, &CollectionsStub::DeleteCollection,
                                      request);
}

absl::StatusOr<v1::DeleteItemsResponse> Transport::DeleteItems(
    const v1::DeleteItemsRequest& request) const {
  return Call<v1::CollectionsService>(options_, channel_, &CollectionsStub::DeleteItems, request);
}

absl::StatusOr<v1::GetItemsResponse> Transport::GetItems(const v1::GetItemsRequest& request) const {
  return Call<v1::CollectionsService>(options_, channel_, &CollectionsStub::GetItems, request);
}

absl::StatusOr<v1::ScrollItemsResponse> Transport::ScrollItems(
    const v1::ScrollItemsRequest& request) const {
  return Call<v1::CollectionsService>(options_, channel_, &CollectionsStub::ScrollItems, request);
}

absl::StatusOr<v1::CountItemsResponse> Transport::CountItems(
    const v1::CountItemsRequest& request) const {
  return Call<v1::CollectionsService>(options_, channel_, &CollectionsStub::CountItems, request);
}

absl::StatusOr<v1::UpsertItemsResponse> Transport::UpsertItems(
    const std::function<bool(v1::UpsertItemsRequest*)>& next) const {
  grpc::ClientContext context;
  v1::UpsertItemsResponse response;
  const auto stub = v1::CollectionsService::NewStub(channel_);
  const auto writer = stub->UpsertItems(&context, &response);
  v1::UpsertItemsRequest request;
  uint64_t sent = 0;
  while (next(&request)) {
    if (const absl::Status status = CheckSize("items", request); !status.ok()) {
      context.TryCancel();
      writer->Finish();
      return status;
    }
    sent += static_cast<uint64_t>(request.items_size());
    if (!writer->Write(request)) break;  // Finish returns why
    request.Clear();
  }
  writer->WritesDone();
  PM_RETURN_IF_ERROR(Explain(options_, FromGrpc(writer->Finish())));
  PM_RETURN_IF_ERROR(CheckUpsertCounts(sent, response));
  return response;
}

absl::StatusOr<v1::BuildEmbeddingResponse> Transport::BuildEmbedding(
    const std::string& name, const std::function<void(const v1::BuildEmbeddingResponse&)>& progress,
    bool accept_misalignment) const {
  grpc::ClientContext context;
  v1::BuildEmbeddingRequest request;
  request.set_collection(name);
  request.set_accept_misalignment(accept_misalignment);
  const auto stub = v1::CollectionsService::NewStub(channel_);
  const auto reader = stub->BuildEmbedding(&context, request);
  v1::BuildEmbeddingResponse response;
  while (reader->Read(&response)) progress(response);
  PM_RETURN_IF_ERROR(Explain(options_, FromGrpc(reader->Finish())));
  return response;
}

absl::Status Transport::SnapshotCollection(
    const std::string& name, const std::function<absl::Status(absl::string_view)>& take) const {
  grpc::ClientContext context;
  v1::SnapshotCollectionRequest request;
  request.set_collection(name);
  const auto stub = v1::CollectionsService::NewStub(channel_);
  const auto reader = stub->SnapshotCollection(&context, request);
  v1::SnapshotCollectionResponse response;
  absl::Status taken;
  while (taken.ok() && reader->Read(&response)) taken = take(response.data());
  if (!taken.ok()) context.TryCancel();
  const absl::Status status = FromGrpc(reader->Finish());
  return taken.ok() ? Explain(options_, status) : taken;
}

absl::StatusOr<v1::RestoreCollectionResponse> Transport::RestoreCollection(
    const std::string& name, const std::function<absl::StatusOr<bool>(std::string*)>& next) const {
  grpc::ClientContext context;
  v1::RestoreCollectionResponse response;
  const auto stub = v1::CollectionsService::NewStub(channel_);
  const auto writer = stub->RestoreCollection(&context, &response);
  v1::RestoreCollectionRequest request;
  request.set_collection(name);
  while (true) {
    const absl::StatusOr<bool> more = next(request.mutable_data());
    if (!more.ok()) {
      context.TryCancel();
      writer->Finish();
      return more.status();
    }
    if (!*more || !writer->Write(request)) break;  // after a failed Write, Finish returns why
  }
  writer->WritesDone();
  PM_RETURN_IF_ERROR(Explain(options_, FromGrpc(writer->Finish())));
  return response;
}

absl::StatusOr<v1::CreateKeyResponse> Transport::CreateKey(
    const v1::CreateKeyRequest& request) const {
  return Call<v1::KeysService>(options_, channel_, &KeysStub::CreateKey, request);
}

absl::StatusOr<v1::ListKeysResponse> Transport::ListKeys() const {
  return Call<v1::KeysService>(options_, channel_, &KeysStub::ListKeys, v1::ListKeysRequest());
}

absl::StatusOr<v1::RevokeKeyResponse> Transport::RevokeKey(const std::string& id) const {
  v1::RevokeKeyRequest request;
  request.set_id(id);
  return Call<v1::KeysService>(options_, channel_, &KeysStub::RevokeKey, request);
}

absl::StatusOr<bool> Transport::IsServing(const std::string& collection) const {
  using grpc::health::v1::HealthCheckResponse;
  grpc::health::v1::HealthCheckRequest request;
  if (!collection.empty()) request.set_service("privatemail.collection." + collection);
  PM_ASSIGN_OR_RETURN(const HealthCheckResponse response,
                      Call<grpc::health::v1::Health>(
                          options_, channel_, &grpc::health::v1::Health::Stub::Check, request));
  return response.status() == HealthCheckResponse::SERVING;
}

}  // namespace privatemail::client
