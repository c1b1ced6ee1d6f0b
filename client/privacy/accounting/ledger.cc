#include "privatemail/ledger.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/privacy/accounting/gaussian_tradeoff.h"
#include "client/privacy/accounting/guarantee_fields.h"
#include "client/privacy/accounting/ledger_state.h"
#include "client/privacy/accounting/ledger_witness.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/sqlite/sqlite.h"

namespace privatemail::client {
namespace {

constexpr double kSumSlack = 1e-12;

std::string Now() { return absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()); }

bool Exceeds(double sum, double granted) {
  return !(sum <= granted * (1 + kSumSlack)) || !std::isfinite(sum);
}

// mu of a charge in Gaussian accounting, if it has one.
std::optional<double> MuOfCharge(const Guarantee& guarantee) {
  if (!guarantee.proven) return std::nullopt;
  if (guarantee.gaussian_mu.has_value()) return guarantee.gaussian_mu;
  if (guarantee.delta != 0) return std::nullopt;
  const absl::StatusOr<double> mu = GaussianMuOfPureDp(guarantee.epsilon);
  return mu.ok() ? std::optional<double>(*mu) : std::nullopt;
}

LedgerEntry AddCharge(LedgerEntry entry, const Guarantee& charge, int64_t times) {
  const auto count = static_cast<double>(times);
  entry.sums.epsilon += count * charge.epsilon;
  entry.sums.delta += count * charge.delta;
  const std::optional<double> mu = MuOfCharge(charge);
  entry.gaussian_mu =
      mu.has_value() && entry.gaussian_mu.has_value()
          ? std::optional<double>(std::hypot(*entry.gaussian_mu, std::sqrt(count) * *mu))
          : std::nullopt;
  entry.same_neighbours =
      entry.same_neighbours && (entry.releases == 0 || entry.neighbours == charge.neighbours);
  entry.neighbours = entry.same_neighbours ? charge.neighbours : "";
  entry.releases += times;
  entry.pure_releases += charge.delta == 0 ? times : 0;
  entry.all_proven = entry.all_proven && charge.proven;
  return entry;
}

// whose: empty, or " over all collections of operator acme".
absl::Status CheckBudget(const LedgerEntry& entry, const Guarantee& asked, int64_t times,
                         absl::string_view whose) {
  if (!entry.granted.has_value()) {
    return FieldError(absl::StatusCode::kFailedPrecondition, "budget",
                      "granted to the collection before it is searched", "absent");
  }
  if (entry.accounting == Accounting::kGaussian && !MuOfCharge(asked).has_value()) {
    return FieldError(absl::StatusCode::kFailedPrecondition, "accounting",
                      absl::StrCat("basic for ", asked.source, " with delta ", asked.delta,
                                   ", which is neither proven Gaussian noise nor pure", whose),
                      "gaussian");
  }
  const Budget after = AddCharge(entry, asked, times).spent();
  const bool epsilon = Exceeds(after.epsilon, entry.granted->epsilon);
  if (!epsilon && !Exceeds(after.delta, entry.granted->delta)) return absl::OkStatus();
  if (!epsilon && entry.granted->delta == 0 && asked.delta > 0) {
    return FieldError(
        absl::StatusCode::kResourceExhausted, "budget",
        absl::StrCat("granted with a delta for releases that spend delta ", asked.delta, whose),
        "granted without one");
  }
  const Budget spent = entry.spent();
  const Budget left = entry.left();
  const std::string together =
      entry.accounting == Accounting::kGaussian
          ? absl::StrCat("; by Gaussian accounting what was spent and what is asked are epsilon ",
                         after.epsilon, " together")
          : "";
  return FieldError(absl::StatusCode::kResourceExhausted, "budget",
                    absl::StrCat("left for epsilon ", asked.epsilon, " delta ", asked.delta, whose),
                    absl::StrCat("exhausted in ", epsilon ? "epsilon" : "delta", ": spent epsilon ",
                                 spent.epsilon, " delta ", spent.delta, ", left epsilon ",
                                 left.epsilon, " delta ", left.delta, together));
}

absl::Status CheckBudgets(const LedgerEntry& entry, const std::vector<OperatorEntry>& operators,
                          const Guarantee& asked, int64_t times) {
  PM_RETURN_IF_ERROR(CheckBudget(entry, asked, times, ""));
  for (const OperatorEntry& one : operators) {
    PM_RETURN_IF_ERROR(CheckBudget(one.sum, asked, times, absl::StrCat(" ", SumOf(one))));
  }
  return absl::OkStatus();
}

// A delta of 0 is allowed for sums of pure releases; a mu needs delta > 0 to have an epsilon.
absl::Status CheckGrantedBudget(const Budget& budget, Accounting accounting) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", budget.epsilon));
  const double delta = budget.delta;
  if (accounting == Accounting::kBasic) return CheckSpentDelta(delta);
  if (delta > 0 && delta < 1) return absl::OkStatus();
  return InvalidField(
      "delta",
      absl::StrCat("must be strictly between 0 and 1 for Gaussian accounting, but is ", delta));
}

// whose: a collection's UUID, or an operator's name.
LedgerChange GrantOf(LedgerChange::Kind kind, const std::string& whose, const Budget& budget,
                     Accounting accounting, const std::string& server) {
  return {.kind = kind,
          .collection = whose,
          .epsilon = budget.epsilon,
          .delta = budget.delta,
          .accounting = accounting,
          .gaussian_mu = std::nullopt,
          .neighbours = "",
          .source = "",
          .made_at = Now(),
          .server = server};
}

absl::Status CheckAccountingChange(const LedgerEntry& entry, Accounting accounting) {
  if (entry.pure_releases == 0 || entry.accounting == accounting) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("accounting cannot change after releases with delta 0, expected ",
                   entry.accounting == Accounting::kBasic ? "basic" : "gaussian",
                   " as before: ", entry.pure_releases, " of ", entry.releases,
                   " releases have delta 0, and no proof covers the change"));
}

// The filter of Gaussian accounting covers releases with delta 0 only from the time on when they
// were under it. added: what joins, for messages.
absl::Status CheckJoinsFilter(const LedgerEntry& before, const LedgerEntry& joined,
                              Accounting accounting, absl::string_view added) {
  if (accounting != Accounting::kGaussian || joined.pure_releases <= before.pure_releases) {
    return absl::OkStatus();
  }
  return FieldError(absl::StatusCode::kFailedPrecondition, "accounting",
                    absl::StrCat("basic for ", added, ", since no proof covers its releases ",
                                 "with delta 0 that were made before"),
                    "gaussian");
}

absl::Status WitnessMismatchError(const std::string& path, absl::string_view why) {
  return absl::DataLossError(absl::StrCat(
      "privacy ledger ", path, " does not match its witness (", why, "): ",
      "one of them was copied, restored or lost; charges since are unknown, so none is accepted. ",
      "Its history stays readable (`privatemail budget history NAME`). To go on, put the latest of "
      "both files back by renaming, or ",
      "move it and ", path, ".witness away and grant at most the budget that is certainly left"));
}

std::string DescribeMismatch(const LedgerState& state, const LedgerWitness::Record& witness) {
  if (witness.generation == state.generation) {
    return absl::StrCat("both count ", state.generation,
                        " changes, but this witness is not the one that was last written");
  }
  return absl::StrCat("the ", witness.generation > state.generation ? "ledger" : "witness",
                      " is the older: the ledger counts ", state.generation,
                      " changes, its witness ", witness.generation);
}

}  // namespace

Budget LedgerEntry::SpentBy(Accounting how) const {
  if (how == Accounting::kBasic || releases == 0) return sums;
  const double delta = granted.has_value() ? granted->delta : 0;
  const absl::StatusOr<double> epsilon = gaussian_mu.has_value()
                                             ? GaussianEpsilon(std::max(*gaussian_mu, 1e-6), delta)
                                             : absl::FailedPreconditionError("a charge has no mu");
  return {epsilon.ok() ? *epsilon : std::numeric_limits<double>::infinity(), delta};
}

Budget LedgerEntry::left() const {
  if (!granted.has_value()) return {};
  return {std::max(0.0, granted->epsilon - spent().epsilon),
          std::max(0.0, granted->delta - spent().delta)};
}

bool LedgerEntry::Affords(const Budget& more) const {
  return granted.has_value() && !Exceeds(sums.epsilon + more.epsilon, granted->epsilon) &&
         !Exceeds(sums.delta + more.delta, granted->delta);
}

Ledger::Ledger(std::unique_ptr<sqlite::Database> database)
    : database_(std::move(database)),
      witness_(std::make_unique<const LedgerWitness>(database_->path() + ".witness")) {}

Ledger::~Ledger() = default;

absl::StatusOr<std::unique_ptr<Ledger>> Ledger::Open(const std::string& path) {
  PM_ASSIGN_OR_RETURN(auto database, sqlite::Database::Open(path));
  std::unique_ptr<Ledger> ledger(new Ledger(std::move(database)));
  PM_RETURN_IF_ERROR(ledger->Initialize());
  return ledger;
}

absl::Status Ledger::Initialize() {
  // EXTRA also syncs the folder after a commit: a charge survives the loss of power. A write-ahead
  // log would take fewer syncs, but its frames would show the last state beside a database that was
  // put back from a copy, whose other pages are old: charges would vanish.
  PM_RETURN_IF_ERROR(
      database_->Execute("PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA"));
  PM_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::Begin(database_.get()));
  PM_ASSIGN_OR_RETURN(const bool exists, HasLedgerTables(*database_));
  return exists ? transaction.Commit() : CreateFiles(std::move(transaction));
}

absl::Status Ledger::CreateFiles(sqlite::Transaction transaction) {
  const absl::StatusOr<LedgerWitness::Record> earlier = witness_->Read();
  if (earlier.ok() && earlier->generation > 0) {
    return WitnessMismatchError(
        database_->path(),
        absl::StrCat("it is new, but its witness counts ", earlier->generation, " changes"));
  }
  if (!earlier.ok() && !absl::IsNotFound(earlier.status())) return earlier.status();
  if (::chmod(database_->path().c_str(), 0600) != 0) {
    return absl::UnavailableError(
        absl::StrCat(database_->path(), " cannot be made its owner's alone"));
  }
  LedgerState state;
  PM_ASSIGN_OR_RETURN(state.id, NewLedgerId());
  PM_ASSIGN_OR_RETURN(state.change, NewLedgerId());
  PM_RETURN_IF_ERROR(witness_->Create({.ledger_id = state.id, .change = state.change}));
  PM_RETURN_IF_ERROR(CreateLedgerTables(*database_));
  PM_RETURN_IF_ERROR(WriteLedgerState(*database_, state));
  return transaction.Commit();
}

// Starts a write transaction, after repairing a change that a killed process left incomplete.
absl::StatusOr<sqlite::Transaction> Ledger::BeginTransaction() {
  while (true) {
    PM_ASSIGN_OR_RETURN(sqlite::Transaction transaction,
                        sqlite::Transaction::Begin(database_.get()));
    PM_ASSIGN_OR_RETURN(const LedgerState state, ReadLedgerState(*database_));
    const absl::StatusOr<LedgerWitness::Record> record = witness_->Read();
    if (absl::IsUnavailable(record.status())) return record.status();
    if (!record.ok()) return WitnessMismatchError(database_->path(), record.status().message());
    switch (CompareWithWitness(state, *record)) {
      case LedgerMatch::kWitnessed:
        return transaction;
      case LedgerMatch::kNotWitnessed: {
        const absl::Status witnessed = witness_->Replace(
            *record,
            {.ledger_id = state.id, .generation = state.generation, .change = state.change});
        // Any other error shows again when the next round reads the witness.
        if (absl::IsUnavailable(witnessed)) return witnessed;
        break;
      }
      case LedgerMatch::kMismatch:
        return WitnessMismatchError(database_->path(), DescribeMismatch(state, *record));
    }
  }
}

// Checks after witnessing that the change is still there: the ledger file may have been replaced
// since the commit.
absl::Status Ledger::Apply(const LedgerChange& change, int64_t times,
                           sqlite::Transaction transaction) {
  const auto apply = [&]() -> absl::Status {
    PM_ASSIGN_OR_RETURN(LedgerState state, ReadLedgerState(*database_));
    PM_ASSIGN_OR_RETURN(const std::string id, NewLedgerId());
    ++state.generation;
    state.previous_change = std::exchange(state.change, id);
    state.previous_stamp = std::exchange(state.witness_stamp, 0);
    for (int64_t i = 0; i < times; ++i) {
      PM_RETURN_IF_ERROR(WriteLedgerChange(*database_, change, id));
    }
    PM_RETURN_IF_ERROR(WriteLedgerState(*database_, state));
    PM_RETURN_IF_ERROR(transaction.Commit());  // it counts from here on
    PM_ASSIGN_OR_RETURN(const sqlite::Transaction witnessed, BeginTransaction());
    PM_ASSIGN_OR_RETURN(const bool found, HasLedgerChange(*database_, id));
    return found ? absl::OkStatus()
                 : WitnessMismatchError(database_->path(),
                                        "the change that was just made is not in it");
  };
  const absl::Status applied = apply();
  if (applied.ok() || absl::IsDataLoss(applied)) return applied;
  return absl::UnavailableError(absl::StrCat(
      "the ledger could not be written, and ",
      times == 1 ? "the change" : absl::StrCat(times, " charges that were made together"),
      " may count nevertheless: ", applied.message()));
}

absl::Status Ledger::Grant(const std::string& collection_uuid, const Budget& budget,
                           Accounting accounting, const std::string& server) {
  PM_RETURN_IF_ERROR(CheckGrantedBudget(budget, accounting));
  const std::lock_guard lock(mutex_);
  PM_ASSIGN_OR_RETURN(sqlite::Transaction transaction, BeginTransaction());
  PM_ASSIGN_OR_RETURN(const LedgerEntry entry, ReadLedgerEntry(*database_, collection_uuid));
  PM_RETURN_IF_ERROR(CheckAccountingChange(entry, accounting));
  PM_RETURN_IF_ERROR(JoinOperators(collection_uuid, server).status());
  return Apply(GrantOf(LedgerChange::Kind::kGrant, collection_uuid, budget, accounting, server),
               /*times=*/1, std::move(transaction));
}

absl::Status Ledger::GrantOperator(const std::string& name, const std::string& server,
                                   const Budget& budget, Accounting accounting) {
  constexpr size_t kMaxNameBytes = 100;
  if (name.empty() || name.size() > kMaxNameBytes || Printable(name) != name) {
    return FieldError("operator",
                      absl::StrCat("a name of 1 to ", kMaxNameBytes, " printable bytes"),
                      absl::StrCat("\"", Printable(name), "\""));
  }
  if (server.empty()) return FieldError("server", "given for an operator", "absent");
  PM_RETURN_IF_ERROR(CheckGrantedBudget(budget, accounting));
  const std::lock_guard lock(mutex_);
  PM_ASSIGN_OR_RETURN(sqlite::Transaction transaction, BeginTransaction());
  PM_ASSIGN_OR_RETURN(const std::vector<std::string> others,
                      ReadOperatorNames(*database_, "", server));
  for (const std::string& other : others) {
    if (other == name) continue;
    return FieldError(absl::StatusCode::kFailedPrecondition, "operator",
                      absl::StrCat(other, ", to whom ", server, " belongs"), name);
  }
  PM_ASSIGN_OR_RETURN(const LedgerEntry before, ReadOperatorEntry(*database_, name, "", ""));
  PM_ASSIGN_OR_RETURN(const LedgerEntry joined, ReadOperatorEntry(*database_, name, "", server));
  if (before.granted.has_value()) PM_RETURN_IF_ERROR(CheckAccountingChange(joined, accounting));
  PM_RETURN_IF_ERROR(CheckJoinsFilter(before, joined, accounting, server));
  return Apply(GrantOf(LedgerChange::Kind::kOperatorGrant, name, budget, accounting, server),
               /*times=*/1, std::move(transaction));
}

absl::StatusOr<std::vector<OperatorEntry>> Ledger::ReadOperators(const std::string& collection_uuid,
                                                                 const std::string& server) {
  PM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                      ReadOperatorNames(*database_, collection_uuid, server));
  std::vector<OperatorEntry> operators;
  for (const std::string& name : names) {
    PM_ASSIGN_OR_RETURN(const LedgerEntry sum,
                        ReadOperatorEntry(*database_, name, collection_uuid, ""));
    operators.push_back({name, sum});
  }
  return operators;
}

// ReadOperators refuses nothing; this refuses a collection that may not join them.
absl::StatusOr<std::vector<OperatorEntry>> Ledger::JoinOperators(const std::string& collection_uuid,
                                                                 const std::string& server) {
  PM_ASSIGN_OR_RETURN(std::vector<OperatorEntry> operators, ReadOperators(collection_uuid, server));
  for (const OperatorEntry& one : operators) {
    PM_ASSIGN_OR_RETURN(const LedgerEntry before, ReadOperatorEntry(*database_, one.name, "", ""));
    PM_RETURN_IF_ERROR(
        CheckJoinsFilter(before, one.sum, one.sum.accounting,
                         absl::StrCat("collection ", collection_uuid, " ", SumOf(one))));
  }
  return operators;
}

absl::StatusOr<std::vector<OperatorEntry>> Ledger::ShowOperators(const std::string& collection_uuid,
                                                                 const std::string& server) {
  const std::lock_guard lock(mutex_);
  PM_RETURN_IF_ERROR(BeginTransaction().status());
  return ReadOperators(collection_uuid, server);
}

absl::StatusOr<OperatorEntry> Ledger::ShowOperator(const std::string& name) {
  const std::lock_guard lock(mutex_);
  PM_RETURN_IF_ERROR(BeginTransaction().status());
  PM_ASSIGN_OR_RETURN(LedgerEntry sum, ReadOperatorEntry(*database_, name, "", ""));
  return OperatorEntry{name, std::move(sum)};
}

absl::StatusOr<bool> Ledger::HasOperators() {
  const std::lock_guard lock(mutex_);
  PM_ASSIGN_OR_RETURN(const std::vector<std::string> names, ReadOperatorNames(*database_, "", ""));
  return !names.empty();
}

absl::StatusOr<LedgerEntry> Ledger::Show(const std::string& collection_uuid) {
  const std::lock_guard lock(mutex_);
  PM_RETURN_IF_ERROR(BeginTransaction().status());
  PM_ASSIGN_OR_RETURN(LedgerEntry entry, ReadLedgerEntry(*database_, collection_uuid));
  if (batch_.collection == collection_uuid && batch_.process == ::getpid()) {
    entry.charged_ahead = batch_.not_taken;
  }
  return entry;
}

absl::StatusOr<std::vector<std::string>> Ledger::Collections() {
  const std::lock_guard lock(mutex_);
  return ReadCollections(*database_);
}

absl::StatusOr<std::vector<LedgerChange>> Ledger::History(const std::string& collection_uuid) {
  const std::lock_guard lock(mutex_);
  return ReadLedgerChanges(*database_, collection_uuid);
}

absl::StatusOr<LedgerEntry> Ledger::Charge(const std::string& collection_uuid,
                                           const Guarantee& guarantee, const std::string& server) {
  PM_RETURN_IF_ERROR(Validate(guarantee));
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", guarantee.epsilon));
  if (guarantee.gaussian_mu.has_value()) {  // 0 would be free in Gaussian accounting
    PM_RETURN_IF_ERROR(CheckFinitePositive("gaussian_mu", *guarantee.gaussian_mu));
  }
  const std::lock_guard lock(mutex_);
  if (batch_.not_taken > 0 && batch_.process == ::getpid() &&
      batch_.collection == collection_uuid && batch_.server == server &&
      batch_.guarantee == guarantee) {
    batch_.entry.charged_ahead = --batch_.not_taken;
    return batch_.entry;
  }
  PM_ASSIGN_OR_RETURN(sqlite::Transaction transaction, BeginTransaction());
  PM_ASSIGN_OR_RETURN(const LedgerEntry entry, ReadLedgerEntry(*database_, collection_uuid));
  PM_ASSIGN_OR_RETURN(const std::vector<OperatorEntry> operators,
                      JoinOperators(collection_uuid, server));
  int64_t times = batch_.not_taken > 0 ? 1 : std::clamp<int64_t>(batch_.to_come, 1, batch_.next);
  if (times > 1 && !CheckBudgets(entry, operators, guarantee, times).ok()) times = 1;
  PM_RETURN_IF_ERROR(CheckBudgets(entry, operators, guarantee, times));
  PM_RETURN_IF_ERROR(Apply({.kind = LedgerChange::Kind::kCharge,
                            .collection = collection_uuid,
                            .epsilon = guarantee.epsilon,
                            .delta = guarantee.delta,
                            .gaussian_mu = MuOfCharge(guarantee),
                            .neighbours = guarantee.neighbours,
                            .proven = guarantee.proven,
                            .source = guarantee.source,
                            .made_at = Now(),
                            .server = server},
                           times, std::move(transaction)));
  LedgerEntry after = AddCharge(entry, guarantee, times);
  after.charged_ahead = times - 1;
  batch_.to_come = std::max<int64_t>(0, batch_.to_come - times);
  if (batch_.not_taken == 0) {
    batch_.next = 2 * times;
    batch_.not_taken = times - 1;
    batch_.process = ::getpid();
    batch_.collection = collection_uuid;
    batch_.server = server;
    batch_.guarantee = guarantee;
    batch_.entry = after;
  }
  return after;
}

void Ledger::StartBatch(int64_t releases) {
  const std::lock_guard lock(mutex_);
  batch_ = {.to_come = releases};
}

int64_t Ledger::EndBatch() {
  const std::lock_guard lock(mutex_);
  return std::exchange(batch_, Batch{}).not_taken;
}

std::string SumOf(const OperatorEntry& entry) {
  return absl::StrCat("over all collections of operator ", entry.name);
}

ChargeFunction ChargeTo(Ledger& ledger, const std::string& collection_uuid) {
  return [&ledger, collection_uuid](const Guarantee& guarantee) {
    return ledger.Charge(collection_uuid, guarantee).status();
  };
}

}  // namespace privatemail::client
