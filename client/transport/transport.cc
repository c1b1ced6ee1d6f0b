#include "privatemail/transport.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/transport/call.h"
#include "client/transport/channel.h"
#include "client/transport/credentials.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/rpc/status.h"
#include "privatemail/v1/retrieval.grpc.pb.h"

namespace privatemail::client {
namespace {

constexpr int64_t kMinMaxMemory = 1'000'000;  // takes every error and description of a collection

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

std::string ServerIdentity(const ConnectionOptions& options) {
  if (options.trust_fingerprint.empty()) return absl::AsciiStrToLower(options.server);
  return absl::AsciiStrToLower(absl::StrReplaceAll(options.trust_fingerprint, {{":", ""}}));
}

absl::StatusOr<Transport> Transport::Create(const ConnectionOptions& options) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("max_memory", options.max_memory, kMinMaxMemory,
                                         std::numeric_limits<int64_t>::max()));
  const double seconds = absl::ToDoubleSeconds(options.deadline);
  if (!(seconds > 0 && seconds < 1e9)) {
    return FieldError("deadline", "positive and below 1e9 seconds", absl::StrCat(seconds));
  }
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
  request.mutable_filter_paths()->Assign(details.filter_paths.begin(), details.filter_paths.end());
  absl::StatusOr<v1::GetCollectionResponse> response =
      CallUnary<v1::RetrievalService, v1::GetCollectionResponse>(
          options_, channel_, "GetCollection", request, OnRateLimit::kWait);
  // Budgets and caches are looked up by name: a wrong one would charge another collection.
  if (!response.ok() || response->name() == name) return response;
  return absl::DataLossError(absl::StrCat("collection: the server was asked for ", Printable(name),
                                          ", but answered for ", Printable(response->name())));
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
  return CallUnary<v1::RetrievalService, v1::RetrieveResponse>(options_, channel_, "Retrieve",
                                                               request, OnRateLimit::kWait);
}

absl::Status Transport::Stream(const std::string& method, const char* field,
                               const google::protobuf::Message& request,
                               google::protobuf::Message* part, const std::function<void()>& begin,
                               const std::function<absl::Status()>& accept) const {
  PM_RETURN_IF_ERROR(CheckSize(field, request));
  const auto attempt = [&](absl::Time deadline) {
    begin();
    Call call(channel_, method, options_, deadline);
    call.WriteLast(request);
    for (; call.Read(part); call.ForgetMessages()) {
      if (const absl::Status status = accept(); !status.ok()) call.Cancel(status);
    }
    return Attempted{FinishCall(options_, &call), call.retry_after()};
  };
  return CallWithDeadline(options_, OnRateLimit::kWait, attempt);
}

}  // namespace privatemail::client
