#include "server/services/gate.h"

#include <grpc/grpc_security_constants.h>

#include <exception>
#include <iterator>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "server/services/log.h"

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

bool IsOpen(const Rpc& rpc) { return rpc.any_of == 0; }

std::string CertificateOf(const grpc::ServerContext& context) {
  const auto names = context.auth_context()->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  return names.empty() ? "" : std::string(names[0].data(), names[0].size());
}

}  // namespace

absl::StatusOr<std::shared_ptr<const AccessKey>> Gate::Identify(
    const grpc::ServerContext& context) const {
  if (parts_.keys == nullptr) return Everyone();
  const auto [first, last] = context.client_metadata().equal_range("authorization");
  if (first == last) {
    return absl::UnauthenticatedError(
        "a key is needed, but none came: privatemail --key-file FILE sends one");
  }
  absl::string_view header(first->second.data(), first->second.size());
  // Two headers could be read in two ways, and another scheme's token is no key.
  if (std::next(first) != last || !absl::ConsumePrefix(&header, "Bearer ")) header = "";
  return parts_.keys->Authenticate(header);
}

absl::Status Gate::Authorise(Call* call, const google::protobuf::Message* request) const {
  absl::StatusOr<std::shared_ptr<const AccessKey>> key = Identify(*call->context_);
  call->key_error_ = key.status();
  if (key.ok()) call->key_ = *std::move(key);
  if (!IsOpen(call->rpc_)) {
    PM_RETURN_IF_ERROR(call->key_error_);
    const AccessKey& known = *call->key_;
    if (!known.Has(call->rpc_.any_of) || (call->rpc_.all_collections && !known.CoversAll())) {
      return absl::PermissionDeniedError(
          absl::StrCat("key ", known.id, " is not for ", call->rpc_.name));
    }
  }
  return request == nullptr ? absl::OkStatus() : call->Admit(*request);
}

absl::Status Gate::RunCall(Call* call, const google::protobuf::Message* request,
                           const Handler& handler) {
  PM_RETURN_IF_ERROR(Authorise(call, request));
  // A probe of a busy server learns how it is, not that it is busy.
  if (IsOpen(call->rpc_)) return handler(*call);
  if (absl::Status status = rates_.Take(*call->key_, RateLimits::Clock::now()); !status.ok()) {
    parts_.metrics->CountRejection("rate");
    return status;
  }
  const absl::StatusOr<Admission::Place> place =
      parts_.admission->Enter([&] { return call->Cancelled(); });
  if (absl::IsResourceExhausted(place.status())) parts_.metrics->CountRejection("concurrency");
  PM_RETURN_IF_ERROR(place.status());
  if (call->Cancelled()) return absl::CancelledError("the caller no longer waits for an answer");
  const absl::Status status = handler(*call);
  if (absl::IsResourceExhausted(status)) parts_.metrics->CountRejection("size");
  return status;
}

grpc::Status Gate::Run(grpc::ServerContext* context, absl::string_view rpc,
                       const google::protobuf::Message* request, const Handler& handler) {
  const absl::Time start = absl::Now();
  Call call(FindRpc(rpc), CurrentLimits(), context, parts_.metrics, &idle_);
  const absl::Status status = RunGuarded([&] { return RunCall(&call, request, handler); });
  if (call.builds_) parts_.metrics->EndBuild(call.collection_);
  Record(call, status, absl::Now() - start);
  return ToGrpc(status);
}

void Gate::Record(const Call& call, const absl::Status& status, absl::Duration elapsed) {
  AuditEntry entry;
  entry.time = absl::Now();
  entry.rpc = call.rpc_.name;
  entry.collection = call.collection_.substr(0, kLoggedNameBytes);
  if (call.key_ != nullptr) entry.key_id = call.key_->id;
  if (call.key_ != nullptr) entry.key_name = call.key_->grant.name;
  entry.certificate = CertificateOf(*call.context_);
  entry.peer = call.context_->peer();
  entry.rows = call.rows_;
  entry.request_bytes = call.request_bytes_;
  entry.code = absl::StatusCodeToString(status.code());
  entry.milliseconds = absl::ToDoubleMilliseconds(elapsed);
  parts_.metrics->CountCall(entry.rpc, status, absl::ToDoubleSeconds(elapsed));
  const bool faulty = absl::IsInternal(status) || absl::IsDataLoss(status);
  const LogLevel usual = IsOpen(call.rpc_) ? LogLevel::kDebug : LogLevel::kInfo;
  Log(faulty ? LogLevel::kError : usual,
      status.ok() ? "call" : status.message().substr(0, kLoggedMessageBytes),
      {{"rpc", entry.rpc},
       {"key", entry.key_id},
       {"collection", entry.collection},
       {"code", entry.code},
       {"ms", absl::StrFormat("%.1f", entry.milliseconds)}});
  if (parts_.audit == nullptr || IsOpen(call.rpc_)) return;
  if (const absl::Status written = parts_.audit->Write(entry); !written.ok()) {
    parts_.metrics->CountAuditFailure();
    Log(LogLevel::kError, written.message());
  }
}

void Gate::SetLimits(const Limits& limits) {
  parts_.admission->SetLimits(limits);
  const std::lock_guard<std::mutex> guard(mutex_);
  limits_ = limits;
}

Limits Gate::CurrentLimits() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return limits_;
}

}  // namespace privatemail
