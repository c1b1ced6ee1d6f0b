#include "server/services/dispatcher.h"

#include <arpa/inet.h>
#include <grpc/grpc_security_constants.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/cancellation.h"
#include "common/base/operator_only_error.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "server/services/log.h"

namespace privatemail::server {
namespace {

// A peer may send a name of any length and content.
constexpr size_t kMaxLoggedNameBytes = 64;
constexpr size_t kMaxLoggedMessageBytes = 300;

constexpr absl::string_view kScheme = "Bearer ";

const std::shared_ptr<const AccessKey>& AnyoneKey() {
  static const auto anyone = [] {
    AccessKey key;
    key.grant.scopes = kAnyScope;
    return std::make_shared<const AccessKey>(std::move(key));
  }();
  return anyone;
}

bool IsOpen(const Rpc& rpc) { return rpc.any_of == 0; }

// The bytes of the address in gRPC's "ipv4:192.0.2.1:50051" or "ipv6:%5B2001:db8::1%5D:50051";
// empty: there is none.
std::string AddressIn(absl::string_view peer) {
  const int family = absl::ConsumePrefix(&peer, "ipv4:") ? AF_INET : AF_INET6;
  if (family == AF_INET6 && !absl::ConsumePrefix(&peer, "ipv6:%5B")) return "";
  const std::string text(peer.substr(0, family == AF_INET ? peer.rfind(':') : peer.find("%5D")));
  std::string bytes(family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr), '\0');
  return ::inet_pton(family, text.c_str(), bytes.data()) == 1 ? bytes : "";
}

// The address that a proxy names; empty: none.
std::string ForwardedAddress(const Metadata& metadata) {
  const auto found = metadata.find("x-real-ip");
  if (found == metadata.end()) return "";
  return std::string(found->second.data(), std::min(found->second.size(), kMaxLoggedNameBytes));
}

std::string CertificateOf(const RpcContext& context) {
  const auto names = context.auth_context()->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  return names.empty() ? "" : std::string(names[0].data(), names[0].size());
}

// Rounded up: a retry a moment too early would be refused again.
void AddRetryAfter(absl::Duration wait, RpcContext* context) {
  const int64_t milliseconds = absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)));
  context->AddTrailingMetadata(kRetryAfterMetadata, absl::StrCat(milliseconds));
}

void ReportAuditFailure(const Dispatcher::Dependencies& dependencies, const absl::Status& written) {
  if (written.ok()) return;
  dependencies.metrics->CountAuditFailure();
  Log(LogLevel::kError, written.message());
}

void LogSuppressedLines(const Dispatcher::Dependencies& dependencies, uint64_t lines) {
  Log(LogLevel::kWarning,
      "too many calls without a valid key: some are counted, not logged one by one",
      {{"left_out", absl::StrCat(lines)}});
  if (dependencies.audit != nullptr)
    ReportAuditFailure(dependencies, dependencies.audit->RecordLeftOut(lines));
}

}  // namespace

absl::Status Dispatcher::CatchExceptions(absl::FunctionRef<absl::Status()> run) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the server has not enough memory for this request");
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError("the server has no thread for this request");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("unexpected: ", error.what()));
  }
}

Call::Dependencies Dispatcher::NewCall(RpcContext* context, absl::string_view rpc) {
  return {FindRpc(rpc),          CurrentLimits(), context,  dependencies_.keys,
          dependencies_.metrics, &idle_,          &parsed_, &searches_};
}

void Dispatcher::Start(Call* call, const google::protobuf::Message* request, Execution execution,
                       Handler handler) {
  bool finished_elsewhere = false;
  const absl::Status status = CatchExceptions([&]() -> absl::Status {
    PM_RETURN_IF_ERROR(Authorise(call, request));
    // Probes need no ticket, so that a busy server still answers them.
    if (IsOpen(call->dependencies_.rpc)) return handler(*call);
    PM_RETURN_IF_ERROR(EnterQueue(call));
    if (execution == Execution::kInline && call->ticket_->IsAdmitted())
      return AwaitPlaceAndRun(call, handler);
    thread_pool_.Run([this, call, handler = std::move(handler)] {
      Finish(call, CatchExceptions([&] { return AwaitPlaceAndRun(call, handler); }));
    });
    finished_elsewhere = true;
    return absl::OkStatus();
  });
  if (!finished_elsewhere) Finish(call, status);
}

absl::StatusOr<std::shared_ptr<const AccessKey>> Dispatcher::Authenticate(
    const Metadata& metadata) const {
  if (dependencies_.keys == nullptr) return AnyoneKey();
  const auto [first, last] = metadata.equal_range("authorization");
  if (first == last) {
    return absl::UnauthenticatedError("a key is needed, but none came");
  }
  absl::string_view header(first->second.data(), first->second.size());
  // Two headers are ambiguous, and the token of another scheme is not a key.
  if (std::next(first) != last || !absl::StartsWithIgnoreCase(header, kScheme)) {
    header = "";
  } else {
    header.remove_prefix(kScheme.size());
  }
  return dependencies_.keys->Authenticate(header);
}

absl::Status Dispatcher::Authorise(Call* call, const google::protobuf::Message* request) {
  // Refused calls are logged with their collection.
  if (request != nullptr) call->collection_ = GetCollectionName(*request, call->dependencies_.rpc);
  absl::StatusOr<std::shared_ptr<const AccessKey>> key =
      Authenticate(call->dependencies_.context->client_metadata());
  call->key_error_ = key.status();
  if (key.ok()) call->key_ = *std::move(key);
  // Calls that are refused below count as well: each costs work and an audit line.
  if (call->key_ != nullptr) {
    absl::Duration wait;
    const absl::Status rate = rates_.Take(*call->key_, RateLimiter::Clock::now(), &wait);
    if (!rate.ok()) {
      AddRetryAfter(wait, call->dependencies_.context);
      dependencies_.metrics->CountRejection("rate");
      return rate;
    }
  }
  PM_RETURN_IF_ERROR(CheckScopes(*call));
  return request == nullptr ? absl::OkStatus() : call->CheckAccess(*request);
}

absl::Status Dispatcher::CheckScopes(const Call& call) const {
  const Rpc& rpc = call.dependencies_.rpc;
  if (IsOpen(rpc)) return absl::OkStatus();
  PM_RETURN_IF_ERROR(call.key_error_);
  if (call.key_->Has(rpc.any_of) && (!rpc.all_collections || call.key_->CoversAll())) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("key ", call.key_->id, " is not for ", rpc.name, ", which takes scope ",
                   absl::StrJoin(ScopeNames(rpc.any_of), " or "),
                   rpc.all_collections ? " for all collections" : "", ": it has ",
                   absl::StrJoin(ScopeNames(call.key_->grant.scopes), ", "),
                   call.key_->CoversAll() ? "" : " for some"));
}

absl::Status Dispatcher::EnterQueue(Call* call) {
  const AccessKey& key = *call->key_;
  absl::StatusOr<Admission::Ticket> ticket =
      dependencies_.admission->Enter({key.id, /*is_operator=*/key.IsOperator()});
  if (!ticket.ok()) dependencies_.metrics->CountRejection("concurrency");
  PM_RETURN_IF_ERROR(ticket.status());
  call->ticket_.emplace(*std::move(ticket));
  return absl::OkStatus();
}

absl::Status Dispatcher::AwaitPlaceAndRun(Call* call, const Handler& handler) {
  const absl::Status waited = call->ticket_->Await([&] {
    if (call->ticket_->WaitsForOthers()) idle_.EndUntaken();
    return call->Cancelled();
  });
  if (absl::IsResourceExhausted(waited)) dependencies_.metrics->CountRejection("concurrency");
  PM_RETURN_IF_ERROR(waited);
  PM_RETURN_IF_ERROR(CheckNotCancelled([&] { return call->Cancelled(); }));
  const absl::Status status = handler(*call);
  if (IsOperatorOnlyError(status)) {
    dependencies_.metrics->CountStoreError(status.code());
  } else if (absl::IsResourceExhausted(status)) {
    dependencies_.metrics->CountRejection("size");
  }
  return status;
}

void Dispatcher::Finish(Call* call, const absl::Status& status) {
  if (call->is_build_) dependencies_.metrics->EndBuild(call->collection_);
  Record(*call, status);
  call->parsed_.Release();
  call->delivery_watch_.emplace(&idle_, call->dependencies_.context, IdleCalls::For::kAnswer,
                                call->limits().stream_idle_seconds);
  const bool operates = call->key_ != nullptr && call->key_->IsOperator();
  call->SendStatus(ToGrpc(operates ? status : HideOperatorDetails(status)));
}

void Dispatcher::Record(const Call& call, const absl::Status& status) {
  AuditEntry entry;
  entry.time = absl::Now();
  entry.rpc = call.dependencies_.rpc.name;
  entry.collection = call.collection_.substr(0, kMaxLoggedNameBytes);
  entry.subject = call.audit_subject_;
  if (call.key_ != nullptr) entry.key_id = call.key_->id;
  if (call.key_ != nullptr) entry.key_name = call.key_->grant.name;
  entry.certificate = CertificateOf(*call.dependencies_.context);
  entry.peer = CallerOf(*call.dependencies_.context);
  entry.rows = call.rows_;
  entry.request_bytes = call.request_bytes_;
  entry.code = absl::StatusCodeToString(status.code());
  const absl::Duration elapsed = entry.time - call.start_;
  entry.milliseconds = absl::ToDoubleMilliseconds(elapsed);
  // A probe of the server's health: names no collection, changes nothing, comes every few seconds.
  const bool probe = IsOpen(call.dependencies_.rpc) && call.collection_.empty();
  Record(entry, /*has_key=*/call.key_ != nullptr, probe, status);
}

std::string Dispatcher::CallerOf(const RpcContext& context) const {
  const std::string peer = context.peer();
  if (!dependencies_.trusted_proxies.contains(AddressIn(peer))) return peer;
  const std::string forwarded = ForwardedAddress(context.client_metadata());
  return forwarded.empty() ? peer : forwarded;
}

absl::Status Dispatcher::CheckHeader(const Metadata& metadata) {
  return CatchExceptions([&]() -> absl::Status {
    const absl::Status key = Authenticate(metadata).status();
    const auto path = metadata.find(":path");
    if (key.ok() || path == metadata.end()) return absl::OkStatus();
    const absl::string_view text(path->second.data(), path->second.size());
    const absl::string_view name = text.substr(text.rfind('/') + 1);
    const auto rpc = std::find_if(Rpcs().begin(), Rpcs().end(),
                                  [&](const Rpc& one) { return one.name == name; });
    if (rpc == Rpcs().end() || IsOpen(*rpc)) return absl::OkStatus();
    AuditEntry entry;
    entry.time = absl::Now();
    entry.rpc = rpc->name;
    entry.peer = ForwardedAddress(metadata);
    entry.code = absl::StatusCodeToString(key.code());
    Record(entry, /*has_key=*/false, /*probe=*/false, key);
    return key;
  });
}

void Dispatcher::Record(const AuditEntry& entry, bool has_key, bool probe,
                        const absl::Status& status) {
  dependencies_.metrics->CountCall(entry.rpc, status, entry.milliseconds / 1000);
  // Lines about callers without a key are limited; probes are not audited, and logged at debug
  // level.
  const LogLineQuota::Verdict verdict =
      lines_.Take(/*has_key=*/has_key || probe, LogLineQuota::Clock::now());
  if (verdict.left_out > 0) LogSuppressedLines(dependencies_, verdict.left_out);
  if (!verdict.write) return;
  // Messages of these statuses are hidden from the caller, so the log must hold them.
  const bool is_fault =
      IsOperatorOnlyError(status) || absl::IsInternal(status) || absl::IsDataLoss(status);
  const LogLevel normal_level = probe ? LogLevel::kDebug : LogLevel::kInfo;
  Log(is_fault ? LogLevel::kError : normal_level,
      status.ok() ? "call" : status.message().substr(0, kMaxLoggedMessageBytes),
      {{"rpc", entry.rpc},
       {"key", entry.key_id},
       {"collection", entry.collection},
       {"code", entry.code},
       {"ms", absl::StrFormat("%.1f", entry.milliseconds)}});
  if (dependencies_.audit == nullptr || probe) return;
  ReportAuditFailure(dependencies_, dependencies_.audit->Write(entry));
}

void Dispatcher::SetLimits(const Limits& limits) {
  dependencies_.admission->SetLimits(limits);
  const std::lock_guard<std::mutex> guard(mutex_);
  limits_ = limits;
}

Limits Dispatcher::CurrentLimits() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return limits_;
}

}  // namespace privatemail::server
