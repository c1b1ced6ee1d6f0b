#include "client/privacy/ledger_rows.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

constexpr int kApplicationId = 0x504d4c47;  // "PMLG"
constexpr int kSchemaVersion = 2;

constexpr char kTables[] = R"sql(
  CREATE TABLE state(
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id TEXT NOT NULL, generation INTEGER NOT NULL, witness_stamp INTEGER NOT NULL) STRICT;
  CREATE TABLE changes(
    number INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL, collection TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL,
    neighbours TEXT NOT NULL, proven INTEGER NOT NULL, source TEXT NOT NULL, made_at TEXT NOT NULL) STRICT;
  CREATE INDEX changes_of_collection ON changes(collection, kind);
)sql";

int64_t Number(LedgerChange::Kind kind) { return kind == LedgerChange::Kind::kGrant ? 1 : 2; }

absl::StatusOr<int64_t> Single(sqlite::Database& database, absl::string_view sql) {
  PM_ASSIGN_OR_RETURN(sqlite::Statement statement, database.Prepare(sql));
  PM_RETURN_IF_ERROR(statement.Step().status());
  return statement.Int(0);
}

}  // namespace

absl::StatusOr<bool> LedgerFileIsNew(sqlite::Database& database) {
  PM_ASSIGN_OR_RETURN(const int64_t application, Single(database, "PRAGMA application_id"));
  PM_ASSIGN_OR_RETURN(const int64_t version, Single(database, "PRAGMA user_version"));
  PM_ASSIGN_OR_RETURN(const int64_t tables, Single(database, "SELECT count(*) FROM sqlite_master"));
  if (application == 0 && version == 0 && tables == 0) return true;
  if (application == kApplicationId && version == kSchemaVersion) return false;
  return absl::FailedPreconditionError(absl::StrCat(
      database.path(), " is no ledger of this version: expected application ", kApplicationId,
      " version ", kSchemaVersion, ", got ", application, " version ", version));
}

absl::Status CreateLedgerTables(sqlite::Database& database) {
  return database.Execute(absl::StrCat(kTables, "PRAGMA application_id = ", kApplicationId,
                                       "; PRAGMA user_version = ", kSchemaVersion));
}

absl::StatusOr<LedgerState> ReadLedgerState(sqlite::Database& database) {
  PM_ASSIGN_OR_RETURN(sqlite::Statement row,
                      database.Prepare("SELECT id, generation, witness_stamp FROM state"));
  PM_ASSIGN_OR_RETURN(const bool found, row.Step());
  if (!found) return absl::DataLossError(absl::StrCat(database.path(), " has lost its state row"));
  return LedgerState{std::string(row.Bytes(0)), row.Int(1), row.Int(2)};
}

absl::Status WriteLedgerState(sqlite::Database& database, const LedgerState& state) {
  PM_ASSIGN_OR_RETURN(sqlite::Statement row,
                      database.Prepare("INSERT OR REPLACE INTO state VALUES (1, ?, ?, ?)"));
  return row.BindText(1, state.id).Bind(2, state.generation).Bind(3, state.witness_stamp).Run();
}

absl::Status WriteLedgerChange(sqlite::Database& database, const LedgerChange& change) {
  PM_ASSIGN_OR_RETURN(
      sqlite::Statement row,
      database.Prepare("INSERT INTO changes(kind, collection, epsilon, delta, neighbours, proven, "
                       "source, made_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  return row.Bind(1, Number(change.kind))
      .BindText(2, change.collection)
      .Bind(3, change.epsilon)
      .Bind(4, change.delta)
      .BindText(5, change.neighbours)
      .Bind(6, int64_t{change.proven})
      .BindText(7, change.source)
      .BindText(8, change.made_at)
      .Run();
}

absl::StatusOr<LedgerEntry> ReadLedgerEntry(sqlite::Database& database,
                                            const std::string& collection) {
  LedgerEntry entry;
  PM_ASSIGN_OR_RETURN(sqlite::Statement grant,
                      database.Prepare("SELECT epsilon, delta FROM changes WHERE collection = ? "
                                       "AND kind = ? ORDER BY number DESC LIMIT 1"));
  grant.BindText(1, collection).Bind(2, Number(LedgerChange::Kind::kGrant));
  PM_ASSIGN_OR_RETURN(const bool granted, grant.Step());
  if (granted) entry.granted = Budget{grant.Double(0), grant.Double(1)};
  PM_ASSIGN_OR_RETURN(sqlite::Statement sum,
                      database.Prepare("SELECT total(epsilon), total(delta), count(*) FROM changes "
                                       "WHERE collection = ? AND kind = ?"));
  sum.BindText(1, collection).Bind(2, Number(LedgerChange::Kind::kCharge));
  PM_RETURN_IF_ERROR(sum.Step().status());
  entry.spent = {sum.Double(0), sum.Double(1)};
  entry.releases = sum.Int(2);
  return entry;
}

absl::StatusOr<std::vector<LedgerChange>> ReadLedgerChanges(sqlite::Database& database,
                                                            const std::string& collection) {
  PM_ASSIGN_OR_RETURN(
      sqlite::Statement row,
      database.Prepare("SELECT kind, epsilon, delta, neighbours, proven, source, made_at FROM "
                       "changes WHERE collection = ? ORDER BY number"));
  row.BindText(1, collection);
  std::vector<LedgerChange> changes;
  while (true) {
    PM_ASSIGN_OR_RETURN(const bool found, row.Step());
    if (!found) return changes;
    changes.push_back({.kind = row.Int(0) == Number(LedgerChange::Kind::kGrant)
                                   ? LedgerChange::Kind::kGrant
                                   : LedgerChange::Kind::kCharge,
                       .collection = collection,
                       .epsilon = row.Double(1),
                       .delta = row.Double(2),
                       .neighbours = std::string(row.Bytes(3)),
                       .proven = row.Int(4) != 0,
                       .source = std::string(row.Bytes(5)),
                       .made_at = std::string(row.Bytes(6))});
  }
}

}  // namespace privatemail
