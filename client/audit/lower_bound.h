// From counts of an attack's hits to what the releases have certainly cost.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_LOWER_BOUND_H_
#define PRIVATEMAIL_CLIENT_AUDIT_LOWER_BOUND_H_

#include <cstdint>

namespace privatemail::client::audit {

// How often an event, fixed in advance, was seen among `releases` of either neighbour.
struct Hits {
  int64_t releases = 0;  // of each neighbour, at least 1
  int64_t one = 0;       // of the neighbour that the event points to
  int64_t other = 0;
};

// With at least this confidence: one's probability of the event is no smaller than the first,
// other's no larger than the second (Clopper and Pearson, half of the risk on either side).
struct Rates {
  double one_at_least = 0;
  double other_at_most = 1;
};
Rates CertainRates(const Hits& hits, double confidence);

// No (epsilon, delta)-DP mechanism with a smaller epsilon has such rates: ln((one - delta) /
// other), at least 0.
double EpsilonLowerBound(const Rates& rates, double delta);

// No mu-Gaussian-DP mechanism with a smaller mu has such rates: ninv(one) - ninv(other), at least
// 0.
double MuLowerBound(const Rates& rates);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_LOWER_BOUND_H_
