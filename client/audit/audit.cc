#include "client/audit/audit.h"

#include <algorithm>
#include <atomic>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

#include "absl/status/status.h"
#include "client/privacy/accounting/gaussian_tradeoff.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "common/base/validate.h"

namespace privatemail::client::audit {
namespace {

constexpr int kParts = 16;           // of an attack's releases, one task each
constexpr int64_t kPollEvery = 100;  // releases of a task

// Tasks of all cores; `observer` sees the releases that are done.
absl::StatusOr<int64_t> CountHits(const Attack& attack, Neighbour neighbour, int64_t releases,
                                  const std::function<absl::Status(int64_t)>& observer) {
  std::atomic<int64_t> sum = 0, done = 0;
  const auto count = [&](int part, TaskGroup& group) -> absl::Status {
    const std::unique_ptr<BitSource> source = attack.make_bits();
    ReadAhead bits(source.get());
    int64_t left = releases / kParts + (part < releases % kParts ? 1 : 0);
    while (left > 0 && !group.stopped()) {
      const int64_t some = std::min(left, kPollEvery);
      int64_t hits = 0;
      for (int64_t i = 0; i < some; ++i) {
        PM_ASSIGN_OR_RETURN(const bool hit, attack.event(neighbour, bits));
        hits += hit ? 1 : 0;
      }
      sum += hits;
      done += some;
      left -= some;
    }
    return absl::OkStatus();
  };
  WorkObserver poll;
  if (observer) poll = [&] { return observer(done); };
  PM_RETURN_IF_ERROR(ParallelFor(kParts, count, poll));
  return sum.load();
}

// With a claimed mu the rates are tested against the whole trade-off curve, which is stronger than
// one epsilon.
double LowerBoundOnEpsilon(const Rates& rates, const Guarantee& claim) {
  const double epsilon = EpsilonLowerBound(rates, claim.delta);
  if (!claim.gaussian_mu.has_value()) return epsilon;
  const absl::StatusOr<double> by_mu = GaussianEpsilon(MuLowerBound(rates), claim.delta);
  return by_mu.ok() ? std::max(epsilon, *by_mu) : epsilon;
}

}  // namespace

absl::Status ReadAhead::Fill(absl::Span<uint8_t> bytes) {
  while (!bytes.empty()) {
    if (used_ == block_.size()) {
      PM_RETURN_IF_ERROR(source_->Fill(absl::MakeSpan(block_)));
      used_ = 0;
    }
    const size_t count = std::min(bytes.size(), block_.size() - used_);
    std::copy_n(block_.data() + used_, count, bytes.data());
    used_ += count;
    bytes.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::StatusOr<Result> RunAudit(const Subject& subject, const Options& options) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("releases", options.releases, 1, int64_t{1} << 40));
  PM_RETURN_IF_ERROR(CheckOpenUnitInterval("confidence", options.confidence));
  Result result{
      .mechanism = subject.mechanism, .claim = subject.claim, .confidence = options.confidence};
  const double risk = (1 - options.confidence) / static_cast<double>(subject.attacks.size());
  double counts = 0;  // that are done, two an attack
  for (const Attack& attack : subject.attacks) {
    const int64_t releases = std::min(options.releases, attack.max_releases);
    std::function<absl::Status(int64_t)> observer;
    if (options.observer) {
      observer = [&](int64_t done) {
        const double of_this = static_cast<double>(done) / static_cast<double>(releases);
        return options.observer((counts + of_this) / (2.0 * std::ssize(subject.attacks)));
      };
    }
    Hits hits{.releases = releases};
    PM_ASSIGN_OR_RETURN(hits.one, CountHits(attack, Neighbour::kOne, releases, observer));
    ++counts;
    PM_ASSIGN_OR_RETURN(hits.other, CountHits(attack, Neighbour::kOther, releases, observer));
    ++counts;
    const Rates rates = ClopperPearsonRates(hits, 1 - risk);
    const double epsilon = LowerBoundOnEpsilon(rates, subject.claim);
    if (result.best_attack.empty() || epsilon > result.epsilon_lower) {
      result.epsilon_lower = epsilon;
      result.best_attack = attack.description;
      result.releases = releases;
    }
  }
  return result;
}

int ExitCode(const std::vector<Result>& results) {
  return std::ranges::any_of(results, &Result::Exceeded) ? 1 : 0;
}

Rates ClopperPearsonRates(const Hits& hits, double confidence) {
  using boost::math::binomial_distribution;
  const auto releases = static_cast<double>(hits.releases);
  const double risk = (1 - confidence) / 2;
  return {
      binomial_distribution<>::find_lower_bound_on_p(releases, static_cast<double>(hits.one), risk),
      binomial_distribution<>::find_upper_bound_on_p(releases, static_cast<double>(hits.other),
                                                     risk)};
}

double EpsilonLowerBound(const Rates& rates, double delta) {
  if (!(rates.one_lower > delta)) return 0;
  return std::max(0.0, std::log((rates.one_lower - delta) / rates.other_upper));
}

double MuLowerBound(const Rates& rates) {
  if (!(rates.one_lower > 0) || !(rates.other_upper < 1)) return 0;
  const boost::math::normal normal;
  return std::max(0.0, boost::math::quantile(normal, rates.one_lower) -
                           boost::math::quantile(normal, rates.other_upper));
}

}  // namespace privatemail::client::audit
