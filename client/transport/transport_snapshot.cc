// Whole collections over the network.
#include <grpcpp/grpcpp.h>

#include "privatemail/transport.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "privatemail/v1/collections.grpc.pb.h"

namespace privatemail::client {

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
  return taken.ok() ? Explain(status) : taken;
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
    if (!*more || !writer->Write(request)) break;  // where the server has ended it, Finish says why
  }
  writer->WritesDone();
  PM_RETURN_IF_ERROR(Explain(FromGrpc(writer->Finish())));
  return response;
}

}  // namespace privatemail::client
