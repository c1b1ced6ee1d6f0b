// What has been spent of a privacy budget: durable, charged before sampling, never refunded.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_LEDGER_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_LEDGER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/privacy/guarantee.h"
#include "client/privacy/ledger_witness.h"

namespace privatemail::sqlite {
class Database;
class Transaction;
}  // namespace privatemail::sqlite

namespace privatemail {

struct Budget {
  double epsilon = 0;
  double delta = 0;
};

struct LedgerEntry {
  std::optional<Budget> granted;  // none: releases are refused
  Budget spent;                   // basic composition: sums
  int64_t releases = 0;

  // granted - spent, never negative; zero when nothing is granted.
  Budget left() const;
};

// A table of budgets and charges, keyed by the UUID of a collection and not by its address or name,
// which a server may change. Lives in an SQLite file on the client; sees no query. Every change is
// one transaction that is on disk before the call returns, so a killed process has either charged
// or not sampled, and two processes at once cannot spend the same epsilon. Thread-safe.
//
// Time does not run backwards in it. Each change is announced, durably, in a witness beside the
// file (ledger_witness.h) before it is made, and counted in both. A change announced and never made
// is made by whoever comes next. A ledger that was copied, restored from a backup or lost, alone or
// with its witness, does not match and refuses to spend: what was spent since is unknown. Only who
// restores the whole disk, kernel time stamps included, can go back unnoticed.
class Ledger {
 public:
  // Opens or creates the file and `path`.witness. FAILED_PRECONDITION: it cannot be opened, is no
  // ledger, or comes from another version; DATA_LOSS: it is damaged; UNAVAILABLE: it is in use or
  // cannot be written. Messages name the file.
  static absl::StatusOr<std::unique_ptr<Ledger>> Open(const std::string& path);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Sets what may be spent in all, over the life of the collection. What is spent stays spent.
  // INVALID_ARGUMENT: epsilon not finite and positive, delta outside (0, 1). DATA_LOSS: the ledger
  // does not match its witness.
  absl::Status Grant(const std::string& collection_uuid, const Budget& budget);

  // An unknown collection has an empty entry. DATA_LOSS as above.
  absl::StatusOr<LedgerEntry> Show(const std::string& collection_uuid);

  // Every grant and charge of a collection, oldest first: also those of a ledger that Charge
  // refuses.
  absl::StatusOr<std::vector<LedgerChange>> History(const std::string& collection_uuid);

  // Spends the guarantee's epsilon and delta, or changes nothing. Sums are compared with the grant
  // up to one part in 10^12, so that three times .1 fit into .3; every calibration keeps a larger
  // surplus. FAILED_PRECONDITION: no budget is granted. RESOURCE_EXHAUSTED: it does not suffice;
  // the message says what is spent, asked and left. UNAVAILABLE: the charge could not be made
  // durable. DATA_LOSS as above.
  absl::StatusOr<LedgerEntry> Charge(const std::string& collection_uuid,
                                     const Guarantee& guarantee);

 private:
  explicit Ledger(std::unique_ptr<sqlite::Database> database);

  absl::Status Prepare();
  absl::StatusOr<sqlite::Transaction> BeginChange();
  absl::Status Make(const LedgerChange& change, sqlite::Transaction transaction);

  std::mutex mutex_;  // a connection has one transaction at a time
  std::unique_ptr<sqlite::Database> database_;
  LedgerWitness witness_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_LEDGER_H_
