#include "client/privacy/ledger.h"

#include <sqlite3.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {
namespace {

constexpr int kApplicationId = 0x504d4c47;  // "PMLG"
constexpr int kSchemaVersion = 1;
constexpr double kSumSlack = 1e-12;

constexpr char kSchema[] = R"sql(
  CREATE TABLE grants(collection TEXT PRIMARY KEY, epsilon REAL NOT NULL, delta REAL NOT NULL) STRICT;
  CREATE TABLE charges(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    collection TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL,
    charged_at TEXT NOT NULL, neighbours TEXT NOT NULL, proven INTEGER NOT NULL, source TEXT NOT NULL) STRICT;
  CREATE INDEX charges_by_collection ON charges(collection);
)sql";

absl::Status Failure(sqlite3* db, absl::string_view what) {
  const int code = sqlite3_extended_errcode(db) & 0xff;
  const std::string message = absl::StrCat("ledger: ", what, ": ", sqlite3_errmsg(db));
  const bool damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
  return damaged ? absl::FailedPreconditionError(message) : absl::UnavailableError(message);
}

absl::Status Execute(sqlite3* db, const char* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return Failure(db, sql);
  return absl::OkStatus();
}

// One prepared statement; finalised at the end of its scope.
class Statement {
 public:
  static absl::StatusOr<Statement> Prepare(sqlite3* db, const char* sql) {
    Statement statement(db);
    if (sqlite3_prepare_v2(db, sql, -1, &statement.raw_, nullptr) != SQLITE_OK)
      return Failure(db, sql);
    return statement;
  }
  Statement(Statement&& other) noexcept
      : db_(other.db_), raw_(std::exchange(other.raw_, nullptr)) {}
  ~Statement() { sqlite3_finalize(raw_); }

  Statement& Bind(int at, const std::string& text) {
    sqlite3_bind_text(raw_, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& Bind(int at, double value) {
    sqlite3_bind_double(raw_, at, value);
    return *this;
  }
  // True: there is a row.
  absl::StatusOr<bool> Step() {
    const int code = sqlite3_step(raw_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) return Failure(db_, "a statement failed");
    return code == SQLITE_ROW;
  }
  double Double(int at) const { return sqlite3_column_double(raw_, at); }
  int64_t Integer(int at) const { return sqlite3_column_int64(raw_, at); }

 private:
  explicit Statement(sqlite3* db) : db_(db) {}

  sqlite3* db_;
  sqlite3_stmt* raw_ = nullptr;
};

absl::StatusOr<int64_t> Pragma(sqlite3* db, const char* sql) {
  PM_ASSIGN_OR_RETURN(Statement statement, Statement::Prepare(db, sql));
  PM_RETURN_IF_ERROR(statement.Step().status());
  return statement.Integer(0);
}

// Runs `body` under the database's write lock; what it did is durable or undone.
template <typename Body>
absl::Status InTransaction(sqlite3* db, Body body) {
  PM_RETURN_IF_ERROR(Execute(db, "BEGIN IMMEDIATE"));
  absl::Status status = body();
  if (status.ok()) status = Execute(db, "COMMIT");
  // A COMMIT that failed leaves the transaction open; nothing of it may stay.
  if (!status.ok() && sqlite3_get_autocommit(db) == 0) {
    if (const absl::Status undone = Execute(db, "ROLLBACK"); !undone.ok()) return undone;
  }
  return status;
}

absl::Status PrepareFile(sqlite3* db, const std::string& path) {
  sqlite3_busy_timeout(db, 10'000);
  // EXTRA also syncs the folder after a commit: a charge survives the loss of power.
  PM_RETURN_IF_ERROR(Execute(db, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA"));
  return InTransaction(db, [&]() -> absl::Status {
    PM_ASSIGN_OR_RETURN(const int64_t application, Pragma(db, "PRAGMA application_id"));
    PM_ASSIGN_OR_RETURN(const int64_t version, Pragma(db, "PRAGMA user_version"));
    PM_ASSIGN_OR_RETURN(const int64_t tables, Pragma(db, "SELECT count(*) FROM sqlite_master"));
    if (application == 0 && version == 0 && tables == 0) {
      PM_RETURN_IF_ERROR(Execute(db, kSchema));
      PM_RETURN_IF_ERROR(
          Execute(db, absl::StrCat("PRAGMA application_id = ", kApplicationId).c_str()));
      return Execute(db, absl::StrCat("PRAGMA user_version = ", kSchemaVersion).c_str());
    }
    if (application != kApplicationId || version != kSchemaVersion) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, " is no ledger of this version: expected application ", kApplicationId,
                       " version ", kSchemaVersion, ", got ", application, " version ", version));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<LedgerEntry> Read(sqlite3* db, const std::string& collection) {
  LedgerEntry entry;
  PM_ASSIGN_OR_RETURN(
      Statement grant,
      Statement::Prepare(db, "SELECT epsilon, delta FROM grants WHERE collection = ?"));
  PM_ASSIGN_OR_RETURN(const bool granted, grant.Bind(1, collection).Step());
  if (granted) entry.granted = Budget{grant.Double(0), grant.Double(1)};
  PM_ASSIGN_OR_RETURN(
      Statement sum,
      Statement::Prepare(
          db, "SELECT total(epsilon), total(delta), count(*) FROM charges WHERE collection = ?"));
  PM_RETURN_IF_ERROR(sum.Bind(1, collection).Step().status());
  entry.spent = {sum.Double(0), sum.Double(1)};
  entry.releases = sum.Integer(2);
  return entry;
}

bool Exceeds(double sum, double granted) { return !(sum <= granted * (1 + kSumSlack)); }

absl::Status CheckSuffices(const LedgerEntry& entry, const Guarantee& asked) {
  if (!entry.granted.has_value()) {
    return absl::FailedPreconditionError(
        "no privacy budget is set for this collection; set one with: privatemail budget set NAME "
        "--epsilon E --delta D");
  }
  if (Exceeds(entry.spent.epsilon + asked.epsilon, entry.granted->epsilon) ||
      Exceeds(entry.spent.delta + asked.delta, entry.granted->delta)) {
    const Budget left = entry.left();
    return absl::ResourceExhaustedError(
        absl::StrCat("privacy budget exhausted: spent epsilon ", entry.spent.epsilon, " delta ",
                     entry.spent.delta, ", asked epsilon ", asked.epsilon, " delta ", asked.delta,
                     ", left epsilon ", left.epsilon, " delta ", left.delta));
  }
  return absl::OkStatus();
}

}  // namespace

Budget LedgerEntry::left() const {
  if (!granted.has_value()) return {};
  return {std::max(0.0, granted->epsilon - spent.epsilon),
          std::max(0.0, granted->delta - spent.delta)};
}

absl::StatusOr<std::unique_ptr<Ledger>> Ledger::Open(const std::string& path) {
  sqlite3* db = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &db,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  std::unique_ptr<Ledger> ledger(new Ledger(db));
  if (code != SQLITE_OK) return Failure(db, absl::StrCat("cannot open ", path));
  if (const absl::Status status = PrepareFile(db, path); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
  }
  return ledger;
}

Ledger::~Ledger() { sqlite3_close(db_); }

absl::Status Ledger::Grant(const std::string& collection_uuid, const Budget& budget) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", budget.epsilon));
  PM_RETURN_IF_ERROR(CheckOpenUnitInterval("delta", budget.delta));
  const std::lock_guard lock(mutex_);
  return InTransaction(db_, [&]() -> absl::Status {
    PM_ASSIGN_OR_RETURN(
        Statement grant,
        Statement::Prepare(
            db_,
            "INSERT INTO grants VALUES (?, ?, ?) ON CONFLICT(collection) DO UPDATE SET "
            "epsilon = excluded.epsilon, delta = excluded.delta"));
    return grant.Bind(1, collection_uuid)
        .Bind(2, budget.epsilon)
        .Bind(3, budget.delta)
        .Step()
        .status();
  });
}

absl::StatusOr<LedgerEntry> Ledger::Show(const std::string& collection_uuid) {
  const std::lock_guard lock(mutex_);
  return Read(db_, collection_uuid);
}

absl::StatusOr<LedgerEntry> Ledger::Charge(const std::string& collection_uuid,
                                           const Guarantee& guarantee) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", guarantee.epsilon));
  PM_RETURN_IF_ERROR(CheckFiniteNonNegative("delta", guarantee.delta));
  const std::lock_guard lock(mutex_);
  LedgerEntry entry;
  PM_RETURN_IF_ERROR(InTransaction(db_, [&]() -> absl::Status {
    PM_ASSIGN_OR_RETURN(entry, Read(db_, collection_uuid));
    PM_RETURN_IF_ERROR(CheckSuffices(entry, guarantee));
    PM_ASSIGN_OR_RETURN(
        Statement charge,
        Statement::Prepare(
            db_,
            "INSERT INTO charges(collection, epsilon, delta, charged_at, neighbours, "
            "proven, source) VALUES (?, ?, ?, ?, ?, ?, ?)"));
    PM_RETURN_IF_ERROR(
        charge.Bind(1, collection_uuid)
            .Bind(2, guarantee.epsilon)
            .Bind(3, guarantee.delta)
            .Bind(4, absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()))
            .Bind(5, guarantee.neighbours)
            .Bind(6, guarantee.proven ? 1.0 : 0.0)
            .Bind(7, guarantee.source)
            .Step()
            .status());
    entry.spent.epsilon += guarantee.epsilon;
    entry.spent.delta += guarantee.delta;
    ++entry.releases;
    return absl::OkStatus();
  }));
  return entry;
}

}  // namespace privatemail
