// Between rows of the ledger's tables and what they stand for. Called by Ledger inside a
// transaction; errors as sqlite::Database. Not installed.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_LEDGER_ROWS_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_LEDGER_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "privatemail/ledger.h"
#include "common/sqlite/sqlite.h"

namespace privatemail::client {

// What the ledger remembers of itself and of its witness.
struct LedgerState {
  std::string id;
  int64_t generation = 0;     // grants and charges so far
  std::string change;         // the last one's name; empty: made by a version without names
  std::string former_change;  // the name of the one before
  int64_t witness_stamp = 0;  // of the witness to this generation; 0: not told yet
  int64_t former_stamp = 0;   // of the witness to the generation before
};

enum class LedgerFile {
  kNew,       // empty
  kUnnamed,   // of schema 3, whose changes have no names
  kOfTheDay,  // of this version
};
// FAILED_PRECONDITION: the file is none of these.
absl::StatusOr<LedgerFile> ExamineLedgerFile(sqlite::Database& database);
absl::Status CreateLedgerTables(sqlite::Database& database);
// From schema 3 to this version's. What is known stays as it is, and without names.
absl::Status AddNamesToLedgerTables(sqlite::Database& database);

absl::StatusOr<LedgerState> ReadLedgerState(sqlite::Database& database);
absl::Status WriteLedgerState(sqlite::Database& database, const LedgerState& state);

absl::Status WriteLedgerChange(sqlite::Database& database, const LedgerChange& change,
                               const std::string& name);
absl::StatusOr<bool> LedgerHoldsChange(sqlite::Database& database, const std::string& name);
absl::StatusOr<LedgerEntry> ReadLedgerEntry(sqlite::Database& database,
                                            const std::string& collection);
// Oldest first.
absl::StatusOr<std::vector<LedgerChange>> ReadLedgerChanges(sqlite::Database& database,
                                                            const std::string& collection);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_LEDGER_ROWS_H_
