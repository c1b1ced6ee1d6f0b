#include "client/audit/audit.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "client/audit/lower_bound.h"
#include "client/privacy/accounting/gaussian_tradeoff.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client::audit {
namespace {

constexpr int kParts = 16;  // of an attack's releases, to be shared out over the cores

absl::StatusOr<int64_t> CountHits(const Attack& attack, Neighbour neighbour, int64_t releases) {
  std::mutex mutex;
  absl::StatusOr<int64_t> sum = 0;
  ParallelFor(kParts, [&](int part) {
    const int64_t share = releases / kParts + (part < releases % kParts ? 1 : 0);
    if (share == 0) return;
    const absl::StatusOr<int64_t> hits = attack.hits(neighbour, share);
    const std::lock_guard lock(mutex);
    if (!hits.ok()) {
      sum = hits.status();
    } else if (sum.ok()) {
      *sum += *hits;
    }
  });
  return sum;
}

// A Gaussian's claim says at what mu: then the rates are held against the whole curve, which sees
// more than one epsilon.
double CertainEpsilon(const Rates& rates, const Guarantee& claim) {
  const double epsilon = EpsilonLowerBound(rates, claim.delta);
  if (!claim.gaussian_mu.has_value()) return epsilon;
  const absl::StatusOr<double> by_mu = GaussianEpsilon(MuLowerBound(rates), claim.delta);
  return by_mu.ok() ? std::max(epsilon, *by_mu) : epsilon;
}

}  // namespace

absl::StatusOr<Result> RunAudit(const Subject& subject, const Options& options) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("releases", options.releases, 1, int64_t{1} << 40));
  PM_RETURN_IF_ERROR(CheckOpenUnitInterval("confidence", options.confidence));
  Result result{.mechanism = subject.mechanism,
                .claim = subject.claim,
                .confidence = options.confidence,
                .attacked = ""};
  const double risk = (1 - options.confidence) / static_cast<double>(subject.attacks.size());
  for (const Attack& attack : subject.attacks) {
    const int64_t releases = std::min(options.releases, attack.most_releases);
    PM_ASSIGN_OR_RETURN(const int64_t one, CountHits(attack, Neighbour::kOne, releases));
    PM_ASSIGN_OR_RETURN(const int64_t other, CountHits(attack, Neighbour::kOther, releases));
    const Rates rates = CertainRates({releases, one, other}, 1 - risk);
    const double epsilon = CertainEpsilon(rates, subject.claim);
    if (result.attacked.empty() || epsilon > result.epsilon_lower) {
      result.epsilon_lower = epsilon;
      result.attacked = attack.what;
      result.releases = releases;
    }
  }
  return result;
}

int ExitCode(const std::vector<Result>& results) {
  return std::any_of(results.begin(), results.end(), [](const Result& r) { return r.Exceeded(); })
             ? 1
             : 0;
}

}  // namespace privatemail::client::audit
