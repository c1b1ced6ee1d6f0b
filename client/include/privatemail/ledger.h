// What has been spent of a privacy budget: durable, charged before sampling, never refunded.
#ifndef PRIVATEMAIL_LEDGER_H_
#define PRIVATEMAIL_LEDGER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "privatemail/guarantee.h"
#include "privatemail/ledger_witness.h"

namespace privatemail::sqlite {
class Database;
class Transaction;
}  // namespace privatemail::sqlite

namespace privatemail::client {

struct LedgerState;

struct Budget {
  double epsilon = 0;
  double delta = 0;
};

// How charges add up against a grant. The grant says which: to follow whichever is cheaper from
// release to release is not proven when releases are chosen by what earlier ones said.
enum class Accounting {
  kBasic = 0,     // sums of epsilon and delta
  kGaussian = 1,  // mu = sqrt(sum mu_i^2), within the mu that has (epsilon, delta): exact for
                  // Gaussian noise, also for charges chosen adaptively (Dong, Roth, Su 2022;
                  // Smith and Thakurta 2022). Every charge must carry a mu or be pure.
};

struct LedgerChange {
  enum class Kind { kGrant, kCharge };
  Kind kind = Kind::kCharge;
  std::string collection;
  double epsilon = 0;
  double delta = 0;
  Accounting accounting = Accounting::kBasic;  // of a grant
  std::optional<double> gaussian_mu;           // of a charge
  std::string neighbours;
  bool proven = false;
  std::string source;
  std::string made_at;  // RFC 3339
};

struct LedgerEntry {
  std::optional<Budget> granted;  // none: releases are refused
  Accounting accounting = Accounting::kBasic;
  Budget sums;                        // of all charges: basic composition
  std::optional<double> gaussian_mu;  // of all charges together, where every one has a mu
  int64_t releases = 0;
  bool all_proven = true;  // no charge follows a printed formula
  bool same_neighbours =
      true;  // all charges speak of the same neighbours; sums hold for each alone

  // What all charges together cost. Basic: the sums. Gaussian: the epsilon that belongs to the
  // granted delta, which is a property of the whole and stands there once; infinite where a charge
  // has no mu.
  Budget spent() const { return SpentBy(accounting); }
  Budget SpentBy(Accounting how) const;

  // granted - spent, never negative; zero when nothing is granted.
  Budget left() const;

  // Whether charges of these sums still fit a grant with basic accounting.
  bool Affords(const Budget& more) const;
};

// A table of budgets and charges, keyed by the UUID of a collection and not by its address or name,
// which a server may change. Lives in an SQLite file on the client; sees no query. Every change is
// one transaction that is on disk before the call returns, so a killed process has either charged
// or not sampled, and two processes at once cannot spend the same epsilon. Thread-safe.
//
// Time does not run backwards in it. Each change has a random name that the file keeps with the
// name of the change before; right after, a witness beside the file (ledger_witness.h) is given the
// new name, and the ledger remembers the kernel's time stamp of that. A charge returns only when
// its change is witnessed and still in the ledger, so nothing is released before. Whoever comes
// next finishes what a killed process left half done, and only if the witness names that very
// change or the one it was made on top of: ledger_chain.h, which says why no copy of the ledger,
// whenever it was made or put back, refunds what was released. A ledger that was copied, restored
// from a backup or lost does not match its witness and refuses to spend: what was spent since is
// unknown. (So do a witness whose mode or number of hard links was changed, which the kernel
// stamps, too, and one whose stamp reached the disk and whose record did not, when the power goes
// in the milliseconds between. After the end of a process alone nothing is refused.) These ways
// back are left:
// - to delete ledger and witness both, which begins anew with nothing granted;
// - to bring the file system itself back, kernel time stamps included: an image of the disk, a
//   snapshot of the volume or of the virtual machine, an overlay thrown away (the upper layer, as a
//   container has one, over a ledger below it). A ledger belongs on a volume that stays;
// - to copy ledger and witness both in the milliseconds in which a change is witnessed and the
//   ledger not told so, and to put both back within a second;
// - to set the clock back for it, or to do it all within one tick of a file system whose stamps are
//   coarse.
// Ledgers of the version before, whose changes have no names, are brought up to date when opened,
// and refused if they were left witnessed and not told: their count alone would have to be
// believed.
class Ledger {
 public:
  // Opens or creates the file and `path`.witness, readable by their owner alone.
  // FAILED_PRECONDITION: it cannot be opened, is no ledger, or comes from another version;
  // DATA_LOSS: it is damaged; UNAVAILABLE: it is in use or cannot be written. Messages name the
  // file.
  static absl::StatusOr<std::unique_ptr<Ledger>> Open(const std::string& path);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Sets what may be spent in all, over the life of the collection, and how it is added up. What
  // is spent stays spent. A delta of 0 pays for pure releases, by their sums alone.
  // INVALID_ARGUMENT: epsilon not finite and positive, delta outside [0, 1), or outside (0, 1) for
  // Gaussian accounting.
  // DATA_LOSS: the ledger does not match its witness. UNAVAILABLE as in Charge.
  absl::Status Grant(const std::string& collection_uuid, const Budget& budget,
                     Accounting accounting = Accounting::kBasic);

  // An unknown collection has an empty entry. DATA_LOSS as above.
  absl::StatusOr<LedgerEntry> Show(const std::string& collection_uuid);

  // Every grant and charge of a collection, oldest first: also those of a ledger that Charge
  // refuses.
  absl::StatusOr<std::vector<LedgerChange>> History(const std::string& collection_uuid);

  // Spends what the guarantee costs. What is spent is compared with the grant up to one part in
  // 10^12, so that three times .1 fit into .3: by as much a budget may be exceeded.
  // FAILED_PRECONDITION: no budget is granted, or Gaussian accounting of a guarantee that is not
  // proven or has neither a mu nor delta = 0. RESOURCE_EXHAUSTED: it does not suffice; the message
  // says what is spent, asked and left. UNAVAILABLE: the charge could not be made durable and
  // witnessed; it may count nevertheless. DATA_LOSS as above. After any error nothing may be
  // released.
  absl::StatusOr<LedgerEntry> Charge(const std::string& collection_uuid,
                                     const Guarantee& guarantee);

 private:
  explicit Ledger(std::unique_ptr<sqlite::Database> database);

  absl::Status Prepare();
  absl::Status Begin(sqlite::Transaction transaction);
  absl::StatusOr<sqlite::Transaction> BeginChange();
  absl::Status Make(const LedgerChange& change, sqlite::Transaction transaction);
  absl::Status CatchUp(LedgerState state, int64_t stamp, sqlite::Transaction transaction);

  std::mutex mutex_;  // a connection has one transaction at a time
  std::unique_ptr<sqlite::Database> database_;
  LedgerWitness witness_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_LEDGER_H_
