#include "client/privacy/ledger.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/privacy/ledger_rows.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/sqlite/sqlite.h"

namespace privatemail {
namespace {

constexpr double kSumSlack = 1e-12;
// A witness that a process wrote just before it was killed was stamped when it was written.
constexpr int64_t kLongestWriteNanoseconds = 60'000'000'000;

std::string Now() { return absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()); }

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

enum class Match { kIntact, kAnnounced, kForeign };

Match Compare(const LedgerState& state, const LedgerWitness::Record& record) {
  if (record.ledger_id != state.id) return Match::kForeign;
  if (record.generation == state.generation) {
    return record.stamped_at_nanoseconds == state.witness_stamp ? Match::kIntact : Match::kForeign;
  }
  const bool just_written = std::llabs(record.stamped_at_nanoseconds -
                                       record.written_at_nanoseconds) < kLongestWriteNanoseconds;
  return record.generation == state.generation + 1 && record.change.has_value() && just_written
             ? Match::kAnnounced
             : Match::kForeign;
}

absl::Status Distrust(const std::string& path, absl::string_view why) {
  return absl::DataLossError(absl::StrCat(
      "privacy ledger ", path, " does not match its witness (", why,
      "): it was copied, moved, restored or lost, and what was spent since is unknown, so nothing "
      "more is. Its content stays readable (privatemail budget history NAME). To start anew, move "
      "it and ",
      path,
      ".witness away and grant with privatemail budget set no more than is "
      "certainly left"));
}

}  // namespace

Budget LedgerEntry::left() const {
  if (!granted.has_value()) return {};
  return {std::max(0.0, granted->epsilon - spent.epsilon),
          std::max(0.0, granted->delta - spent.delta)};
}

Ledger::Ledger(std::unique_ptr<sqlite::Database> database)
    : database_(std::move(database)), witness_(database_->path() + ".witness") {}

Ledger::~Ledger() = default;

absl::StatusOr<std::unique_ptr<Ledger>> Ledger::Open(const std::string& path) {
  PM_ASSIGN_OR_RETURN(auto database, sqlite::Database::Open(path));
  std::unique_ptr<Ledger> ledger(new Ledger(std::move(database)));
  PM_RETURN_IF_ERROR(ledger->Prepare());
  return ledger;
}

absl::Status Ledger::Prepare() {
  // EXTRA also syncs the folder after a commit: a charge survives the loss of power.
  PM_RETURN_IF_ERROR(database_->Execute(
      "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA"));
  PM_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::Begin(database_.get()));
  PM_ASSIGN_OR_RETURN(const bool is_new, LedgerFileIsNew(*database_));
  if (!is_new) return absl::OkStatus();
  const absl::StatusOr<LedgerWitness::Record> earlier = witness_.Read();
  if (earlier.ok() && earlier->generation > 0) {
    return Distrust(database_->path(), absl::StrCat("it is new, but its witness counts ",
                                                    earlier->generation, " changes"));
  }
  if (!earlier.ok() && !absl::IsNotFound(earlier.status())) return earlier.status();
  LedgerState state{.id = absl::StrCat(absl::Hex(absl::GetCurrentTimeNanos()))};
  PM_ASSIGN_OR_RETURN(state.witness_stamp,
                      witness_.Write({.ledger_id = state.id, .change = std::nullopt}));
  PM_RETURN_IF_ERROR(CreateLedgerTables(*database_));
  PM_RETURN_IF_ERROR(WriteLedgerState(*database_, state));
  return transaction.Commit();
}

// A write transaction over a ledger that is known to be complete.
absl::StatusOr<sqlite::Transaction> Ledger::BeginChange() {
  while (true) {
    PM_ASSIGN_OR_RETURN(sqlite::Transaction transaction,
                        sqlite::Transaction::Begin(database_.get()));
    PM_ASSIGN_OR_RETURN(LedgerState state, ReadLedgerState(*database_));
    const absl::StatusOr<LedgerWitness::Record> record = witness_.Read();
    if (!record.ok()) return Distrust(database_->path(), record.status().message());
    switch (Compare(state, *record)) {
      case Match::kIntact:
        return transaction;
      case Match::kForeign:
        return Distrust(database_->path(),
                        absl::StrCat("the ledger counts ", state.generation,
                                     " changes, its witness ", record->generation));
      case Match::kAnnounced:
        // Its writer was killed, or lost power, before it could make the change.
        PM_RETURN_IF_ERROR(WriteLedgerChange(*database_, *record->change));
        state.generation = record->generation;
        state.witness_stamp = record->stamped_at_nanoseconds;
        PM_RETURN_IF_ERROR(WriteLedgerState(*database_, state));
        PM_RETURN_IF_ERROR(transaction.Commit());
    }
  }
}

absl::Status Ledger::Make(const LedgerChange& change, sqlite::Transaction transaction) {
  PM_ASSIGN_OR_RETURN(LedgerState state, ReadLedgerState(*database_));
  ++state.generation;
  PM_ASSIGN_OR_RETURN(
      state.witness_stamp,
      witness_.Write({.ledger_id = state.id, .generation = state.generation, .change = change}));
  PM_RETURN_IF_ERROR(WriteLedgerChange(*database_, change));
  PM_RETURN_IF_ERROR(WriteLedgerState(*database_, state));
  return transaction.Commit();
}

absl::Status Ledger::Grant(const std::string& collection_uuid, const Budget& budget) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", budget.epsilon));
  PM_RETURN_IF_ERROR(CheckOpenUnitInterval("delta", budget.delta));
  const std::lock_guard lock(mutex_);
  PM_ASSIGN_OR_RETURN(sqlite::Transaction transaction, BeginChange());
  return Make({.kind = LedgerChange::Kind::kGrant,
               .collection = collection_uuid,
               .epsilon = budget.epsilon,
               .delta = budget.delta,
               .neighbours = "",
               .source = "",
               .made_at = Now()},
              std::move(transaction));
}

absl::StatusOr<LedgerEntry> Ledger::Show(const std::string& collection_uuid) {
  const std::lock_guard lock(mutex_);
  PM_RETURN_IF_ERROR(BeginChange().status());
  return ReadLedgerEntry(*database_, collection_uuid);
}

absl::StatusOr<std::vector<LedgerChange>> Ledger::History(const std::string& collection_uuid) {
  const std::lock_guard lock(mutex_);
  return ReadLedgerChanges(*database_, collection_uuid);
}

absl::StatusOr<LedgerEntry> Ledger::Charge(const std::string& collection_uuid,
                                           const Guarantee& guarantee) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", guarantee.epsilon));
  PM_RETURN_IF_ERROR(CheckFiniteNonNegative("delta", guarantee.delta));
  const std::lock_guard lock(mutex_);
  PM_ASSIGN_OR_RETURN(sqlite::Transaction transaction, BeginChange());
  PM_ASSIGN_OR_RETURN(LedgerEntry entry, ReadLedgerEntry(*database_, collection_uuid));
  PM_RETURN_IF_ERROR(CheckSuffices(entry, guarantee));
  PM_RETURN_IF_ERROR(Make({.kind = LedgerChange::Kind::kCharge,
                           .collection = collection_uuid,
                           .epsilon = guarantee.epsilon,
                           .delta = guarantee.delta,
                           .neighbours = guarantee.neighbours,
                           .proven = guarantee.proven,
                           .source = guarantee.source,
                           .made_at = Now()},
                          std::move(transaction)));
  entry.spent.epsilon += guarantee.epsilon;
  entry.spent.delta += guarantee.delta;
  ++entry.releases;
  return entry;
}

}  // namespace privatemail
