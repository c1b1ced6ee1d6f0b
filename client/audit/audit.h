// Empirical lower bounds on epsilon: attacks on the production release path, compared with its
// claims.
//
// Attack: fixes two neighbours and an event in advance, releases either neighbour many times and
// counts the event. It can refute a claim, not prove one.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_AUDIT_H_
#define PRIVATEMAIL_CLIENT_AUDIT_AUDIT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/privacy/sampling/bit_source.h"
#include "privatemail/guarantee.h"

namespace privatemail::client::audit {

enum class Neighbour { kOne, kOther };

// Whether a fresh release of the neighbour shows the event. Thread-safe.
using EventFn = std::function<absl::StatusOr<bool>(Neighbour neighbour, BitSource& bits)>;
using MakeBits = std::function<std::unique_ptr<BitSource>()>;
inline std::unique_ptr<BitSource> MakeSecureBits() { return std::make_unique<SecureBits>(); }

// One event on releases of two neighbours.
struct Attack {
  std::string description;  // of the pair and the event
  EventFn event;
  int64_t max_releases = int64_t{1} << 40;  // fewer for slow releases
  MakeBits make_bits = MakeSecureBits;      // of the source that the event's bits are read from
};

// The bytes of a source, which is asked for many at once: a call of OpenSSL's generator takes
// longer than a release of one value. A forked child would share them, so only attacks without
// forks may.
class ReadAhead final : public BitSource {
 public:
  // The source must outlive it.
  explicit ReadAhead(BitSource* source) : source_(source), block_(1 << 16), used_(block_.size()) {}

  absl::Status Fill(absl::Span<uint8_t> bytes) override;

 private:
  BitSource* source_;
  std::vector<uint8_t> block_;
  size_t used_;
};

// A mechanism under attack.
struct Subject {
  std::string mechanism;
  Guarantee claim = {};  // with gaussian_mu the rates are also tested against mu
  std::vector<Attack> attacks = {};
};

struct Options {
  int64_t releases = 1'000'000;  // per neighbour and attack
  double confidence = .999999;   // of the whole result; attacks share the risk
  // Polled ten times a second with the share that is done; an error ends the audit. May be null.
  std::function<absl::Status(double share)> observer = nullptr;
};

struct Result {
  std::string mechanism;
  Guarantee claim;
  double epsilon_lower = 0;  // of the best attack; infinite if above every claim
  double confidence = 0;
  std::string best_attack = {};  // its description
  int64_t releases = 0;          // of the best attack, per neighbour

  bool Exceeded() const { return !(epsilon_lower <= claim.epsilon); }
};

// INVALID_ARGUMENT: releases below 1 or confidence outside (0, 1). Otherwise the error of a
// release or of the observer.
absl::StatusOr<Result> RunAudit(const Subject& subject, const Options& options);

// 1 if any result exceeds its claim, else 0.
int ExitCode(const std::vector<Result>& results);

// Counts of one event.
struct Hits {
  int64_t releases = 0;  // per neighbour, at least 1
  int64_t one = 0;       // of the neighbour that the event indicates
  int64_t other = 0;
};

// Bounds on the event's probabilities.
struct Rates {
  double one_lower = 0;
  double other_upper = 1;
};

// Clopper-Pearson bounds that hold together with `confidence`, half of the risk each.
Rates ClopperPearsonRates(const Hits& hits, double confidence);

// The smallest epsilon of any (epsilon, delta)-DP mechanism with such rates:
// max(0, ln((one - delta) / other)).
double EpsilonLowerBound(const Rates& rates, double delta);

// The smallest mu of any mu-Gaussian-DP mechanism with such rates: max(0, ninv(one) - ninv(other)).
double MuLowerBound(const Rates& rates);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_AUDIT_H_
