#include "server/store/postgres/connection.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "common/base/operator_only_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::server::postgres {
namespace {

constexpr int kOldestServer = 150000;
// Longer than kStatementTimeout, so that the server ends a statement before the client does.
constexpr absl::Duration kClientTimeout = absl::Minutes(3);

absl::StatusCode CodeOf(absl::string_view state) {
  using absl::StatusCode;
  const absl::string_view kind = state.substr(0, 2);  // the class: appendix A of the manual
  if (state == "57014" || state == "55P03") return StatusCode::kDeadlineExceeded;
  if (kind == "08" || kind == "57" || state == "53300") return StatusCode::kUnavailable;
  if (kind == "40") return StatusCode::kAborted;
  if (kind == "53" || kind == "54") return StatusCode::kResourceExhausted;
  if (kind == "28" || kind == "3D" || kind == "3F" || state == "42501" || state == "25006") {
    return StatusCode::kFailedPrecondition;
  }
  if (state == "XX001" || state == "XX002") return StatusCode::kDataLoss;
  return StatusCode::kInternal;
}

std::string PlaceOf(PGconn* handle) {
  const auto shown = [](const char* text) { return text == nullptr || *text == '\0' ? "?" : text; };
  const std::string host = shown(PQhost(handle));
  return absl::StrCat("database ", shown(PQdb(handle)), " at ", host,
                      absl::StartsWith(host, "/") ? " port " : ":", shown(PQport(handle)));
}

// Seconds, except tcp_user_timeout in milliseconds: a lost peer is detected within 30 s.
constexpr std::pair<const char*, const char*> kDefaults[] = {
    {"connect_timeout", "5"},  {"keepalives_idle", "10"},     {"keepalives_interval", "5"},
    {"keepalives_count", "3"}, {"tcp_user_timeout", "30000"}, {"application_name", "privatemaild"}};

constexpr absl::string_view kSecretKeywords[] = {"password", "sslpassword"};

}  // namespace

absl::StatusOr<ConnectionInfo> ConnectionInfo::Parse(const std::string& conninfo) {
  const std::string text(absl::StripAsciiWhitespace(conninfo));
  // libpq's message would repeat parts of conninfo.
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
      text.empty() ? nullptr : PQconninfoParse(text.c_str(), nullptr), PQconninfoFree);
  if (parsed == nullptr) {
    return absl::InvalidArgumentError(
        "the connection to PostgreSQL must be keyword=value pairs of libpq, or a postgresql:// "
        "URI, but cannot be read as one (it is not repeated here, because it may hold a password)");
  }
  ConnectionInfo info;
  for (const PQconninfoOption* option = parsed.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr || *option->val == '\0') continue;
    info.options_.emplace_back(option->keyword, option->val);
    const bool secret = std::find(std::begin(kSecretKeywords), std::end(kSecretKeywords),
                                  absl::string_view(option->keyword)) != std::end(kSecretKeywords);
    if (secret) info.secrets_.emplace_back(option->val);
  }
  for (const auto& [keyword, value] : kDefaults) {
    const bool given =
        std::any_of(info.options_.begin(), info.options_.end(),
                    [&name = keyword](const auto& option) { return option.first == name; });
    if (!given) info.options_.emplace_back(keyword, value);
  }
  return info;
}

std::string ConnectionInfo::Redacted(absl::string_view text) const {
  std::string line(text);
  for (const std::string& secret : secrets_) {
    line = absl::StrReplaceAll(line, {{secret, "****"}});
  }
  for (char& character : line) {
    if (absl::ascii_isspace(character)) character = ' ';
  }
  absl::RemoveExtraAsciiWhitespace(&line);
  return Printable(line);
}

Connection::Connection(const ConnectionInfo& info, PGconn* handle)
    : info_(&info), handle_(handle), place_(PlaceOf(handle)) {
  // By default notices go to standard error.
  PQsetNoticeProcessor(
      handle, [](void*, const char*) {}, nullptr);
}

absl::Status Connection::Unavailable(absl::string_view reason) const {
  return OperatorOnlyError(absl::UnavailableError(
      absl::StrCat("the store is unavailable: ", place_, ": ", info_->Redacted(reason))));
}

absl::Status Connection::ErrorOf(const PGresult* result) const {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  // Without a state the error is libpq's: the connection is lost. The primary message names
  // relations at most; detail and context would repeat values.
  const char* primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (state == nullptr) return Unavailable(PQerrorMessage(handle_.get()));
  const std::string reason = primary == nullptr ? "no reason given" : primary;
  const absl::StatusCode code = CodeOf(state);
  // The session or the server has ended. A commit in progress has an unknown outcome.
  const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  const bool ended = severity != nullptr && absl::string_view(severity) != "ERROR";
  if (ended || code == absl::StatusCode::kUnavailable) return Unavailable(reason);
  return OperatorOnlyError(absl::Status(
      code, absl::StrCat(place_, ": ", info_->Redacted(reason), " (SQLSTATE ", state, ")")));
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const ConnectionInfo& info) {
  std::vector<const char*> keywords;
  std::vector<const char*> values;
  for (const auto& [keyword, value] : info.options()) {
    keywords.push_back(keyword.c_str());
    values.push_back(value.c_str());
  }
  keywords.push_back(nullptr);
  values.push_back(nullptr);
  PGconn* handle = PQconnectdbParams(keywords.data(), values.data(), /*expand_dbname=*/0);
  if (handle == nullptr) return absl::ResourceExhaustedError("no memory for a connection");
  auto connection = std::unique_ptr<Connection>(new Connection(info, handle));
  if (PQstatus(handle) != CONNECTION_OK) return connection->Unavailable(PQerrorMessage(handle));
  PQsetnonblocking(handle, 1);
  PM_RETURN_IF_ERROR(connection->Prepare());
  return connection;
}

absl::Status Connection::Prepare() {
  if (PQserverVersion(handle_.get()) < kOldestServer) {
    return OperatorOnlyError(absl::FailedPreconditionError(
        absl::StrCat(place_, " is of version ", PQserverVersion(handle_.get()) / 10000,
                     ", this program needs 15 or later")));
  }
  PM_RETURN_IF_ERROR(Execute(absl::StrCat(
      "SET search_path = privatemail; SET statement_timeout = ",
      absl::ToInt64Milliseconds(kStatementTimeout),
      "; SET lock_timeout = ", absl::ToInt64Milliseconds(kLockTimeout),
      "; SET idle_in_transaction_session_timeout = ", absl::ToInt64Milliseconds(kStatementTimeout),
      "; SET default_transaction_isolation = 'read committed'")));
  PM_ASSIGN_OR_RETURN(const Result settings,
                      Query("SELECT current_setting('fsync'), current_setting('full_page_writes'), "
                            "current_setting('synchronous_commit')"));
  for (const int column : {0, 1}) {
    if (settings.Bytes(0, column) == "on") continue;
    return OperatorOnlyError(absl::FailedPreconditionError(
        absl::StrCat(place_, " runs with ", column == 0 ? "fsync" : "full_page_writes",
                     " off, so a power failure could lose committed changes: turn it on")));
  }
  // Stricter settings (remote_apply) stay.
  const absl::string_view commit = settings.Bytes(0, 2);
  if (commit != "off" && commit != "local") return absl::OkStatus();
  return Execute("SET synchronous_commit = on");
}

absl::Status Connection::WaitUntilReady(absl::Time deadline) {
  while (true) {
    const int unsent = PQflush(handle_.get());
    if (unsent < 0) return Unavailable(PQerrorMessage(handle_.get()));
    if (unsent == 0 && PQisBusy(handle_.get()) == 0) return absl::OkStatus();
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return Unavailable("the server does not answer");
    pollfd ready = {socket(), static_cast<short>(unsent > 0 ? POLLIN | POLLOUT : POLLIN), 0};
    if (::poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) < 0 &&
        errno != EINTR) {
      return Unavailable("poll failed");
    }
    if (ready.revents != 0 && PQconsumeInput(handle_.get()) == 0) {
      return Unavailable(PQerrorMessage(handle_.get()));
    }
  }
}

absl::StatusOr<Result> Connection::Await(absl::string_view copied) {
  const absl::Time deadline = absl::Now() + kClientTimeout;
  absl::Status status;
  Result last(nullptr);
  while (true) {
    if (absl::Status ready = WaitUntilReady(deadline); !ready.ok()) {
      usable_ = false;
      return status.ok() ? ready : status;
    }
    PGresult* handle = PQgetResult(handle_.get());
    if (handle == nullptr) break;
    last = Result(handle);
    const ExecStatusType kind = PQresultStatus(handle);
    if (kind == PGRES_COPY_IN) {
      // Queued; sent while the result is waited for.
      const int size = static_cast<int>(copied.size());
      if (PQputCopyData(handle_.get(), copied.data(), size) != 1 ||
          PQputCopyEnd(handle_.get(), nullptr) != 1) {
        usable_ = false;
        return Unavailable(PQerrorMessage(handle_.get()));
      }
    } else if (kind != PGRES_COMMAND_OK && kind != PGRES_TUPLES_OK) {
      status = ErrorOf(handle);
    }
  }
  if (absl::IsUnavailable(status)) usable_ = false;
  PM_RETURN_IF_ERROR(status);
  return last;
}

absl::Status Connection::Execute(const std::string& sql) {
  if (PQsendQuery(handle_.get(), sql.c_str()) == 0) {
    usable_ = false;
    return Unavailable(PQerrorMessage(handle_.get()));
  }
  return Await().status();
}

absl::StatusOr<Result> Connection::Query(const std::string& sql, const Parameters& parameters) {
  std::vector<const char*> values;
  std::vector<int> lengths;
  for (const std::string& value : parameters.values()) {
    values.push_back(value.data());
    lengths.push_back(static_cast<int>(value.size()));
  }
  const std::vector<int> formats(values.size(), 1);
  constexpr int kBinary = 1;
  const int sent = PQsendQueryParams(handle_.get(), sql.c_str(), static_cast<int>(values.size()),
                                     parameters.types().data(), values.data(), lengths.data(),
                                     formats.data(), kBinary);
  if (sent == 0) {
    usable_ = false;
    return Unavailable(PQerrorMessage(handle_.get()));
  }
  return Await();
}

absl::StatusOr<Result> Connection::Copy(const std::string& sql, absl::string_view rows) {
  if (PQsendQuery(handle_.get(), sql.c_str()) == 0) {
    usable_ = false;
    return Unavailable(PQerrorMessage(handle_.get()));
  }
  return Await(rows);
}

absl::StatusOr<bool> Connection::TakeNotifications() {
  if (PQconsumeInput(handle_.get()) == 0) {
    usable_ = false;
    return Unavailable(PQerrorMessage(handle_.get()));
  }
  bool any = false;
  while (PGnotify* notification = PQnotifies(handle_.get())) {
    any = true;
    PQfreemem(notification);
  }
  return any;
}

}  // namespace privatemail::server::postgres
