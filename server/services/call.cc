#include "server/services/call.h"

#include <arpa/inet.h>
#include <google/protobuf/arena.h>
#include <grpc/grpc_security_constants.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <limits>
#include <new>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/base/cancellation.h"
#include "common/base/operator_only_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/rpc/parse_message.h"
#include "common/rpc/status.h"
#include "server/services/log.h"

namespace privatemail::server {
namespace {

// A peer may send a name of any length and content.
constexpr size_t kMaxLoggedNameBytes = 64;
constexpr size_t kMaxLoggedMessageBytes = 300;

// Longer messages are parsed on a worker after authorisation and admission, so that nobody without
// rights causes work or memory. Shorter ones are parsed at once, so that the logs name the
// collection of a refused call.
constexpr size_t kMaxInlineParseBytes = 65536;

const std::shared_ptr<const AccessKey>& AnyoneKey() {
  static const auto anyone = [] {
    AccessKey key;
    key.grant.scopes = kAnyScope;
    return std::make_shared<const AccessKey>(std::move(key));
  }();
  return anyone;
}

// In place of the id of callers without a valid key.
constexpr char kStrangers[] = "-";

// The rate of their lines in the logs, each with one about lines that were left out. Without it
// they could make the logs rotate until the lines of others are gone.
const AccessKey& LinesOfStrangers() {
  static const AccessKey key = [] {
    AccessKey strangers;
    strangers.id = kStrangers;
    strangers.grant.requests_per_second = 50;
    return strangers;
  }();
  return key;
}

// Shares ownership of the bytes instead of copying them.
grpc::ByteBuffer ToByteBuffer(std::shared_ptr<const std::string> bytes) {
  using Owner = std::shared_ptr<const std::string>;
  auto owner = std::make_unique<Owner>(std::move(bytes));
  const std::string& held = **owner;
  const auto release = [](void* held_owner) { delete static_cast<Owner*>(held_owner); };
  // gRPC never writes into a slice, so the const_cast is safe.
  const grpc::Slice slice(const_cast<char*>(held.data()), held.size(), release, owner.release());
  return grpc::ByteBuffer(&slice, 1);
}

// On an arena if the message is small: an arena would keep the memory of outgrown fields.
std::shared_ptr<google::protobuf::Message> NewMessage(const google::protobuf::Message& prototype,
                                                      size_t bytes) {
  if (bytes > kMaxInlineParseBytes) {
    return std::shared_ptr<google::protobuf::Message>(prototype.New());
  }
  const auto arena = std::make_shared<google::protobuf::Arena>();
  return {arena, prototype.New(arena.get())};
}

// The result of `run`; std::bad_alloc and failed threads are RESOURCE_EXHAUSTED, any other
// exception INTERNAL.
absl::Status CatchExceptions(absl::FunctionRef<absl::Status()> run) {
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

// The key's text in the metadata of a call; nullopt: there is none.
std::optional<absl::string_view> KeyTextIn(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  constexpr absl::string_view kScheme = "Bearer ";
  const auto [first, last] = metadata.equal_range("authorization");
  if (first == last) return std::nullopt;
  const absl::string_view header(first->second.data(), first->second.size());
  // Two headers are ambiguous, and the token of another scheme is not a key.
  if (std::next(first) != last || !absl::StartsWithIgnoreCase(header, kScheme)) return "";
  return header.substr(kScheme.size());
}

// The bytes of the address in gRPC's "ipv4:192.0.2.1:50051" or "ipv6:%5B2001:db8::1%5D:50051";
// empty: there is none.
std::string AddressIn(absl::string_view peer) {
  const int family = absl::ConsumePrefix(&peer, "ipv4:") ? AF_INET : AF_INET6;
  if (family == AF_INET6 && !absl::ConsumePrefix(&peer, "ipv6:%5B")) return "";
  const std::string text(peer.substr(0, family == AF_INET ? peer.rfind(':') : peer.find("%5D")));
  std::string bytes(family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr), '\0');
  return ::inet_pton(family, text.c_str(), bytes.data()) == 1 ? bytes : "";
}

void ReportAuditFailure(const SharedByCalls& shared, const absl::Status& written) {
  if (written.ok()) return;
  shared.metrics->CountAuditFailure();
  Log(LogLevel::kError, written.message());
}

}  // namespace

Call::Call(const Method& method, Limits limits, CameBy came_by,
           grpc::GenericCallbackServerContext* context, SharedByCalls* shared)
    : method_(method),
      limits_(std::move(limits)),
      came_by_(came_by),
      context_(context),
      shared_(shared),
      parsed_(&shared->parsed),
      search_(&shared->searches),
      place_(&shared->arriving) {
  key_error_ = Authenticate();
  // A single message names the collection for the logs. Proxies let nobody send it without a key.
  const bool needs_message =
      !method_.streams_requests && shared_->trusted_proxies.empty() && came_by_ == CameBy::kNetwork;
  if (key_error_.ok() || IsOpen() || needs_message) {
    StartReading();
  } else {
    SendOutcome(key_error_);
  }
}

void Call::OnReadDone(bool ok) {
  if (bytes_.Length() <= kMaxInlineParseBytes) place_.Leave();
  if (operation_ended_.has_value()) return OnWriteDone(ok);
  bool continues = false;
  const absl::Status status = CatchExceptions([&] { return Begin(ok, &continues); });
  if (!continues) SendOutcome(status);
}

void Call::OnWriteDone(bool ok) {
  if (operation_ended_.has_value()) {
    has_succeeded_ = ok;
    operation_ended_->Notify();
  } else if (next_ == Next::kEndOfAnswer) {
    SendEndOfAnswer();
  } else if (next_ == Next::kStatus) {
    Finish(grpc::Status::OK);
  }
}

absl::Status Call::Begin(bool received, bool* continues) {
  PM_RETURN_IF_ERROR(EndWatch());
  has_next_ = received;
  if (!method_.streams_requests && !received) {
    parse_error_ = absl::InvalidArgumentError("the call must have a message, but has none");
  } else if (!method_.streams_requests && bytes_.Length() <= kMaxInlineParseBytes) {
    parse_error_ = CatchExceptions([this] { return ParseRequest(); });
  }
  PM_RETURN_IF_ERROR(Authorise());
  PM_RETURN_IF_ERROR(CheckShard());
  // Probes need no ticket, so that a busy server still answers them.
  if (IsOpen()) return Handle();
  PM_RETURN_IF_ERROR(EnterQueue());
  const bool is_cheap = !parse_error_.ok() ||
                        (request_ != nullptr && method_.is_cheap && method_.is_cheap(*request_));
  if (is_cheap && ticket_->IsAdmitted()) return AwaitPlaceAndRun();
  shared_->thread_pool.Run(
      [this] { SendOutcome(CatchExceptions([this] { return AwaitPlaceAndRun(); })); });
  *continues = true;  // the call may be gone
  return absl::OkStatus();
}

absl::Status Call::Authenticate() {
  if (shared_->keys == nullptr) {
    key_ = AnyoneKey();
    return absl::OkStatus();
  }
  const std::optional<absl::string_view> text = KeyTextIn(context_->client_metadata());
  if (!text.has_value()) return absl::UnauthenticatedError("a key is needed, but none came");
  PM_ASSIGN_OR_RETURN(key_, shared_->keys->Authenticate(*text));
  return absl::OkStatus();
}

absl::Status Call::CheckShard() const {
  const std::optional<std::string> asked = Metadata(kShardMetadata);
  if (!asked.has_value() || *asked == shared_->shard) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "this daemon is ", shared_->shard.empty() ? "no shard" : "shard " + shared_->shard,
      ", but is asked as shard ", absl::CHexEscape(asked->substr(0, kMaxLoggedNameBytes)),
      ": the setting shards of the front must name every shard, in order"));
}

absl::Status Call::ParseRequest() {
  auto message = NewMessage(method_.request, bytes_.Length());
  PM_RETURN_IF_ERROR(Parse(message.get()));
  request_ = std::move(message);
  // Refused calls are logged with their collection.
  entry_.collection = GetCollectionName(*request_, method_.rpc);
  return absl::OkStatus();
}

absl::Status Call::Parse(google::protobuf::Message* message) {
  parsed_.Release();
  const auto admit = [&](int64_t memory) -> absl::Status {
    PM_RETURN_IF_ERROR(CheckLimit("memory of the message in bytes", memory,
                                  limits_.max_request_memory, "memory / 16"));
    return parsed_.Take(memory, limits_.max_parsed_memory, key_ == nullptr ? "" : key_->id);
  };
  const absl::Status parsed = ParseMessage(bytes_, admit, message);
  ClearMessage();
  return parsed;
}

absl::Status Call::Authorise() {
  // Calls that are refused below count as well: each costs work and an audit line.
  if (key_ != nullptr) {
    absl::Duration wait;
    const absl::Status rate = shared_->rates.Take(*key_, RateLimiter::Clock::now(), &wait);
    if (!rate.ok()) {
      // Rounded up: a retry a moment too early would be refused again.
      context_->AddTrailingMetadata(
          kRetryAfterMetadata,
          absl::StrCat(absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)))));
      shared_->metrics->CountRejection("rate");
      return rate;
    }
  }
  PM_RETURN_IF_ERROR(CheckScopes());
  return request_ == nullptr ? absl::OkStatus() : RecordAndCheckAccess(*request_);
}

absl::Status Call::CheckScopes() const {
  const Rpc& rpc = method_.rpc;
  if (IsOpen()) return absl::OkStatus();
  PM_RETURN_IF_ERROR(key_error_);
  if (key_->Has(rpc.any_of) && (!rpc.all_collections || key_->CoversAll())) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "key ", key_->id, " is not for ", rpc.name, ", which takes scope ",
      absl::StrJoin(ScopeNames(rpc.any_of), " or "),
      rpc.all_collections ? " for all collections" : "", ": it has ",
      absl::StrJoin(ScopeNames(key_->grant.scopes), ", "), key_->CoversAll() ? "" : " for some"));
}

absl::Status Call::RecordAndCheckAccess(const google::protobuf::Message& message) {
  entry_.request_bytes += message.ByteSizeLong();
  if (method_.rpc.collection[0] == '\0') return absl::OkStatus();
  const std::string name = GetCollectionName(message, method_.rpc);
  PM_RETURN_IF_ERROR(CheckNotEmpty(method_.rpc.collection, name));
  return RecordAndCheckCollection(name);
}

absl::Status Call::RecordAndCheckCollection(absl::string_view name) {
  entry_.collection = std::string(name);
  if (key_ == nullptr) return key_error_;
  if (key_->Covers(name)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("key ", key_->id, " is not for collection '",
                   absl::CHexEscape(name.substr(0, kMaxLoggedNameBytes)), "'"));
}

absl::Status Call::EnterQueue() {
  absl::StatusOr<Admission::Ticket> ticket =
      shared_->admission->Enter({.key = key_->id,
                                 .is_operator = key_->IsOperator(),
                                 .uses_store = UsesStore(method_.rpc, request_.get())});
  if (!ticket.ok()) shared_->metrics->CountRejection("concurrency");
  PM_RETURN_IF_ERROR(ticket.status());
  ticket_.emplace(*std::move(ticket));
  return absl::OkStatus();
}

absl::Status Call::AwaitPlaceAndRun() {
  const absl::Status waited = ticket_->Await([this] {
    if (ticket_->WaitsForOthers()) shared_->idle.EndUntaken();
    return Cancelled();
  });
  if (absl::IsResourceExhausted(waited)) shared_->metrics->CountRejection("concurrency");
  PM_RETURN_IF_ERROR(waited);
  PM_RETURN_IF_ERROR(CheckNotCancelled([this] { return Cancelled(); }));
  const absl::Status status = Handle();
  if (IsOperatorOnlyError(status)) {
    shared_->metrics->CountStoreError(status.code());
  } else if (absl::IsResourceExhausted(status)) {
    shared_->metrics->CountRejection("size");
  }
  return status;
}

absl::Status Call::Handle() {
  PM_RETURN_IF_ERROR(parse_error_);
  if (!method_.streams_requests && request_ == nullptr) {
    PM_RETURN_IF_ERROR(ParseRequest());
    PM_RETURN_IF_ERROR(RecordAndCheckAccess(*request_));
  }
  const CancellationScope scope([this] { return Cancelled(); });
  const absl::Status status = method_.handle(*this, request_.get());
  return absl::IsNotFound(status) ? NameCollections(status) : status;
}

absl::Status Call::NameCollections(const absl::Status& not_found) const {
  constexpr size_t kMaxNamed = 8;
  std::vector<std::string> names = shared_->collections();
  if (entry_.collection.empty() || absl::c_linear_search(names, entry_.collection)) {
    return not_found;
  }
  std::erase_if(names, [this](const std::string& name) { return !key_->Covers(name); });
  if (names.empty()) {
    return absl::NotFoundError(absl::StrCat(not_found.message(), ", and the key covers none"));
  }
  const auto named = absl::MakeSpan(names).first(std::min(kMaxNamed, names.size()));
  const std::string more =
      names.size() > kMaxNamed ? absl::StrCat(" and ", names.size() - kMaxNamed, " more") : "";
  return absl::NotFoundError(
      absl::StrCat(not_found.message(), "; those that do: ", absl::StrJoin(named, ", "), more));
}

bool Call::Read(google::protobuf::Message* message) {
  if (number_ > 0) {
    has_next_ = AwaitCaller([this] {
      StartReading();
      if (context_->IsCancelled()) place_.StopWaiting();  // OnCancel may have been called before
    });
  }
  if (!has_next_) return false;
  const absl::Status parsed = Parse(message);
  if (!parsed.ok()) {
    stream_error_ = absl::Status(
        parsed.code(), absl::StrCat("message ", number_, " of the stream: ", parsed.message()));
  }
  ++number_;
  return stream_error_.ok();
}

absl::Status Call::Write(std::shared_ptr<const std::string> bytes) {
  bytes_ = ToByteBuffer(std::move(bytes));
  if (AwaitCaller([this] {
        Watch(/*message=*/nullptr);
        StartWrite(&bytes_);
      })) {
    return absl::OkStatus();
  }
  PM_RETURN_IF_ERROR(StreamStatus());
  return absl::CancelledError("the caller stopped reading");
}

void Call::SetAnswer(std::string bytes) {
  answer_ = ToByteBuffer(std::make_shared<const std::string>(std::move(bytes)));
}

absl::Status Call::CheckAnswerSize(size_t bytes, absl::string_view remedy) const {
  const int64_t max_bytes = limits_.max_message_bytes;
  if (static_cast<int64_t>(bytes) <= max_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the response would exceed the limit of ", max_bytes, " bytes: ", remedy));
}

void Call::StartReading() {
  const auto start = [this] {
    Watch(&place_);
    if (came_by_ == CameBy::kGateway && number_ == 0) StartSendInitialMetadata();
    StartRead(&bytes_);
  };
  // Probes wait for nobody, so that a busy server still answers them.
  if (IsOpen()) return start();
  place_.Enter(key_ == nullptr ? kStrangers : key_->id, key_ != nullptr && key_->IsOperator(),
               start);
}

void Call::ClearMessage() {
  bytes_.Clear();
  place_.Leave();
}

bool Call::AwaitCaller(absl::FunctionRef<void()> start) {
  if (!stream_error_.ok()) return false;
  operation_ended_.emplace();
  start();
  operation_ended_->WaitForNotification();
  operation_ended_.reset();
  stream_error_ = EndWatch();
  return has_succeeded_ && stream_error_.ok();
}

void Call::Watch(const ArrivingMessages::Place* message) {
  const bool gateway_watches = message == nullptr && came_by_ == CameBy::kGateway;
  watch_.emplace(
      &shared_->idle, context_, message,
      gateway_watches ? std::numeric_limits<double>::infinity() : limits_.stream_idle_seconds);
}

absl::Status Call::EndWatch() {
  PM_RETURN_IF_ERROR(watch_->End());
  if (shared_->keys == nullptr || key_ == nullptr) return absl::OkStatus();
  return shared_->keys->CheckValid(key_->id, absl::Now());
}

absl::Status Call::StreamStatus() const {
  PM_RETURN_IF_ERROR(stream_error_);
  if (Cancelled()) return absl::CancelledError("the caller broke the stream off");
  return absl::OkStatus();
}

void Call::SendOutcome(absl::Status status) {
  if (absl::IsCancelled(status) && DeadlineHasPassed()) {
    status = absl::DeadlineExceededError("the deadline of the call has passed");
  }
  Record(status);
  // The caller may take the outcome late.
  ClearMessage();
  request_ = nullptr;
  parsed_.Release();
  Watch(/*message=*/nullptr);
  const bool operates = key_ != nullptr && key_->IsOperator();
  const grpc::Status outcome = ToGrpc(operates ? status : HideOperatorDetails(status));
  const bool is_for_gateway = status.ok() && came_by_ == CameBy::kGateway;
  // gRPC may destroy the call before these return.
  if (is_for_gateway && answer_.has_value()) {
    next_ = Next::kEndOfAnswer;
    StartWrite(&*answer_);
  } else if (is_for_gateway) {
    SendEndOfAnswer();
  } else if (status.ok() && answer_.has_value()) {
    StartWriteAndFinish(&*answer_, grpc::WriteOptions(), outcome);
  } else {
    Finish(outcome);
  }
}

void Call::SendEndOfAnswer() {
  const grpc::Slice end(kEndOfAnswer.data(), kEndOfAnswer.size());
  bytes_ = grpc::ByteBuffer(&end, 1);
  next_ = Next::kStatus;
  StartWrite(&bytes_);
}

std::string Call::Caller() const {
  const auto& metadata = context_->client_metadata();
  std::string peer = context_->peer();
  if (came_by_ == CameBy::kGateway) {
    const grpc::string_ref caller = metadata.find(kCallerMetadata)->second;
    peer.assign(caller.data(), caller.size());
  }
  const auto forwarded = metadata.find(kForwardedMetadata);
  if (forwarded == metadata.end() || forwarded->second.empty() ||
      !shared_->trusted_proxies.contains(AddressIn(peer))) {
    return peer;
  }
  return {forwarded->second.data(), std::min(forwarded->second.size(), kMaxLoggedNameBytes)};
}

void Call::Record(const absl::Status& status) {
  const auto names = context_->auth_context()->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  AuditEntry& entry = entry_;  // filled in part while the call ran
  entry.time = absl::Now();
  entry.rpc = method_.rpc.name;
  entry.collection.resize(std::min(entry.collection.size(), kMaxLoggedNameBytes));
  if (key_ != nullptr) entry.key_id = key_->id;
  if (key_ != nullptr) entry.key_name = key_->grant.name;
  if (!names.empty()) entry.certificate = std::string(names[0].data(), names[0].size());
  entry.peer = Caller();
  entry.code = absl::StatusCodeToString(status.code());
  entry.milliseconds = absl::ToDoubleMilliseconds(running_.Elapsed());
  shared_->metrics->CountCall(entry.rpc, status, entry.milliseconds / 1000);
  // A probe of the server's health names no collection, changes nothing and comes every few
  // seconds: it is not audited, and logged at debug level.
  const bool probe = IsOpen() && entry.collection.empty();
  if (key_ == nullptr && !probe &&
      !shared_->rates.Take(LinesOfStrangers(), RateLimiter::Clock::now()).ok()) {
    ++shared_->left_out;
    return;
  }
  if (const uint64_t left_out = shared_->left_out.exchange(0); left_out > 0) {
    Log(LogLevel::kWarning,
        "too many calls without a valid key: some are counted, not logged one by one",
        {{"left_out", absl::StrCat(left_out)}});
    if (shared_->audit != nullptr) {
      ReportAuditFailure(*shared_, shared_->audit->RecordLeftOut(left_out));
    }
  }
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
  if (shared_->audit == nullptr || probe) return;
  ReportAuditFailure(*shared_, shared_->audit->Write(entry));
}

}  // namespace privatemail::server
