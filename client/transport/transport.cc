#include "privatemail/transport.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/transport/anchor_limit.h"
#include "client/transport/channel.h"
#include "client/transport/credentials.h"
#include "client/transport/paced_call.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "privatemail/v1/collections.grpc.pb.h"
#include "privatemail/v1/keys.grpc.pb.h"
#include "privatemail/v1/retrieval.grpc.pb.h"

namespace privatemail::client {
namespace {

void SetDeadline(const ConnectionOptions& options, grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + options.deadline));
}

// gRPC would say the same without naming what is too large.
absl::Status CheckSize(const char* field, const google::protobuf::MessageLite& message) {
  const size_t bytes = message.ByteSizeLong();
  if (bytes <= static_cast<size_t>(kMaxMessageBytes)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(field, " make a message of ", bytes,
                                                   " bytes, expected at most ", kMaxMessageBytes));
}

// A message that a server cannot read may end its stream as the last one does.
absl::Status CheckAnswered(uint64_t sent, const v1::UpsertItemsResponse& response) {
  const uint64_t answered =
      response.inserted() + response.updated() + response.unchanged() + response.rejected();
  if (answered == sent) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the server answered for ", answered, " of ", sent,
                                          " items: the others may not be stored"));
}

// The last words of the verifier of pinned certificates, out of what gRPC wraps around them.
std::string FingerprintMismatchIn(absl::string_view reason) {
  constexpr size_t kHexDigits = 64;
  const size_t start = reason.find(kFingerprintMismatch);
  const size_t trusted = reason.find(kTrustNames, start);
  if (start == reason.npos || trusted == reason.npos) return "";
  return std::string(reason.substr(start, trusted + kTrustNames.size() + kHexDigits - start));
}

// Not an address.
bool NamesHost(absl::string_view server) {
  return !absl::StartsWith(server, "[") &&
         std::any_of(server.begin(), server.end(), [](char c) { return absl::ascii_isalpha(c); });
}

// What to do about it, where gRPC's reason allows a guess; otherwise the reason.
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
                            ? " (Of several addresses of a name one may answer so, and another "
                              "fail otherwise: give --server the one that is meant.)"
                            : "");
  }
  if (says("is not in peer certificate")) {
    return absl::StrCat("its certificate is for other names (", reason,
                        "): give --server one that it names, or --trust its fingerprint");
  }
  if (says("wrong version number")) return "it does not speak TLS: is it run with --insecure?";
  const bool hung_up = says("socket closed") || says("connection reset") || says("broken pipe");
  if (hung_up && options.insecure) {
    return "it closed the connection: it probably speaks TLS, so leave --insecure away and give "
           "--trust or --ca";
  }
  if (options.certificate_file.empty() && (hung_up || says("certificate required"))) {
    return absl::StrCat("it closed the connection (", reason,
                        "): if it demands certificates of its clients, give --cert and --cert-key");
  }
  return std::string(reason);
}

}  // namespace

absl::StatusOr<Transport> Transport::Create(const ConnectionOptions& options) {
  PM_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, MakeChannel(options));
  return Transport(options, std::move(channel));
}

absl::Status Transport::Explain(const absl::Status& status) const {
  // The server was reached, and says so of what is behind it.
  for (const absl::string_view begin :
       {"the store is unavailable", "what answers for the cells", "embedding_version "}) {
    if (absl::StartsWith(status.message(), begin)) return status;
  }
  if (status.code() == absl::StatusCode::kUnavailable) {
    return absl::UnavailableError(absl::StrCat(
        "server ", options_.server, " cannot be reached: ", Remedy(options_, status.message())));
  }
  // A call that is cancelled here has a status of its own.
  if (status.code() == absl::StatusCode::kCancelled) {
    return absl::UnavailableError(absl::StrCat(
        "server ", options_.server, " ended the call, as one does that is being stopped"));
  }
  if (status.code() == absl::StatusCode::kDeadlineExceeded) {
    return absl::DeadlineExceededError(absl::StrCat("server ", options_.server,
                                                    " did not answer within ",
                                                    absl::FormatDuration(options_.deadline)));
  }
  return status;
}

template <typename Message, typename Call, typename MakeAccept>
absl::StatusOr<std::vector<Message>> Transport::ReadAll(Call call, MakeAccept make_accept) const {
  std::vector<Message> messages;
  absl::Status refused;
  const absl::Status read = CallWithRateLimitRetry(options_.deadline, [&](grpc::ClientContext* context) {
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
  PM_RETURN_IF_ERROR(Explain(read));
  return messages;
}

absl::StatusOr<v1::GetCollectionResponse> Transport::GetCollection(const std::string& name,
                                                                   bool with_changes) const {
  v1::GetCollectionRequest request;
  request.set_collection(name);
  request.set_with_changes(with_changes);
  v1::GetCollectionResponse response;
  const auto stub = v1::RetrievalService::NewStub(channel_);
  PM_RETURN_IF_ERROR(Explain(CallWithRateLimitRetry(options_.deadline, [&](grpc::ClientContext* context) {
    return FromGrpc(stub->GetCollection(context, request, &response));
  })));
  // Budgets and what was received are found by names: an answer has none that was not asked for.
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
      [&](grpc::ClientContext* context) { return stub->GetAnchors(context, request); },
      [] {
        return [limit = AnchorByteLimit()](const auto& chunk) mutable { return limit.Add(chunk); };
      });
}

absl::StatusOr<std::vector<v1::RetrieveCellsResponse>> Transport::RetrieveCells(
    const v1::RetrieveCellsRequest& request, const std::function<AcceptCells()>& accept) const {
  const auto stub = v1::RetrievalService::NewStub(channel_);
  return ReadAll<v1::RetrieveCellsResponse>(
      [&](grpc::ClientContext* context) { return stub->RetrieveCells(context, request); }, accept);
}

absl::StatusOr<v1::RetrieveResponse> Transport::Retrieve(const v1::RetrieveRequest& request) const {
  const auto stub = v1::RetrievalService::NewStub(channel_);
  v1::RetrieveResponse response;
  PM_RETURN_IF_ERROR(Explain(CallWithRateLimitRetry(options_.deadline, [&](grpc::ClientContext* context) {
    return FromGrpc(stub->Retrieve(context, request, &response));
  })));
  return response;
}

absl::StatusOr<v1::CreateCollectionResponse> Transport::CreateCollection(
    const v1::CreateCollectionRequest& request) const {
  PM_RETURN_IF_ERROR(CheckSize("anchors", request));
  grpc::ClientContext context;
  SetDeadline(options_, &context);
  v1::CreateCollectionResponse response;
  PM_RETURN_IF_ERROR(Explain(FromGrpc(
      v1::CollectionsService::NewStub(channel_)->CreateCollection(&context, request, &response))));
  return response;
}

absl::StatusOr<v1::ListCollectionsResponse> Transport::ListCollections() const {
  grpc::ClientContext context;
  SetDeadline(options_, &context);
  v1::ListCollectionsResponse response;
  PM_RETURN_IF_ERROR(Explain(FromGrpc(
      v1::CollectionsService::NewStub(channel_)->ListCollections(&context, {}, &response))));
  return response;
}

absl::StatusOr<v1::DeleteCollectionResponse> Transport::DeleteCollection(
    const std::string& name) const {
  grpc::ClientContext context;
  SetDeadline(options_, &context);
  v1::DeleteCollectionRequest request;
  request.set_name(name);
  v1::DeleteCollectionResponse response;
  PM_RETURN_IF_ERROR(Explain(FromGrpc(
      v1::CollectionsService::NewStub(channel_)->DeleteCollection(&context, request, &response))));
  return response;
}

absl::StatusOr<v1::DeleteItemsResponse> Transport::DeleteItems(
    const v1::DeleteItemsRequest& request) const {
  grpc::ClientContext context;
  SetDeadline(options_, &context);
  v1::DeleteItemsResponse response;
  PM_RETURN_IF_ERROR(Explain(FromGrpc(
      v1::CollectionsService::NewStub(channel_)->DeleteItems(&context, request, &response))));
  return response;
}

absl::StatusOr<v1::GetItemsResponse> Transport::GetItems(const v1::GetItemsRequest& request) const {
  grpc::ClientContext context;
  SetDeadline(options_, &context);
  v1::GetItemsResponse response;
  PM_RETURN_IF_ERROR(Explain(
      FromGrpc(v1::CollectionsService::NewStub(channel_)->GetItems(&context, request, &response))));
  return response;
}

absl::StatusOr<v1::ScrollItemsResponse> Transport::ScrollItems(
    const v1::ScrollItemsRequest& request) const {
  grpc::ClientContext context;
  SetDeadline(options_, &context);
  v1::ScrollItemsResponse response;
  PM_RETURN_IF_ERROR(Explain(FromGrpc(
      v1::CollectionsService::NewStub(channel_)->ScrollItems(&context, request, &response))));
  return response;
}

absl::StatusOr<v1::CountItemsResponse> Transport::CountItems(
    const v1::CountItemsRequest& request) const {
  grpc::ClientContext context;
  SetDeadline(options_, &context);
  v1::CountItemsResponse response;
  PM_RETURN_IF_ERROR(Explain(FromGrpc(
      v1::CollectionsService::NewStub(channel_)->CountItems(&context, request, &response))));
  return response;
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
    if (!writer->Write(request)) break;  // the server has ended the call: Finish says why
    request.Clear();
  }
  writer->WritesDone();
  PM_RETURN_IF_ERROR(Explain(FromGrpc(writer->Finish())));
  PM_RETURN_IF_ERROR(CheckAnswered(sent, response));
  return response;
}

absl::StatusOr<v1::BuildEmbeddingResponse> Transport::BuildEmbedding(
    const std::string& name,
    const std::function<void(const v1::BuildEmbeddingResponse&)>& progress) const {
  grpc::ClientContext context;
  v1::BuildEmbeddingRequest request;
  request.set_collection(name);
  const auto stub = v1::CollectionsService::NewStub(channel_);
  const auto reader = stub->BuildEmbedding(&context, request);
  v1::BuildEmbeddingResponse response;
  while (reader->Read(&response)) progress(response);
  PM_RETURN_IF_ERROR(Explain(FromGrpc(reader->Finish())));
  return response;
}

absl::StatusOr<v1::CreateKeyResponse> Transport::CreateKey(
    const v1::CreateKeyRequest& request) const {
  grpc::ClientContext context;
  SetDeadline(options_, &context);
  v1::CreateKeyResponse response;
  PM_RETURN_IF_ERROR(Explain(
      FromGrpc(v1::KeysService::NewStub(channel_)->CreateKey(&context, request, &response))));
  return response;
}

absl::StatusOr<v1::ListKeysResponse> Transport::ListKeys() const {
  grpc::ClientContext context;
  SetDeadline(options_, &context);
  v1::ListKeysResponse response;
  PM_RETURN_IF_ERROR(
      Explain(FromGrpc(v1::KeysService::NewStub(channel_)->ListKeys(&context, {}, &response))));
  return response;
}

absl::StatusOr<v1::RevokeKeyResponse> Transport::RevokeKey(const std::string& id) const {
  grpc::ClientContext context;
  SetDeadline(options_, &context);
  v1::RevokeKeyRequest request;
  request.set_id(id);
  v1::RevokeKeyResponse response;
  PM_RETURN_IF_ERROR(Explain(
      FromGrpc(v1::KeysService::NewStub(channel_)->RevokeKey(&context, request, &response))));
  return response;
}

absl::StatusOr<bool> Transport::IsServing(const std::string& collection) const {
  grpc::ClientContext context;
  SetDeadline(options_, &context);
  grpc::health::v1::HealthCheckRequest request;
  if (!collection.empty()) request.set_service("privatemail.collection." + collection);
  grpc::health::v1::HealthCheckResponse response;
  PM_RETURN_IF_ERROR(Explain(
      FromGrpc(grpc::health::v1::Health::NewStub(channel_)->Check(&context, request, &response))));
  return response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
}

}  // namespace privatemail::client
