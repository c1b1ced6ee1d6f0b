#include "client/privacy/accounting/composition.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/privacy/accounting/gaussian_tradeoff.h"
#include "client/privacy/sensitivity/rounding.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {
namespace {

absl::Status CheckSameNeighbours(const Guarantee& first, const Guarantee& other) {
  if (other.neighbours == first.neighbours && other.metric == first.metric) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("guarantees compose only for the same neighbours: expected \"", first.neighbours,
                   "\"", first.metric.empty() ? "" : " in ", first.metric, ", got \"",
                   other.neighbours, "\"", other.metric.empty() ? "" : " in ", other.metric));
}

// All fields but epsilon, delta and mu.
absl::StatusOr<Guarantee> CombineFields(absl::Span<const Guarantee> parts,
                                        absl::string_view theorem) {
  if (parts.empty()) {
    return absl::InvalidArgumentError("guarantees to compose must be at least 1, but are 0");
  }
  Guarantee all{.neighbours = parts[0].neighbours,
                .radius = parts[0].radius,
                .metric = parts[0].metric,
                .proven = true,
                .source = ""};
  std::vector<std::string> sources;
  for (const Guarantee& part : parts) {
    PM_RETURN_IF_ERROR(Validate(part));
    PM_RETURN_IF_ERROR(CheckSameNeighbours(parts[0], part));
    if (part.radius.has_value()) all.radius = std::min(*all.radius, *part.radius);
    all.proven = all.proven && part.proven;
    if (std::find(sources.begin(), sources.end(), part.source) == sources.end()) {
      sources.push_back(part.source);
    }
  }
  all.source = absl::StrCat(theorem, " of: ", absl::StrJoin(sources, "; "));
  return all;
}

absl::StatusOr<Guarantee> RequireUsable(Guarantee guarantee) {
  if (std::isfinite(guarantee.epsilon) && guarantee.delta < 1) return guarantee;
  return absl::FailedPreconditionError(
      absl::StrCat("together they promise epsilon ", guarantee.epsilon, " and delta ",
                   guarantee.delta, ", expected a finite epsilon and a delta below 1"));
}

// Never below the exact sum.
double Sum(absl::Span<const Guarantee> parts, double Guarantee::*field) {
  double sum = 0;
  for (const Guarantee& part : parts) sum += part.*field;
  if (parts.size() < 2) return sum;
  return sum * (kRoundedUp + static_cast<double>(parts.size()) * kUnitRoundoff);
}

double SumOfSquares(absl::Span<const Guarantee> parts) {
  double sum = 0;
  for (const Guarantee& part : parts) sum += part.epsilon * part.epsilon;
  return sum;
}

// An upper bound on the mean of the privacy loss of an epsilon-DP release; tanh(epsilon / 2) is
// (e^epsilon - 1) / (e^epsilon + 1).
double MeanLoss(double epsilon, StrongForm form) {
  return form == StrongForm::kDworkRothblumVadhan ? epsilon * std::expm1(epsilon)
                                                  : epsilon * std::tanh(epsilon / 2);
}

// Rounded up: ten roundings, `times` of one release being a single product.
double StrongEpsilon(double each, double times, double delta_slack, StrongForm form) {
  return RoundUp(each * std::sqrt(2 * times * -std::log(delta_slack)) +
                 times * MeanLoss(each, form));
}

// Rounded up: every term adds a rounding to the sum, of which the root keeps half. In units of the
// largest, so that its square cannot underflow.
double RootOfSquares(absl::Span<const double> mus) {
  const double largest = *std::max_element(mus.begin(), mus.end());
  if (largest == 0) return 0;
  double squares = 0;
  for (const double mu : mus) squares += mu / largest * (mu / largest);
  return RoundUp(largest * std::sqrt(squares), static_cast<double>(mus.size()));
}

std::optional<double> RootOfSquaredMus(absl::Span<const Guarantee> parts) {
  std::vector<double> mus;
  for (const Guarantee& part : parts) {
    if (!part.gaussian_mu.has_value()) return std::nullopt;
    mus.push_back(*part.gaussian_mu);
  }
  return RootOfSquares(mus);
}

absl::StatusOr<Guarantee> SumGuarantees(absl::Span<const Guarantee> parts,
                                        absl::string_view theorem) {
  PM_ASSIGN_OR_RETURN(Guarantee all, CombineFields(parts, theorem));
  all.epsilon = Sum(parts, &Guarantee::epsilon);
  all.delta = Sum(parts, &Guarantee::delta);
  all.gaussian_mu = RootOfSquaredMus(parts);
  return RequireUsable(std::move(all));
}

absl::StatusOr<double> GaussianMu(const Guarantee& part) {
  if (part.gaussian_mu.has_value()) return *part.gaussian_mu;
  if (part.delta == 0) return GaussianMuOfPureDp(part.epsilon);
  return absl::InvalidArgumentError(
      absl::StrCat("a part must carry gaussian_mu or have delta 0, but has delta ", part.delta,
                   " (", part.source, ")"));
}

// The smallest whole h with h * step >= length.
double CountSteps(double length, double step) {
  const double h = std::ceil(length / step);
  return std::fma(h, step, -length) < 0 ? h + 1 : h;  // the quotient was rounded down
}

absl::Status CheckChain(const Guarantee& guarantee, double radius, InputDomain domain) {
  PM_RETURN_IF_ERROR(Validate(guarantee));
  PM_RETURN_IF_ERROR(CheckFinitePositive("radius", radius));
  if (!guarantee.radius.has_value()) {
    return absl::InvalidArgumentError("a guarantee to chain must have a radius, but has none");
  }
  if (domain == InputDomain::kUnitSphere && guarantee.metric != "l2") {
    return absl::InvalidArgumentError(
        absl::StrCat("metric must be l2 on the unit sphere, but is ", guarantee.metric));
  }
  if (domain == InputDomain::kUnitSphere && !(radius <= 2)) {
    return absl::InvalidArgumentError(
        absl::StrCat("radius must be at most 2 on the unit sphere, but is ", radius));
  }
  return absl::OkStatus();
}

double StepsBetween(double radius, double step, InputDomain domain) {
  if (step >= radius) return 1;
  if (domain == InputDomain::kConvex) return CountSteps(radius, step);
  // The surplus covers the rounding of the two arcs.
  return std::ceil(std::asin(radius / 2) / std::asin(step / 2) * (1 + 1e-14));
}

}  // namespace

absl::StatusOr<Guarantee> ComposeBasic(absl::Span<const Guarantee> parts) {
  return SumGuarantees(parts, kBasicComposition);
}

absl::StatusOr<Guarantee> ComposeStrong(const Guarantee& each, int64_t times, double delta_slack,
                                        StrongForm form) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("times", times, 1, int64_t{1} << 40));
  PM_RETURN_IF_ERROR(CheckOpenUnitInterval("delta_slack", delta_slack));
  PM_ASSIGN_OR_RETURN(
      Guarantee all,
      CombineFields({each}, form == StrongForm::kDworkRothblumVadhan
                                ? "strong composition (Dwork, Rothblum and Vadhan 2010)"
                                : kStrongComposition));
  const auto k = static_cast<double>(times);
  all.epsilon = StrongEpsilon(each.epsilon, k, delta_slack, form);
  all.delta = SumUp(ProductUp(k, each.delta), delta_slack);
  return RequireUsable(std::move(all));
}

absl::StatusOr<EpsilonShare> EpsilonPerRelease(double epsilon, double delta, int64_t times) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", epsilon));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("times", times, 1, 10000));
  // 1 - 8u covers the rounding of the sum of several releases.
  const double plain =
      times == 1 ? epsilon : epsilon / static_cast<double>(times) * (1 - 8 * kUnitRoundoff);
  if (delta == 0) return EpsilonShare{plain, 0, kBasicComposition};
  PM_RETURN_IF_ERROR(CheckOpenUnitInterval("delta", delta));
  const auto k = static_cast<double>(times);
  double low = 0;
  double high = epsilon;
  for (int i = 0; i < 200 && high - low > 1e-15 * high; ++i) {
    const double middle = (low + high) / 2;
    const double together = StrongEpsilon(middle, k, delta, StrongForm::kKairouzOhViswanath);
    (together <= epsilon ? low : high) = middle;
  }
  const double strong = low * (1 - 1e-14);
  if (strong > plain) return EpsilonShare{strong, delta, kStrongComposition};
  return EpsilonShare{plain, 0, kBasicComposition};
}

absl::StatusOr<Guarantee> ComposeHeterogeneous(absl::Span<const Guarantee> parts,
                                               double delta_slack) {
  PM_RETURN_IF_ERROR(CheckOpenUnitInterval("delta_slack", delta_slack));
  PM_ASSIGN_OR_RETURN(
      Guarantee all,
      CombineFields(parts,
                    "heterogeneous composition (Kairouz, Oh and Viswanath 2015, theorem 3.5)"));
  double mean = 0;
  for (const Guarantee& part : parts) {
    mean += MeanLoss(part.epsilon, StrongForm::kKairouzOhViswanath);
  }
  const double squares = SumOfSquares(parts);
  const double log_term = std::min(std::log(std::numbers::e + std::sqrt(squares) / delta_slack),
                                   -std::log(delta_slack));
  const double strong =
      RoundUp(mean + std::sqrt(2 * squares * log_term), static_cast<double>(parts.size()));
  const double plain = Sum(parts, &Guarantee::epsilon);
  // Squares that underflow would make epsilon too small.
  const bool strong_wins = strong < plain && squares > 1e-280;
  all.epsilon = strong_wins ? strong : plain;
  all.delta = SumUp(Sum(parts, &Guarantee::delta), strong_wins ? delta_slack : 0);
  all.gaussian_mu = RootOfSquaredMus(parts);
  return RequireUsable(std::move(all));
}

absl::StatusOr<Guarantee> ComposeOverInputChunks(absl::Span<const Guarantee> parts) {
  return SumGuarantees(parts, "parallel composition over chunks of one input (Tian and Tandon)");
}

absl::StatusOr<Guarantee> ComposeOverDisjointRecords(absl::Span<const Guarantee> parts) {
  PM_ASSIGN_OR_RETURN(
      Guarantee all,
      CombineFields(parts,
                    "parallel composition over disjoint records (McSherry 2009, theorem 4)"));
  double mu = 0;
  bool all_have_mu = true;
  for (const Guarantee& part : parts) {
    all.epsilon = std::max(all.epsilon, part.epsilon);
    all.delta = std::max(all.delta, part.delta);
    all_have_mu = all_have_mu && part.gaussian_mu.has_value();
    mu = std::max(mu, part.gaussian_mu.value_or(0));
  }
  if (all_have_mu) all.gaussian_mu = mu;
  return all;
}

absl::StatusOr<Guarantee> ComposeGaussian(absl::Span<const Guarantee> parts, double delta) {
  PM_ASSIGN_OR_RETURN(Guarantee all, CombineFields(parts, kGaussianComposition));
  std::vector<double> mus;
  for (const Guarantee& part : parts) {
    PM_ASSIGN_OR_RETURN(mus.emplace_back(), GaussianMu(part));
  }
  const double mu = RootOfSquares(mus);
  PM_ASSIGN_OR_RETURN(all.epsilon, GaussianEpsilon(mu, delta));
  all.delta = delta;
  all.gaussian_mu = mu;
  return all;
}

absl::StatusOr<Guarantee> ChainToRadius(const Guarantee& guarantee, double radius,
                                        InputDomain domain) {
  PM_RETURN_IF_ERROR(CheckChain(guarantee, radius, domain));
  const double h = StepsBetween(radius, *guarantee.radius, domain);
  Guarantee chained = guarantee;
  chained.radius = std::max(radius, *guarantee.radius);
  chained.epsilon = ProductUp(h, guarantee.epsilon);
  if (h > 1 && guarantee.delta > 0 && guarantee.epsilon > 0) {
    // The sum of e^(i epsilon) over i < h.
    const double sum = std::expm1(chained.epsilon) / std::expm1(guarantee.epsilon);
    chained.delta = RoundUp(guarantee.delta * sum);
  } else {
    chained.delta = ProductUp(h, guarantee.delta);
  }
  if (guarantee.gaussian_mu.has_value()) {
    chained.gaussian_mu = ProductUp(h, *guarantee.gaussian_mu);
  }
  chained.source =
      absl::StrCat("chaining over ", h, " steps (Tian and Tandon) of: ", guarantee.source);
  return RequireUsable(std::move(chained));
}

}  // namespace privatemail::client
