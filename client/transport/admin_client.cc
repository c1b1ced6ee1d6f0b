#include "privatemail/admin_client.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/transport/call.h"
#include "common/base/status_macros.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "privatemail/v1/collections.grpc.pb.h"
#include "privatemail/v1/keys.grpc.pb.h"

namespace privatemail::client {
namespace {

// A message that the server cannot parse may end its stream without an error.
absl::Status CheckUpsertCounts(uint64_t sent, const v1::UpsertItemsResponse& response) {
  const uint64_t answered =
      response.inserted() + response.updated() + response.unchanged() + response.rejected();
  if (answered == sent) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the server answered for ", answered, " of ", sent,
                                          " items: the others may not be stored"));
}

}  // namespace

absl::StatusOr<AdminClient> AdminClient::Create(const ConnectionOptions& options) {
  PM_ASSIGN_OR_RETURN(Transport transport, Transport::Create(options));
  return AdminClient(std::move(transport));
}

absl::StatusOr<v1::CreateCollectionResponse> AdminClient::CreateCollection(
    const v1::CreateCollectionRequest& request) const {
  PM_RETURN_IF_ERROR(CheckSize("anchors", request));
  return CallUnary<v1::CollectionsService, v1::CreateCollectionResponse>(
      options_, channel_, "CreateCollection", request);
}

absl::StatusOr<v1::ListCollectionsResponse> AdminClient::ListCollections() const {
  return CallUnary<v1::CollectionsService, v1::ListCollectionsResponse>(
      options_, channel_, "ListCollections", v1::ListCollectionsRequest());
}

absl::StatusOr<v1::DeleteCollectionResponse> AdminClient::DeleteCollection(
    const std::string& name) const {
  v1::DeleteCollectionRequest request;
  request.set_name(name);
  return CallUnary<v1::CollectionsService, v1::DeleteCollectionResponse>(
      options_, channel_, "DeleteCollection", request);
}

absl::StatusOr<v1::DeleteItemsResponse> AdminClient::DeleteItems(
    const v1::DeleteItemsRequest& request) const {
  return CallUnary<v1::CollectionsService, v1::DeleteItemsResponse>(options_, channel_,
                                                                    "DeleteItems", request);
}

absl::StatusOr<v1::GetItemsResponse> AdminClient::GetItems(
    const v1::GetItemsRequest& request) const {
  return CallUnary<v1::CollectionsService, v1::GetItemsResponse>(options_, channel_, "GetItems",
                                                                 request);
}

absl::StatusOr<v1::ScrollItemsResponse> AdminClient::ScrollItems(
    const v1::ScrollItemsRequest& request) const {
  return CallUnary<v1::CollectionsService, v1::ScrollItemsResponse>(options_, channel_,
                                                                    "ScrollItems", request);
}

absl::StatusOr<v1::CountItemsResponse> AdminClient::CountItems(
    const v1::CountItemsRequest& request) const {
  return CallUnary<v1::CollectionsService, v1::CountItemsResponse>(options_, channel_, "CountItems",
                                                                   request);
}

absl::StatusOr<v1::UpsertItemsResponse> AdminClient::UpsertItems(
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

absl::StatusOr<v1::BuildEmbeddingResponse> AdminClient::BuildEmbedding(
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

absl::Status AdminClient::SnapshotCollection(
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

absl::StatusOr<v1::RestoreCollectionResponse> AdminClient::RestoreCollection(
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

absl::StatusOr<v1::CreateKeyResponse> AdminClient::CreateKey(
    const v1::CreateKeyRequest& request) const {
  return CallUnary<v1::KeysService, v1::CreateKeyResponse>(options_, channel_, "CreateKey",
                                                           request);
}

absl::StatusOr<v1::ListKeysResponse> AdminClient::ListKeys() const {
  return CallUnary<v1::KeysService, v1::ListKeysResponse>(options_, channel_, "ListKeys",
                                                          v1::ListKeysRequest());
}

absl::StatusOr<v1::RevokeKeyResponse> AdminClient::RevokeKey(const std::string& id) const {
  v1::RevokeKeyRequest request;
  request.set_id(id);
  return CallUnary<v1::KeysService, v1::RevokeKeyResponse>(options_, channel_, "RevokeKey",
                                                           request);
}

absl::StatusOr<bool> AdminClient::CheckHealth(const std::string& service) const {
  using grpc::health::v1::HealthCheckResponse;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  const absl::StatusOr<HealthCheckResponse> response =
      CallUnary<grpc::health::v1::Health, HealthCheckResponse>(options_, channel_, "Check",
                                                               request);
  PM_RETURN_IF_ERROR(response.status());
  return response->status() == HealthCheckResponse::SERVING;
}

absl::StatusOr<bool> AdminClient::IsServing(const std::string& collection) const {
  return CheckHealth(collection.empty() ? "" : "privatemail.collection." + collection);
}

absl::StatusOr<bool> AdminClient::IsReadOnly() const {
  const absl::StatusOr<bool> writable = CheckHealth("privatemail.writes");
  if (absl::IsNotFound(writable.status())) return false;
  PM_RETURN_IF_ERROR(writable.status());
  return !*writable;
}

}  // namespace privatemail::client
