// The privacy ledger: a durable record of budgets and charges, charged before sampling.
#ifndef PRIVATEMAIL_LEDGER_H_
#define PRIVATEMAIL_LEDGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "privatemail/guarantee.h"

namespace privatemail::sqlite {
class Database;
class Transaction;
}  // namespace privatemail::sqlite

namespace privatemail::client {

struct LedgerState;
class LedgerWitness;

struct Budget {
  double epsilon = 0;
  double delta = 0;
};

// Composition of charges. Fixed by the grant: a choice of the cheaper one per release is not proven
// for releases that depend on earlier ones.
enum class Accounting {
  kBasic = 0,     // sums of epsilon and delta
  kGaussian = 1,  // mu = sqrt(sum mu_i^2), at most the mu that has (epsilon, delta): exact for
                  // Gaussian noise, also for charges chosen adaptively (Dong, Roth, Su 2022;
                  // Smith and Thakurta 2022). Every charge must carry a mu or have delta 0.
};

struct LedgerChange {
  enum class Kind { kGrant, kCharge, kOperatorGrant };
  Kind kind = Kind::kCharge;
  std::string collection;  // its UUID; of an operator's grant the operator's name
  double epsilon = 0;
  double delta = 0;
  Accounting accounting = Accounting::kBasic;  // of a grant
  std::optional<double> gaussian_mu;           // of a charge
  std::string neighbours;
  bool proven = false;
  std::string source;
  std::string made_at;      // RFC 3339
  std::string server = {};  // ServerIdentity; empty if not given
};

struct LedgerEntry {
  std::optional<Budget> granted;  // none: releases are refused
  Accounting accounting = Accounting::kBasic;
  Budget sums;                        // of all charges: basic composition
  std::optional<double> gaussian_mu;  // of all charges composed, if every charge has a mu
  int64_t releases = 0;
  int64_t pure_releases = 0;    // of them with delta 0
  int64_t charged_ahead = 0;    // of them for later calls of this process's batch (StartBatch)
  bool all_proven = true;       // no charge follows a printed formula
  bool same_neighbours = true;  // if false, the sums hold for each neighbour relation alone
  std::string neighbours;       // of every charge; empty without charges or if they differ

  // Cost of all charges. Basic: the sums. Gaussian: the epsilon at the granted delta, infinite if a
  // charge has no mu.
  Budget spent() const { return SpentBy(accounting); }
  Budget SpentBy(Accounting how) const;

  // granted - spent, never negative; zero without a grant.
  Budget left() const;

  // Whether `more` fits the grant by basic accounting.
  bool Affords(const Budget& more) const;
};

// The sum over an operator's collections.
struct OperatorEntry {
  std::string name;
  LedgerEntry sum;
};
// "over all collections of operator acme", for messages.
std::string SumOf(const OperatorEntry& entry);

// Budgets and charges by collection UUID (a server may change its address and names), in an SQLite
// file on the client. Holds no query. Thread-safe, and safe between processes.
//
// A budget may also hold for all collections of an operator, whom the searcher names. Its servers
// are those of its grants, and its collections those that were granted a budget or charged for a
// release at one of them, with all of their charges: a new collection, or an old one under another
// address, does not escape the sum. A server is known as the searcher trusts it (ServerIdentity),
// so nothing that it says changes that. Charge checks the collection's budget and that of every
// operator whom the server or the collection belongs to, in one transaction. Releases to several
// collections compose as those to one, since all of them are about the searcher's targets
// (PRIVACY.md section 7).
//
// A charge is on disk and witnessed before Charge returns, so before any noise is drawn.
// `path`.witness (ledger_witness.h) holds the random id of the last change and names the file that
// it is in; ledger_state.h has the protocol and the proof that no copy of a ledger refunds a
// release. Other modes, owners, times and names of the files, and programs that read them, end
// nothing. The budget after a failure:
//
// | event                                | budget                                                |
// |--------------------------------------|-------------------------------------------------------|
// | process killed, any time             | charged or not sampled; next call repairs the ledger  |
// | batch ends early, in any way         | charges that were not taken stay (StartBatch)         |
// | two processes at once                | each charge counts once; no joint overspending        |
// | server unreachable, query cancelled  | stays charged: a charge is never refunded             |
// | Charge returns UNAVAILABLE           | may count; nothing may be released                    |
// | grant lowered                        | charges stay; left() is 0 if they exceed the grant    |
// | power loss                           | as a killed process                                   |
// | ledger copied or restored            | Charge, Grant, Show refuse: DATA_LOSS; History reads; |
// |                                      | charges since are unknown                             |
// | ledger lost                          | Open refuses: DATA_LOSS                               |
// | witness copied, restored or lost     | Charge, Grant, Show refuse: DATA_LOSS; History reads  |
//
// A file system whose inode numbers change over a remount (some FUSE and container mounts) makes
// every mount a copy of the witness, so the ledger is refused.
//
// Not detected, so the spent budget is forgotten:
// - ledger and witness both deleted: a new ledger, with nothing granted;
// - the whole file system restored, kernel time stamps included: disk image, volume or virtual
//   machine snapshot, container overlay. A ledger belongs on a persistent volume;
// - on a file system without birth times (NFS before Linux 6.16, ext4 with inodes of 128 bytes):
//   copies of both written over them while the witness's file has an inode that it had before;
// - the same within one tick of a file system with coarse times, or with the clock set back;
// - a process killed after it replaced the witness and before it erased the former one, to which
//   somebody holds a hard link, put back with a ledger of its time.
class Ledger {
 public:
  // Opens or creates the file and `path`.witness, readable by their owner alone. Messages name the
  // file.
  // - FAILED_PRECONDITION: cannot be opened, is no ledger, or comes from another version.
  // - DATA_LOSS: damaged, or the file is new and its witness is not.
  // - UNAVAILABLE: in use, or cannot be written.
  static absl::StatusOr<std::unique_ptr<Ledger>> Open(const std::string& path);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Sets the total budget over the life of the collection, and its accounting. Charges stay. A
  // delta of 0 pays for pure releases only, by their sums.
  // - FAILED_PRECONDITION: another accounting than before, with a pure release among the charges.
  //   Sums within (epsilon, delta) keep sum mu^2 within the Gaussian filter if every release is
  //   Gaussian noise, but not with a pure one (PRIVACY.md section 7). Or the grant would bring
  //   charges with delta 0 under an operator's Gaussian accounting.
  // - INVALID_ARGUMENT: epsilon not finite and positive; delta outside [0, 1), or outside (0, 1)
  //   for Gaussian accounting.
  // - DATA_LOSS: the ledger does not match its witness.
  // - UNAVAILABLE: not durable or not witnessed; may count nevertheless.
  // server: ServerIdentity, whose operators the collection joins; empty: as before.
  absl::Status Grant(const std::string& collection_uuid, const Budget& budget,
                     Accounting accounting = Accounting::kBasic, const std::string& server = "");

  // Sets the total budget over all collections of an operator, and adds a server to it. Charges
  // stay, and those that were made before count. Errors as Grant, and
  // - INVALID_ARGUMENT: the name is empty, longer than 100 bytes or not printable; no server.
  // - FAILED_PRECONDITION: the server belongs to another operator; or its charges have a release
  //   with delta 0 and accounting is Gaussian, which no proof covers.
  absl::Status GrantOperator(const std::string& name, const std::string& server,
                             const Budget& budget, Accounting accounting = Accounting::kBasic);

  // An unknown operator has an empty entry. DATA_LOSS: the ledger does not match its witness.
  absl::StatusOr<OperatorEntry> ShowOperator(const std::string& name);
  // The operators whom the collection or the server belongs to, with their sums. Both empty: all.
  // DATA_LOSS: the ledger does not match its witness.
  absl::StatusOr<std::vector<OperatorEntry>> ShowOperators(const std::string& collection_uuid,
                                                           const std::string& server);
  // Whether any operator has a budget. Errors as sqlite::Database.
  absl::StatusOr<bool> HasOperators();

  // An unknown collection has an empty entry. DATA_LOSS: the ledger does not match its witness.
  absl::StatusOr<LedgerEntry> Show(const std::string& collection_uuid);

  // UUIDs of the collections with a grant or a charge, in the order of their first one. Errors as
  // sqlite::Database.
  absl::StatusOr<std::vector<std::string>> Collections();

  // Every grant and charge of a collection, and every grant of the operators whom it belongs to,
  // oldest first, also of a ledger that Charge refuses.
  absl::StatusOr<std::vector<LedgerChange>> History(const std::string& collection_uuid);

  // Spends the guarantee's cost and returns the entry after it. After any error nothing may be
  // released. Costs are compared with the grant up to one part in 10^12, so that three times .1 fit
  // into .3; a budget may be exceeded by that much.
  // - INVALID_ARGUMENT: Validate refuses the guarantee; epsilon, or mu where there is one, is 0.
  // - FAILED_PRECONDITION: no budget granted; or Gaussian accounting of a guarantee that is not
  //   proven or has neither a mu nor delta = 0; or the collection's first charge at a
  //   server of an operator with Gaussian accounting, after charges with delta 0.
  // - RESOURCE_EXHAUSTED: the collection's or an operator's budget is too small; the message has
  //   spent, asked and left.
  // - UNAVAILABLE: not durable or not witnessed; may count nevertheless.
  // - DATA_LOSS: the ledger does not match its witness.
  // In a batch, the entry is after all charges that were made together.
  // server: ServerIdentity of where the release goes; empty: the collection alone tells the
  //   operators.
  absl::StatusOr<LedgerEntry> Charge(const std::string& collection_uuid, const Guarantee& guarantee,
                                     const std::string& server = "");

  // Announces that `releases` charges follow, which Charge then makes 1, 2, 4, ... at a time: one
  // durable change holds a charge for each, the first call of them makes it, and calls with an
  // equal guarantee for the same collection in this process need none. One at a time if the budget
  // does not cover more.
  void StartBatch(int64_t releases);
  // Ends the batch. Returns the charges that no call took: they are not refunded, and fewer than
  // those that were taken.
  int64_t EndBatch();

 private:
  struct Batch {
    int64_t to_come = 0;    // releases that are not charged yet
    int64_t next = 1;       // charges of the next change
    int64_t not_taken = 0;  // charges of the last change
    int64_t process = 0;    // a fork must not take them too
    std::string collection = {};
    std::string server = {};
    Guarantee guarantee = {};
    LedgerEntry entry = {};  // after the last change
  };

  explicit Ledger(std::unique_ptr<sqlite::Database> database);

  absl::Status Initialize();
  absl::Status CreateFiles(sqlite::Transaction transaction);
  absl::StatusOr<sqlite::Transaction> BeginTransaction();
  absl::StatusOr<std::vector<OperatorEntry>> ReadOperators(const std::string& collection_uuid,
                                                           const std::string& server);
  absl::StatusOr<std::vector<OperatorEntry>> JoinOperators(const std::string& collection_uuid,
                                                           const std::string& server);
  absl::Status Apply(const LedgerChange& change, int64_t times, sqlite::Transaction transaction);

  std::mutex mutex_;  // a connection has one transaction at a time
  std::unique_ptr<sqlite::Database> database_;
  std::unique_ptr<const LedgerWitness> witness_;
  Batch batch_;
};

// Charges a collection's budget. A sampler calls it first; after an error nothing may be
// released.
using ChargeFunction = std::function<absl::Status(const Guarantee&)>;

// Charges this ledger, which must outlive the function.
ChargeFunction ChargeTo(Ledger& ledger, const std::string& collection_uuid);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_LEDGER_H_
