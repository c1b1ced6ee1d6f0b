// Attacks on our own releases: what they certainly cost, beside what was claimed.
//
// An attack fixes two neighbours and an event in advance, lets the production code release either
// of them many times, and counts. It can show that a claim is false, never that it is true.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_AUDIT_H_
#define PRIVATEMAIL_CLIENT_AUDIT_AUDIT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "privatemail/guarantee.h"

namespace privatemail::client::audit {

enum class Neighbour { kOne, kOther };

// One event on releases of two neighbours.
struct Attack {
  std::string what;  // the pair and the event, for people
  // How many of `releases` fresh releases of a neighbour show the event. Called from several
  // threads at once.
  std::function<absl::StatusOr<int64_t>(Neighbour neighbour, int64_t releases)> hits;
  int64_t most_releases = int64_t{1} << 40;  // where each takes long: no more than these
};

// What is attacked.
struct Subject {
  std::string mechanism;
  Guarantee claim;  // gaussian_mu: also hold the attack's rates against mu
  std::vector<Attack> attacks;
};

struct Options {
  int64_t releases = 1'000'000;  // of either neighbour, for each attack
  double confidence = .999999;   // of the whole result: attacks share the risk
};

struct Result {
  std::string mechanism;
  Guarantee claim;
  double epsilon_lower = 0;  // of the attack that got furthest; infinity above every claim
  double confidence = 0;
  std::string attacked;  // by what
  int64_t releases = 0;  // of either neighbour, for that attack: most_releases at the most

  bool Exceeded() const { return !(epsilon_lower <= claim.epsilon); }
};

// INVALID_ARGUMENT: releases below 1 or confidence outside (0, 1). Otherwise a release's error.
absl::StatusOr<Result> RunAudit(const Subject& subject, const Options& options);

// 1 when any result exceeds its claim, else 0.
int ExitCode(const std::vector<Result>& results);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_AUDIT_H_
