// What has been spent of a privacy budget: durable, charged before sampling, never refunded.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_LEDGER_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_LEDGER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/privacy/guarantee.h"

struct sqlite3;

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
class Ledger {
 public:
  // Opens or creates the file. FAILED_PRECONDITION: it is no ledger, is damaged, or comes from a
  // newer version; the message names it. UNAVAILABLE: it cannot be opened or written.
  static absl::StatusOr<std::unique_ptr<Ledger>> Open(const std::string& path);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Sets what may be spent in all, over the life of the collection. What is spent stays spent.
  // INVALID_ARGUMENT: epsilon not finite and positive, delta outside (0, 1).
  absl::Status Grant(const std::string& collection_uuid, const Budget& budget);

  // An unknown collection has an empty entry.
  absl::StatusOr<LedgerEntry> Show(const std::string& collection_uuid);

  // Spends the guarantee's epsilon and delta, or changes nothing. Sums are compared with the grant
  // up to one part in 10^12, so that three times .1 fit into .3; every calibration keeps a larger
  // surplus. FAILED_PRECONDITION: no budget is granted. RESOURCE_EXHAUSTED: it does not suffice;
  // the message says what is spent, asked and left. UNAVAILABLE: the charge could not be made
  // durable.
  absl::StatusOr<LedgerEntry> Charge(const std::string& collection_uuid,
                                     const Guarantee& guarantee);

 private:
  explicit Ledger(sqlite3* db) : db_(db) {}

  std::mutex mutex_;  // a connection has one transaction at a time
  sqlite3* db_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_LEDGER_H_
