#include "server/services/gate.h"

#include <exception>
#include <iterator>
#include <new>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "server/services/log.h"
#include "server/services/request.h"

namespace privatemail {
namespace {

// A peer may send a name of any length and content.
constexpr size_t kLoggedNameBytes = 64;
constexpr size_t kLoggedMessageBytes = 300;

absl::Status RunGuarded(const std::function<absl::Status()>& run) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the server has not enough memory for this request");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("unexpected: ", error.what()));
  }
}

const std::shared_ptr<const AccessKey>& Everyone() {
  static const auto everyone = [] {
    AccessKey key;
    key.grant.scopes = kAnyScope;
    return std::make_shared<const AccessKey>(std::move(key));
  }();
  return everyone;
}

std::string Escaped(absl::string_view name) {
  return absl::CHexEscape(name.substr(0, kLoggedNameBytes));
}

std::string CollectionOf(const Rpc& rpc, const google::protobuf::Message& message) {
  const auto* field = message.GetDescriptor()->FindFieldByName(rpc.collection);
  return message.GetReflection()->GetString(message, field);
}

}  // namespace

absl::Status Call::Admit(const google::protobuf::Message& message) {
  request_bytes_ += message.ByteSizeLong();
  if (rpc_.collection[0] == '\0') return absl::OkStatus();
  collection_ = CollectionOf(rpc_, message);
  PM_RETURN_IF_ERROR(CheckGiven(rpc_.collection, collection_));
  if (key_->Covers(collection_)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("key ", key_->id, " is not for collection '", Escaped(collection_), "'"));
}

absl::StatusOr<std::shared_ptr<const AccessKey>> Gate::Identify(
    const grpc::ServerContext& context) const {
  if (keys_ == nullptr) return Everyone();
  const auto [first, last] = context.client_metadata().equal_range("authorization");
  if (first == last) {
    return absl::UnauthenticatedError(
        "a key is needed, but none came: privatemail --key-file FILE sends one");
  }
  absl::string_view header(first->second.data(), first->second.size());
  // Two headers could be read in two ways, and another scheme's token is no key.
  if (std::next(first) != last || !absl::ConsumePrefix(&header, "Bearer ")) header = "";
  return keys_->Authenticate(header);
}

absl::Status Gate::Enter(Call* call) {
  PM_ASSIGN_OR_RETURN(call->key_, Identify(*call->context_));
  const AccessKey& key = *call->key_;
  if (!key.Has(call->rpc_.any_of) || (call->rpc_.all_collections && !key.CoversAll())) {
    return absl::PermissionDeniedError(
        absl::StrCat("key ", key.id, " is not for ", call->rpc_.name));
  }
  return rates_.Take(key, absl::Now());
}

grpc::Status Gate::Serve(grpc::ServerContext* context, absl::string_view rpc,
                         const google::protobuf::Message& request, const Handler& handler) {
  return ServeStream(context, rpc, [&](Call& call) -> absl::Status {
    PM_RETURN_IF_ERROR(call.Admit(request));
    return handler(call);
  });
}

grpc::Status Gate::ServeStream(grpc::ServerContext* context, absl::string_view rpc,
                               const Handler& handler) {
  const absl::Time start = absl::Now();
  Call call(FindRpc(rpc), context);
  const absl::Status status = RunGuarded([&]() -> absl::Status {
    PM_RETURN_IF_ERROR(Enter(&call));
    return handler(call);
  });
  const double milliseconds = absl::ToDoubleMilliseconds(absl::Now() - start);
  const bool faulty = absl::IsInternal(status) || absl::IsDataLoss(status);
  Log(faulty ? LogLevel::kError : LogLevel::kInfo,
      status.ok() ? "call" : status.message().substr(0, kLoggedMessageBytes),
      {{"rpc", std::string(rpc)},
       {"key", call.key_ == nullptr ? "" : call.key_->id},
       {"collection", call.collection_.substr(0, kLoggedNameBytes)},
       {"code", absl::StatusCodeToString(status.code())},
       {"ms", absl::StrFormat("%.1f", milliseconds)}});
  return ToGrpc(status);
}

}  // namespace privatemail
