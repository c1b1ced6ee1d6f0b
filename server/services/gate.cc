#include "server/services/gate.h"

#include <grpc/grpc_security_constants.h>

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
#include "absl/time/clock.h"
#include "common/base/operator_only_error.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "server/services/log.h"
#include "server/services/request.h"

namespace privatemail::server {
namespace {

// A peer may send a name of any length and content.
constexpr size_t kLoggedNameBytes = 64;
constexpr size_t kLoggedMessageBytes = 300;

constexpr absl::string_view kScheme = "Bearer ";

const std::shared_ptr<const AccessKey>& Everyone() {
  static const auto everyone = [] {
    AccessKey key;
    key.grant.scopes = kAnyScope;
    return std::make_shared<const AccessKey>(std::move(key));
  }();
  return everyone;
}

bool IsOpen(const Rpc& rpc) { return rpc.any_of == 0; }

std::string CertificateOf(const grpc::CallbackServerContext& context) {
  const auto names = context.auth_context()->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  return names.empty() ? "" : std::string(names[0].data(), names[0].size());
}

// Rounded up: who comes back a moment too early is refused once more.
void TellWhenToRetry(absl::Duration wait, grpc::CallbackServerContext* context) {
  const int64_t milliseconds = absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)));
  context->AddTrailingMetadata(kRetryAfterMetadata, absl::StrCat(milliseconds));
}

void ReportFailure(const GateParts& parts, const absl::Status& written) {
  if (written.ok()) return;
  parts.metrics->CountAuditFailure();
  Log(LogLevel::kError, written.message());
}

void WriteLeftOut(const GateParts& parts, uint64_t lines) {
  Log(LogLevel::kWarning, "calls without a valid key came too fast to be written down one by one",
      {{"left_out", absl::StrCat(lines)}});
  if (parts.audit != nullptr) ReportFailure(parts, parts.audit->RecordLeftOut(lines));
}

}  // namespace

absl::Status Gate::Guarded(absl::FunctionRef<absl::Status()> run) {
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

Call::Parts Gate::NewCall(grpc::CallbackServerContext* context, absl::string_view rpc) {
  return {FindRpc(rpc), CurrentLimits(), context, parts_.keys, parts_.metrics, &idle_, &parsed_};
}

void Gate::Begin(Call* call, const google::protobuf::Message* request, Pace pace, Handler handler) {
  bool concluded_elsewhere = false;
  const absl::Status status = Guarded([&]() -> absl::Status {
    PM_RETURN_IF_ERROR(Authorise(call, request));
    // A probe of a busy server learns how it is, not that it is busy.
    if (IsOpen(call->parts_.rpc)) return handler(*call);
    PM_RETURN_IF_ERROR(Enter(call));
    if (pace == Pace::kBrief && call->ticket_->HasPlace()) return Work(call, handler);
    workers_.Run([this, call, handler = std::move(handler)] {
      Conclude(call, Guarded([&] { return Work(call, handler); }));
    });
    concluded_elsewhere = true;
    return absl::OkStatus();
  });
  if (!concluded_elsewhere) Conclude(call, status);
}

absl::StatusOr<std::shared_ptr<const AccessKey>> Gate::Identify(
    const grpc::CallbackServerContext& context) const {
  if (parts_.keys == nullptr) return Everyone();
  const auto [first, last] = context.client_metadata().equal_range("authorization");
  if (first == last) {
    return absl::UnauthenticatedError(
        "a key is needed, but none came: privatemail --key-file FILE sends one");
  }
  absl::string_view header(first->second.data(), first->second.size());
  // Two headers could be read in two ways, and another scheme's token is no key.
  if (std::next(first) != last || !absl::StartsWithIgnoreCase(header, kScheme)) {
    header = "";
  } else {
    header.remove_prefix(kScheme.size());
  }
  return parts_.keys->Authenticate(header);
}

absl::Status Gate::Authorise(Call* call, const google::protobuf::Message* request) {
  // For the logs, which tell of refused calls, too.
  if (request != nullptr) call->collection_ = CollectionNamedIn(*request, call->parts_.rpc);
  absl::StatusOr<std::shared_ptr<const AccessKey>> key = Identify(*call->parts_.context);
  call->key_error_ = key.status();
  if (key.ok()) call->key_ = *std::move(key);
  // Calls that are refused below count, too: each costs work and a line in the audit log.
  if (call->key_ != nullptr) {
    absl::Duration wait;
    const absl::Status taken = rates_.Take(*call->key_, RateLimits::Clock::now(), &wait);
    if (!taken.ok()) {
      TellWhenToRetry(wait, call->parts_.context);
      parts_.metrics->CountRejection("rate");
      return taken;
    }
  }
  PM_RETURN_IF_ERROR(CheckScopes(*call));
  return request == nullptr ? absl::OkStatus() : call->Admit(*request);
}

absl::Status Gate::CheckScopes(const Call& call) const {
  const Rpc& rpc = call.parts_.rpc;
  if (IsOpen(rpc)) return absl::OkStatus();
  PM_RETURN_IF_ERROR(call.key_error_);
  if (call.key_->Has(rpc.any_of) && (!rpc.all_collections || call.key_->CoversAll())) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "key ", call.key_->id, " is not for ", rpc.name, ", which takes scope ",
      absl::StrJoin(NamesOf(rpc.any_of), " or "), rpc.all_collections ? " for all collections" : "",
      ": it has ", absl::StrJoin(NamesOf(call.key_->grant.scopes), ", "),
      call.key_->CoversAll() ? "" : " for some"));
}

absl::Status Gate::Enter(Call* call) {
  const AccessKey& key = *call->key_;
  absl::StatusOr<Admission::Ticket> ticket =
      parts_.admission->Enter({key.id, /*administers=*/key.Operates()});
  if (!ticket.ok()) parts_.metrics->CountRejection("concurrency");
  PM_RETURN_IF_ERROR(ticket.status());
  call->ticket_.emplace(*std::move(ticket));
  return absl::OkStatus();
}

absl::Status Gate::Work(Call* call, const Handler& handler) {
  const absl::Status waited = call->ticket_->AwaitPlace([&] { return call->Cancelled(); });
  if (absl::IsResourceExhausted(waited)) parts_.metrics->CountRejection("concurrency");
  PM_RETURN_IF_ERROR(waited);
  if (call->Cancelled()) return absl::CancelledError("the caller no longer waits for an answer");
  const absl::Status status = handler(*call);
  if (IsOperatorOnlyError(status)) {
    parts_.metrics->CountStoreError(status.code());
  } else if (absl::IsResourceExhausted(status)) {
    parts_.metrics->CountRejection("size");
  }
  return status;
}

void Gate::Conclude(Call* call, const absl::Status& status) {
  if (call->builds_) parts_.metrics->EndBuild(call->collection_);
  Record(*call, status);
  call->untaken_.emplace(&idle_, call->parts_.context, call->limits().stream_idle_seconds);
  const bool operates = call->key_ != nullptr && call->key_->Operates();
  call->Answer(ToGrpc(operates ? status : HideOperatorDetails(status)));
}

// It names nothing and changes nothing, and comes every few seconds.
bool Gate::IsProbe(const Call& call) { return IsOpen(call.parts_.rpc) && call.collection_.empty(); }

void Gate::Record(const Call& call, const absl::Status& status) {
  AuditEntry entry;
  entry.time = absl::Now();
  entry.rpc = call.parts_.rpc.name;
  entry.collection = call.collection_.substr(0, kLoggedNameBytes);
  entry.subject = call.subject_;
  if (call.key_ != nullptr) entry.key_id = call.key_->id;
  if (call.key_ != nullptr) entry.key_name = call.key_->grant.name;
  entry.certificate = CertificateOf(*call.parts_.context);
  entry.peer = call.parts_.context->peer();
  entry.rows = call.rows_;
  entry.request_bytes = call.request_bytes_;
  entry.code = absl::StatusCodeToString(status.code());
  const absl::Duration elapsed = entry.time - call.start_;
  entry.milliseconds = absl::ToDoubleMilliseconds(elapsed);
  parts_.metrics->CountCall(entry.rpc, status, absl::ToDoubleSeconds(elapsed));
  // Probes have no line in the audit log, and none in the log as it usually is.
  const bool counts = call.key_ == nullptr && !IsProbe(call);
  const LineBudget::Verdict verdict = lines_.Take(/*has_key=*/!counts, LineBudget::Clock::now());
  if (verdict.left_out > 0) WriteLeftOut(parts_, verdict.left_out);
  if (verdict.write) WriteDown(call, entry, status);
}

void Gate::WriteDown(const Call& call, const AuditEntry& entry, const absl::Status& status) {
  const bool probe = IsProbe(call);
  // Who is not told of a place is told that the log says why.
  const bool faulty = IsOperatorOnlyError(status) || absl::IsInternal(status) || absl::IsDataLoss(status);
  const LogLevel usual = probe ? LogLevel::kDebug : LogLevel::kInfo;
  Log(faulty ? LogLevel::kError : usual,
      status.ok() ? "call" : status.message().substr(0, kLoggedMessageBytes),
      {{"rpc", entry.rpc},
       {"key", entry.key_id},
       {"collection", entry.collection},
       {"code", entry.code},
       {"ms", absl::StrFormat("%.1f", entry.milliseconds)}});
  if (parts_.audit == nullptr || probe) return;
  ReportFailure(parts_, parts_.audit->Write(entry));
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

}  // namespace privatemail::server
