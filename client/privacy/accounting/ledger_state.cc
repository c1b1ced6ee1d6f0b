#include "client/privacy/accounting/ledger_state.h"

#include <array>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/privacy/sampling/bit_source.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

constexpr int kApplicationId = 0x504d4c47;  // "PMLG"
constexpr int kSchemaVersion = 2;

constexpr char kTables[] = R"sql(
  CREATE TABLE state(
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id TEXT NOT NULL, generation INTEGER NOT NULL, witness_stamp INTEGER NOT NULL,
    former_stamp INTEGER NOT NULL, change TEXT NOT NULL, former_change TEXT NOT NULL) STRICT;
  CREATE TABLE changes(
    number INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL, collection TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL,
    gaussian_mu REAL, accounting INTEGER NOT NULL,
    neighbours TEXT NOT NULL, proven INTEGER NOT NULL, source TEXT NOT NULL, made_at TEXT NOT NULL,
    name TEXT NOT NULL) STRICT;
  CREATE INDEX changes_of_collection ON changes(collection, kind);
)sql";

// Since version 2. Charges of version 1 have no server.
constexpr char kServerColumn[] = R"sql(
  ALTER TABLE changes ADD COLUMN server TEXT NOT NULL DEFAULT '';
  CREATE INDEX changes_of_server ON changes(server, kind, collection);
)sql";

// Columns hold 1 for a grant, 2 for a charge and 3 for an operator's grant.
constexpr int64_t ToColumn(LedgerChange::Kind kind) { return static_cast<int64_t>(kind) + 1; }
constexpr int64_t kChargeKind = ToColumn(LedgerChange::Kind::kCharge);
constexpr int64_t kOperatorKind = ToColumn(LedgerChange::Kind::kOperatorGrant);

absl::StatusOr<int64_t> QueryInt(sqlite::Database& database, absl::string_view sql) {
  PM_ASSIGN_OR_RETURN(sqlite::Statement statement, database.Prepare(sql));
  PM_RETURN_IF_ERROR(statement.Step().status());
  return statement.Int(0);
}

}  // namespace

absl::StatusOr<std::string> NewLedgerId() {
  std::array<uint8_t, 16> bits;
  SecureBits source;
  PM_RETURN_IF_ERROR(source.Fill(absl::MakeSpan(bits)));
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bits.data()), bits.size()));
}

LedgerMatch CompareWithWitness(const LedgerState& state, const LedgerWitness::Record& record) {
  if (record.ledger_id != state.id) return LedgerMatch::kMismatch;
  const bool names_last = record.change == state.change && record.generation == state.generation;
  const bool names_previous =
      record.change == state.previous_change && record.generation == state.generation - 1;
  const int64_t stamp = names_last ? state.witness_stamp : state.previous_stamp;
  if (!record.is_original && (record.stamp == 0 || record.stamp != stamp)) {
    return LedgerMatch::kMismatch;
  }
  if (names_last) return LedgerMatch::kWitnessed;
  return names_previous ? LedgerMatch::kNotWitnessed : LedgerMatch::kMismatch;
}

absl::StatusOr<bool> HasLedgerTables(sqlite::Database& database) {
  PM_ASSIGN_OR_RETURN(const int64_t application, QueryInt(database, "PRAGMA application_id"));
  PM_ASSIGN_OR_RETURN(const int64_t version, QueryInt(database, "PRAGMA user_version"));
  PM_ASSIGN_OR_RETURN(const int64_t tables,
                      QueryInt(database, "SELECT count(*) FROM sqlite_master"));
  if (application == 0 && version == 0 && tables == 0) return false;
  if (application == kApplicationId && version == kSchemaVersion) return true;
  if (application == kApplicationId && version == 1) {
    PM_RETURN_IF_ERROR(
        database.Execute(absl::StrCat(kServerColumn, "PRAGMA user_version = ", kSchemaVersion)));
    return true;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      database.path(), " is no ledger of this version: expected application ", kApplicationId,
      " version ", kSchemaVersion, ", got ", application, " version ", version));
}

absl::Status CreateLedgerTables(sqlite::Database& database) {
  return database.Execute(absl::StrCat(kTables, kServerColumn, "PRAGMA application_id = ",
                                       kApplicationId, "; PRAGMA user_version = ", kSchemaVersion));
}

absl::StatusOr<LedgerState> ReadLedgerState(sqlite::Database& database) {
  PM_ASSIGN_OR_RETURN(
      sqlite::Statement row,
      database.Prepare("SELECT id, generation, witness_stamp, former_stamp, change, former_change "
                       "FROM state"));
  PM_ASSIGN_OR_RETURN(const bool found, row.Step());
  if (!found) return absl::DataLossError(absl::StrCat(database.path(), " has lost its state row"));
  return LedgerState{.id = std::string(row.Bytes(0)),
                     .generation = row.Int(1),
                     .change = std::string(row.Bytes(4)),
                     .previous_change = std::string(row.Bytes(5)),
                     .witness_stamp = row.Int(2),
                     .previous_stamp = row.Int(3)};
}

absl::Status WriteLedgerState(sqlite::Database& database, const LedgerState& state) {
  PM_ASSIGN_OR_RETURN(
      sqlite::Statement row,
      database.Prepare("INSERT OR REPLACE INTO state VALUES (1, ?, ?, ?, ?, ?, ?)"));
  return row.BindText(1, state.id)
      .Bind(2, state.generation)
      .Bind(3, state.witness_stamp)
      .Bind(4, state.previous_stamp)
      .BindText(5, state.change)
      .BindText(6, state.previous_change)
      .Run();
}

absl::Status WriteLedgerChange(sqlite::Database& database, const LedgerChange& change,
                               const std::string& id) {
  PM_ASSIGN_OR_RETURN(
      sqlite::Statement row,
      database.Prepare("INSERT INTO changes(kind, collection, epsilon, delta, accounting, "
                       "neighbours, proven, source, made_at, gaussian_mu, name, server) "
                       "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  row.Bind(1, ToColumn(change.kind))
      .BindText(2, change.collection)
      .Bind(3, change.epsilon)
      .Bind(4, change.delta)
      .Bind(5, static_cast<int64_t>(change.accounting))
      .BindText(6, change.neighbours)
      .Bind(7, int64_t{change.proven})
      .BindText(8, change.source)
      .BindText(9, change.made_at)
      .BindText(11, id)
      .BindText(12, change.server);
  if (change.gaussian_mu.has_value()) row.Bind(10, *change.gaussian_mu);  // NULL otherwise
  return row.Run();
}

absl::StatusOr<bool> HasLedgerChange(sqlite::Database& database, const std::string& id) {
  PM_ASSIGN_OR_RETURN(
      sqlite::Statement row,
      database.Prepare("SELECT 1 FROM changes WHERE name = ? ORDER BY number DESC LIMIT 1"));
  row.BindText(1, id);
  return row.Step();
}

namespace {

// The last grant of this kind under the first key, and all charges of these collections.
// collections: SQL for a set, of the keys ?1, ?2, ...
absl::StatusOr<LedgerEntry> ReadEntry(sqlite::Database& database, LedgerChange::Kind granted_as,
                                      absl::string_view collections,
                                      const std::vector<std::string>& keys) {
  LedgerEntry entry;
  PM_ASSIGN_OR_RETURN(
      sqlite::Statement grant,
      database.Prepare("SELECT epsilon, delta, accounting FROM changes WHERE collection = ? "
                       "AND kind = ? ORDER BY number DESC LIMIT 1"));
  grant.BindText(1, keys.front()).Bind(2, ToColumn(granted_as));
  PM_ASSIGN_OR_RETURN(const bool granted, grant.Step());
  if (granted) {
    entry.granted = Budget{grant.Double(0), grant.Double(1)};
    entry.accounting = static_cast<Accounting>(grant.Int(2));
  }
  PM_ASSIGN_OR_RETURN(
      sqlite::Statement sum,
      database.Prepare(
          absl::StrCat("SELECT total(epsilon), total(delta), count(*), count(gaussian_mu), "
                       "total(gaussian_mu * gaussian_mu), min(proven), "
                       "count(DISTINCT neighbours), total(delta = 0), max(neighbours) FROM changes "
                       "WHERE kind = ",
                       kChargeKind, " AND collection IN (", collections, ")")));
  for (size_t i = 0; i < keys.size(); ++i) sum.BindText(static_cast<int>(i) + 1, keys[i]);
  PM_RETURN_IF_ERROR(sum.Step().status());
  entry.sums = {sum.Double(0), sum.Double(1)};
  entry.releases = sum.Int(2);
  entry.pure_releases = static_cast<int64_t>(sum.Double(7));
  entry.all_proven = entry.releases == 0 || sum.Int(5) != 0;
  entry.same_neighbours = sum.Int(6) <= 1;
  if (entry.releases > 0 && entry.same_neighbours) entry.neighbours = std::string(sum.Bytes(8));
  if (sum.Int(3) == entry.releases) entry.gaussian_mu = std::sqrt(sum.Double(4));
  return entry;
}

}  // namespace

absl::StatusOr<LedgerEntry> ReadLedgerEntry(sqlite::Database& database,
                                            const std::string& collection) {
  return ReadEntry(database, LedgerChange::Kind::kGrant, "?1", {collection});
}

absl::StatusOr<LedgerEntry> ReadOperatorEntry(sqlite::Database& database, const std::string& name,
                                              const std::string& collection,
                                              const std::string& server) {
  return ReadEntry(
      database, LedgerChange::Kind::kOperatorGrant,
      absl::StrCat("SELECT collection FROM changes WHERE kind <> ", kOperatorKind,
                   " AND server <> '' AND server IN "
                   "(SELECT server FROM changes WHERE kind = ",
                   kOperatorKind, " AND collection = ?1 UNION SELECT ?3) UNION SELECT ?2"),
      {name, collection, server});
}

namespace {

absl::StatusOr<std::vector<std::string>> ReadTexts(sqlite::Statement& row) {
  std::vector<std::string> texts;
  while (true) {
    PM_ASSIGN_OR_RETURN(const bool found, row.Step());
    if (!found) return texts;
    texts.emplace_back(row.Bytes(0));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadOperatorNames(sqlite::Database& database,
                                                           const std::string& collection,
                                                           const std::string& server) {
  PM_ASSIGN_OR_RETURN(sqlite::Statement row,
                      database.Prepare(absl::StrCat(
                          "SELECT DISTINCT collection FROM changes WHERE kind = ", kOperatorKind,
                          " AND (server = ?2 OR ?1 = '' AND ?2 = '' OR server IN "
                          "(SELECT server FROM changes WHERE kind <> ",
                          kOperatorKind, " AND collection = ?1)) ORDER BY collection")));
  row.BindText(1, collection).BindText(2, server);
  return ReadTexts(row);
}

absl::StatusOr<std::vector<std::string>> ReadCollections(sqlite::Database& database) {
  PM_ASSIGN_OR_RETURN(
      sqlite::Statement row,
      database.Prepare(absl::StrCat("SELECT collection FROM changes WHERE kind <> ", kOperatorKind,
                                    " GROUP BY collection ORDER BY MIN(number)")));
  return ReadTexts(row);
}

absl::StatusOr<std::vector<LedgerChange>> ReadLedgerChanges(sqlite::Database& database,
                                                            const std::string& collection) {
  PM_ASSIGN_OR_RETURN(
      sqlite::Statement row,
      database.Prepare("SELECT kind, epsilon, delta, accounting, neighbours, proven, source, "
                       "made_at, gaussian_mu, gaussian_mu IS NOT NULL, collection, server "
                       "FROM changes WHERE collection = ?1 AND kind <> ?2 OR kind = ?2 AND "
                       "collection IN (SELECT collection FROM changes WHERE kind = ?2 AND server "
                       "IN (SELECT server FROM changes WHERE kind <> ?2 AND collection = ?1)) "
                       "ORDER BY number"));
  row.BindText(1, collection).Bind(2, kOperatorKind);
  std::vector<LedgerChange> changes;
  while (true) {
    PM_ASSIGN_OR_RETURN(const bool found, row.Step());
    if (!found) return changes;
    LedgerChange& change = changes.emplace_back();
    change.kind = static_cast<LedgerChange::Kind>(row.Int(0) - 1);
    change.collection = std::string(row.Bytes(10));
    change.server = std::string(row.Bytes(11));
    change.epsilon = row.Double(1);
    change.delta = row.Double(2);
    change.accounting = static_cast<Accounting>(row.Int(3));
    change.neighbours = std::string(row.Bytes(4));
    change.proven = row.Int(5) != 0;
    change.source = std::string(row.Bytes(6));
    change.made_at = std::string(row.Bytes(7));
    if (row.Int(9) != 0) change.gaussian_mu = row.Double(8);
  }
}

}  // namespace privatemail::client
