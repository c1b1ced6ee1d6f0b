#include "client/audit/lower_bound.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

namespace privatemail::client::audit {

Rates CertainRates(const Hits& hits, double confidence) {
  using boost::math::binomial_distribution;
  const auto releases = static_cast<double>(hits.releases);
  const double risk = (1 - confidence) / 2;
  return {
      binomial_distribution<>::find_lower_bound_on_p(releases, static_cast<double>(hits.one), risk),
      binomial_distribution<>::find_upper_bound_on_p(releases, static_cast<double>(hits.other),
                                                     risk)};
}

double EpsilonLowerBound(const Rates& rates, double delta) {
  if (!(rates.one_at_least > delta)) return 0;
  return std::max(0.0, std::log((rates.one_at_least - delta) / rates.other_at_most));
}

double MuLowerBound(const Rates& rates) {
  if (!(rates.one_at_least > 0) || !(rates.other_at_most < 1)) return 0;
  const boost::math::normal normal;
  return std::max(0.0, boost::math::quantile(normal, rates.one_at_least) -
                           boost::math::quantile(normal, rates.other_at_most));
}

}  // namespace privatemail::client::audit
