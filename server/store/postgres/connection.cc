#include "server/store/postgres/connection.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <future>
#include <system_error>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/cancellation.h"
#include "common/base/operator_only_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::server::postgres {
namespace {

// Object ids of the types, fixed in pg_type.dat of every version.
constexpr Oid kBytea = 17;
constexpr Oid kInt8 = 20;
constexpr Oid kText = 25;
constexpr Oid kFloat8 = 701;
constexpr Oid kByteaArray = 1001;
constexpr Oid kInt8Array = 1016;

uint64_t ReadBigEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

// Values in the binary formats of their types. Any UTF-8 is a bytea, because text has no NUL.
struct Encoder {
  void operator()(int64_t value) { Number(kInt8, static_cast<uint64_t>(value)); }
  void operator()(double value) { Number(kFloat8, std::bit_cast<uint64_t>(value)); }
  void operator()(SqlText text) { Add(kText) = std::string(text.value); }
  void operator()(SqlUtf8 text) { Add(kBytea) = std::string(text.value); }
  void operator()(SqlBytes bytes) { Add(kBytea) = std::string(bytes.value); }
  void operator()(SqlInts values) {
    std::string& bytes = AddArray(kInt8Array, kInt8, values.size());
    for (const int64_t value : values) {
      AppendBigEndian<uint32_t>(sizeof(value), &bytes);
      AppendBigEndian(static_cast<uint64_t>(value), &bytes);
    }
  }
  void operator()(SqlUtf8s texts) { (*this)(SqlByteses{texts.values}); }
  void operator()(SqlByteses values) {
    std::string& bytes = AddArray(kByteaArray, kBytea, values.values.size());
    for (const std::string& value : values.values) {
      AppendBigEndian(static_cast<uint32_t>(value.size()), &bytes);
      bytes += value;
    }
  }

  std::string& Add(Oid type) {
    types.push_back(type);
    return values.emplace_back();
  }
  void Number(Oid type, uint64_t value) { AppendBigEndian(value, &Add(type)); }
  // array_recv: dimensions, whether NULLs occur, type of the elements, length and first index of
  // the dimension; then each element after its length.
  std::string& AddArray(Oid type, Oid element, size_t count) {
    std::string& bytes = Add(type);
    AppendBigEndian<uint32_t>(count == 0 ? 0 : 1, &bytes);
    AppendBigEndian<uint32_t>(0, &bytes);
    AppendBigEndian<uint32_t>(element, &bytes);
    if (count == 0) return bytes;
    AppendBigEndian(static_cast<uint32_t>(count), &bytes);
    AppendBigEndian<uint32_t>(1, &bytes);
    return bytes;
  }

  std::vector<Oid> types;
  std::vector<std::string> values;
};

constexpr int kOldestServer = 150000;
// Longer than kStatementTimeout, so that the server ends a statement before the client does.
constexpr absl::Duration kClientTimeout = absl::Minutes(3);
// The time that a running statement still gets when its caller is gone. A healthy server needs
// less, so that few commits have an unknown outcome.
constexpr absl::Duration kGrace = absl::Seconds(1);
constexpr std::chrono::milliseconds kPollInterval(50);
constexpr int kMaxConnecting = 16;

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
  // The last value of a keyword counts.
  info.options_.assign(std::begin(kDefaults), std::end(kDefaults));
  for (const PQconninfoOption* option = parsed.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr || *option->val == '\0') continue;
    info.options_.emplace_back(option->keyword, option->val);
    const absl::string_view keyword = option->keyword;
    if (keyword == "password" || keyword == "sslpassword") info.secrets_.emplace_back(option->val);
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

Connection::Connection(const ConnectionInfo& info, Handle handle)
    : info_(&info), handle_(std::move(handle)), place_(PlaceOf(handle_.get())) {
  // By default notices go to standard error.
  PQsetNoticeProcessor(
      handle_.get(), [](void*, const char*) {}, nullptr);
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

// Only the blocking call of libpq tries the next host when one does not answer in connect_timeout.
// It cannot be cancelled, so it has a thread of its own, which then ends by itself.
absl::StatusOr<Connection::Handle> Connection::Connect(const ConnectionInfo& info) {
  std::packaged_task<Handle()> connect([options = info.options()] {
    std::vector<const char*> keywords;
    std::vector<const char*> values;
    for (const auto& [keyword, value] : options) {
      keywords.push_back(keyword.c_str());
      values.push_back(value.c_str());
    }
    keywords.push_back(nullptr);
    values.push_back(nullptr);
    return Handle(PQconnectdbParams(keywords.data(), values.data(), /*expand_dbname=*/0));
  });
  std::future<Handle> connected = connect.get_future();
  static std::atomic<int> connecting = 0;  // threads that run, of callers that are gone, too
  if (++connecting > kMaxConnecting) {
    --connecting;
    return OperatorOnlyError(absl::UnavailableError(absl::StrCat(
        "the store is unavailable: ", kMaxConnecting, " connections are being opened")));
  }
  try {
    std::thread([connect = std::move(connect)]() mutable {
      connect();
      --connecting;
    }).detach();
  } catch (const std::system_error&) {
    --connecting;
    return absl::ResourceExhaustedError("no thread for a connection");
  }
  const CancelledFunction cancelled = CancellationScope::Innermost();
  do {
    PM_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
  } while (connected.wait_for(kPollInterval) != std::future_status::ready);
  return connected.get();
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const ConnectionInfo& info) {
  PM_ASSIGN_OR_RETURN(Handle handle, Connect(info));
  if (handle == nullptr) return absl::ResourceExhaustedError("no memory for a connection");
  auto connection = std::unique_ptr<Connection>(new Connection(info, std::move(handle)));
  PGconn* const session = connection->handle_.get();
  if (PQstatus(session) != CONNECTION_OK) return connection->Unavailable(PQerrorMessage(session));
  PQsetnonblocking(session, 1);
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
      "SET search_path = ", info_->search_path, "; SET client_connection_check_interval = ",
      // Also ends statements that this side has given up, which would keep their session.
      absl::ToInt64Milliseconds(kGrace),
      "; SET statement_timeout = ", absl::ToInt64Milliseconds(kStatementTimeout),
      "; SET lock_timeout = ", absl::ToInt64Milliseconds(kLockTimeout),
      "; SET idle_in_transaction_session_timeout = ", absl::ToInt64Milliseconds(kStatementTimeout),
      "; SET default_transaction_isolation = 'read committed'")));
  PM_ASSIGN_OR_RETURN(const Result settings,
                      Query("SELECT current_setting('fsync'), current_setting('full_page_writes'), "
                            "current_setting('synchronous_commit')"));
  for (const int column : {0, 1}) {
    if (settings.Bytes(column) == "on") continue;
    return OperatorOnlyError(absl::FailedPreconditionError(
        absl::StrCat(place_, " runs with ", column == 0 ? "fsync" : "full_page_writes",
                     " off, so a power failure could lose committed changes: turn it on")));
  }
  // Stricter settings (remote_apply) stay.
  const absl::string_view commit = settings.Bytes(2);
  if (commit != "off" && commit != "local") return absl::OkStatus();
  return Execute("SET synchronous_commit = on");
}

absl::Status Connection::WaitUntilReady(Clock::time_point deadline) {
  const CancelledFunction cancelled = CancellationScope::Innermost();
  bool is_cancelled = false;
  while (true) {
    const int unsent = PQflush(handle_.get());
    if (unsent < 0) return Unavailable(PQerrorMessage(handle_.get()));
    if (unsent == 0 && PQisBusy(handle_.get()) == 0) return absl::OkStatus();
    const Clock::time_point now = Clock::now();
    if (!is_cancelled && cancelled && cancelled()) {
      is_cancelled = true;
      deadline = std::min(deadline, now + absl::ToChronoNanoseconds(kGrace));
    }
    if (now >= deadline) {
      return Unavailable(is_cancelled ? "the caller stopped waiting for the server's answer"
                                      : "the server does not answer");
    }
    pollfd ready = {socket(), static_cast<short>(unsent > 0 ? POLLIN | POLLOUT : POLLIN), 0};
    if (::poll(&ready, 1, static_cast<int>(kPollInterval.count())) < 0 && errno != EINTR) {
      return Unavailable("poll failed");
    }
    if (ready.revents != 0 && PQconsumeInput(handle_.get()) == 0) {
      return Unavailable(PQerrorMessage(handle_.get()));
    }
  }
}

absl::StatusOr<Result> Connection::Await(int sent, absl::string_view copied) {
  if (sent == 0) {
    usable_ = false;
    return Unavailable(PQerrorMessage(handle_.get()));
  }
  const Clock::time_point deadline = Clock::now() + absl::ToChronoNanoseconds(kClientTimeout);
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

absl::Status Connection::Execute(const std::string& sql) { return Copy(sql, "").status(); }

absl::StatusOr<Result> Connection::Query(const std::string& sql,
                                         absl::Span<const SqlValue> values) {
  PM_RETURN_IF_ERROR(CheckThreadNotCancelled());
  Encoder encoded;
  for (const SqlValue& value : values) std::visit(encoded, value);
  std::vector<const char*> bytes;
  std::vector<int> lengths;
  for (const std::string& value : encoded.values) {
    bytes.push_back(value.data());
    lengths.push_back(static_cast<int>(value.size()));
  }
  constexpr int kBinary = 1;
  const std::vector<int> formats(bytes.size(), kBinary);
  return Await(PQsendQueryParams(handle_.get(), sql.c_str(), static_cast<int>(bytes.size()),
                                 encoded.types.data(), bytes.data(), lengths.data(), formats.data(),
                                 kBinary),
               "");
}

absl::StatusOr<Result> Connection::Copy(const std::string& sql, absl::string_view rows) {
  PM_RETURN_IF_ERROR(CheckThreadNotCancelled());
  return Await(PQsendQuery(handle_.get(), sql.c_str()), rows);
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

absl::string_view Result::Bytes(int column) const {
  return {PQgetvalue(handle_.get(), row_, column),
          static_cast<size_t>(PQgetlength(handle_.get(), row_, column))};
}

int64_t Result::Int(int column) const {
  const absl::string_view bytes = Bytes(column);
  if (bytes.empty() || bytes.size() > sizeof(int64_t)) return 0;
  const size_t unused_bits = 8 * (sizeof(int64_t) - bytes.size());
  return static_cast<int64_t>(ReadBigEndian(bytes) << unused_bits) >> unused_bits;
}

double Result::Double(int column) const {
  const absl::string_view bytes = Bytes(column);
  return bytes.size() == sizeof(double) ? std::bit_cast<double>(ReadBigEndian(bytes)) : 0;
}

absl::StatusOr<std::unique_ptr<Connection>> Pool::Acquire(bool* reused) {
  const CancelledFunction cancelled = CancellationScope::Innermost();
  const Clock::time_point latest = Clock::now() + absl::ToChronoNanoseconds(options_.wait);
  PM_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
  {
    std::unique_lock<std::mutex> lock(mutex_);
    while (in_use_ >= options_.size && Clock::now() < latest) {
      released_.wait_for(lock, kPollInterval);
      PM_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
    }
    if (in_use_ >= options_.size) {
      // UNAVAILABLE, like an exhausted server, and not RESOURCE_EXHAUSTED, which means no space.
      return OperatorOnlyError(absl::UnavailableError(
          absl::StrCat("all ", options_.size, " connections to the store were busy for ",
                       absl::FormatDuration(options_.wait), ": try again later")));
    }
    ++in_use_;
    *reused = !idle_.empty();
    if (*reused) {
      std::unique_ptr<Connection> connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  absl::StatusOr<std::unique_ptr<Connection>> opened = Connection::Open(info_);
  if (!opened.ok()) Release(nullptr);
  return opened;
}

void Pool::Release(std::unique_ptr<Connection> connection) {
  const bool keep = connection != nullptr && connection->usable() && !connection->in_transaction();
  if (!keep) connection.reset();  // before the lock: it may take a moment
  const std::lock_guard<std::mutex> guard(mutex_);
  --in_use_;
  if (keep) idle_.push_back(std::move(connection));
  released_.notify_one();
}

absl::StatusOr<std::unique_ptr<Transaction>> Transaction::Begin(Pool* pool, bool writes) {
  while (true) {
    bool reused = false;
    PM_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection, pool->Acquire(&reused));
    const absl::Status begun =
        connection->Execute(writes ? "BEGIN" : "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    if (begun.ok()) {
      return std::unique_ptr<Transaction>(new Transaction(pool, std::move(connection)));
    }
    pool->Release(std::move(connection));
    // Nothing was sent yet, so a session that died while idle can be replaced; each round removes
    // one of them from the pool.
    if (!reused || !absl::IsUnavailable(begun)) return begun;
  }
}

Transaction::~Transaction() {
  if (connection_->usable() && connection_->in_transaction()) {
    // If it fails, the pool closes the session, which rolls back too.
    connection_->Execute("ROLLBACK").IgnoreError();
  }
  pool_->Release(std::move(connection_));
}

absl::Status Transaction::Query(const std::string& sql, absl::Span<const SqlValue> values,
                                Visitor visit) {
  PM_ASSIGN_OR_RETURN(Result result, connection_->Query(sql, values));
  for (; result.HasRow(); result.Next()) PM_RETURN_IF_ERROR(visit(result));
  return absl::OkStatus();
}

absl::Status Transaction::Commit() {
  PM_ASSIGN_OR_RETURN(const Result result, connection_->Query("COMMIT"));
  // For a failed transaction the server reports ROLLBACK as a success.
  if (result.command() == "COMMIT") return absl::OkStatus();
  return absl::InternalError("the transaction had failed before its commit and was rolled back");
}

}  // namespace privatemail::server::postgres
