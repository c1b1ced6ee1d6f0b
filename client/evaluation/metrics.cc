#include "client/evaluation/metrics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <random>

#include "client/audit/audit.h"
#include "client/baselines/label_ceiling.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client {
namespace {

constexpr double kCertainty = .95;
constexpr double kRounding = 1e-9;  // means that differ by less are equal

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Of two samples, or of one with itself, about their means: the sum of products over n - 1.
double Covariance(const std::vector<double>& one, const std::vector<double>& other) {
  const double mean_one = MeanOf(one);
  const double mean_other = MeanOf(other);
  double sum = 0;
  for (size_t i = 0; i < one.size(); ++i) sum += (one[i] - mean_one) * (other[i] - mean_other);
  return sum / static_cast<double>(one.size() - 1);
}

// How many standard deviations of a mean its interval reaches to either side.
double StudentReach(size_t values, double certainty = kCertainty) {
  const boost::math::students_t law(static_cast<double>(values - 1));
  return boost::math::quantile(boost::math::complement(law, (1 - certainty) / 2));
}

Band StudentBand(const std::vector<double>& means) {
  const double mean = MeanOf(means);
  const double reach = StudentReach(means.size()) *
                       std::sqrt(Covariance(means, means) / static_cast<double>(means.size()));
  return {.mean = mean, .low = std::max(0.0, mean - reach), .high = std::min(1.0, mean + reach)};
}

Band BootstrapBand(const std::vector<double>& values, uint64_t seed) {
  constexpr size_t kSamples = 1000;
  std::mt19937_64 bits(SeedOf("bootstrap", seed));
  std::vector<double> means(kSamples);
  for (double& mean : means) {
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += values[bits() % values.size()];
    mean = sum / static_cast<double>(values.size());
  }
  std::sort(means.begin(), means.end());
  return {.mean = MeanOf(values),
          .low = means[kSamples / 40],
          .high = means[kSamples - 1 - kSamples / 40]};
}

// As it would be had one target come out otherwise: where no two scores differ there is no width.
Band BandOfEqualScores(std::vector<std::vector<double>> values_by_split, double score,
                       uint64_t seed) {
  values_by_split.front().front() = 1 - score;
  Band band = BandOfScores(values_by_split, seed);
  band.mean = score;
  (score == 0 ? band.low : band.high) = score;
  return band;
}

}  // namespace

Scores ScoreOf(const std::vector<int64_t>& found, const std::vector<int32_t>& labels,
               int32_t target_label, const std::vector<int64_t>& nearest) {
  int64_t of_class = 0;
  int64_t common = 0;
  for (const int64_t row : found) {
    of_class += labels[static_cast<size_t>(row)] == target_label ? 1 : 0;
    common += std::count(nearest.begin(), nearest.end(), row);
  }
  return {.class_share = static_cast<double>(of_class) / static_cast<double>(found.size()),
          .hit = of_class > 0 ? 1.0 : 0.0,
          .fidelity = static_cast<double>(common) / static_cast<double>(nearest.size())};
}

Scores ScoresByChance(const std::vector<int32_t>& gallery_labels, int32_t target_label, int64_t k) {
  const auto n = static_cast<double>(gallery_labels.size());
  const auto m =
      static_cast<double>(std::count(gallery_labels.begin(), gallery_labels.end(), target_label));
  double none = 1;
  for (int64_t i = 0; i < k; ++i) {
    const auto drawn = static_cast<double>(i);
    none *= std::max(0.0, n - m - drawn) / (n - drawn);
  }
  return {.class_share = m / n, .hit = 1 - none, .fidelity = static_cast<double>(k) / n};
}

Scores ScoreCeilings(double epsilon, double delta, int64_t classes, int64_t k) {
  const auto ceiling = [&](int64_t named) {
    return baselines::LabelHidingCeiling({epsilon, delta}, classes, named).value();
  };
  return {.class_share = ceiling(1), .hit = ceiling(k), .fidelity = 1};
}

std::vector<std::vector<int64_t>> NearestOf(const Matrix& queries, const Matrix& points,
                                            int64_t k) {
  std::vector<std::vector<int64_t>> rows;
  for (const std::vector<Neighbor>& neighbors : NearestRows(queries, points, k)) {
    std::vector<int64_t>& of_query = rows.emplace_back();
    for (const Neighbor& neighbor : neighbors) of_query.push_back(neighbor.row);
  }
  return rows;
}

Band BandOfScores(const std::vector<std::vector<double>>& values_by_split, uint64_t seed) {
  std::vector<double> means;
  std::vector<double> all;
  for (const std::vector<double>& values : values_by_split) {
    means.push_back(MeanOf(values));
    all.insert(all.end(), values.begin(), values.end());
  }
  for (const double same : {0.0, 1.0}) {
    if (std::count(all.begin(), all.end(), same) < std::ssize(all)) continue;
    if (all.size() == 1) return {.mean = same, .low = 0, .high = 1};  // one target says nothing
    return BandOfEqualScores(values_by_split, same, seed);
  }
  const bool differ = std::any_of(means.begin(), means.end(), [&](double mean) {
    return std::abs(mean - means.front()) > kRounding;
  });
  return differ ? StudentBand(means) : BootstrapBand(all, seed);
}

Band BandOfShare(int64_t hits, int64_t answers, double certainty) {
  const audit::Rates rates =
      audit::ClopperPearsonRates({.releases = answers, .one = hits, .other = hits}, certainty);
  return {.mean = static_cast<double>(hits) / static_cast<double>(answers),
          .low = rates.one_lower,
          .high = rates.other_upper};
}

std::optional<Band> BandOfDifference(const std::vector<double>& one,
                                     const std::vector<double>& other, double certainty) {
  if (one.size() < 2) return std::nullopt;
  std::vector<double> differences = one;
  for (size_t i = 0; i < other.size(); ++i) differences[i] -= other[i];
  const double deviation = std::sqrt(Covariance(differences, differences));
  if (!(deviation > kRounding)) return std::nullopt;
  double mean = MeanOf(differences);
  if (std::abs(mean) < kRounding) mean = 0;
  const double reach =
      StudentReach(one.size(), certainty) * deviation / std::sqrt(static_cast<double>(one.size()));
  return Band{.mean = mean, .low = mean - reach, .high = mean + reach};
}

// The ratios r with (part - r whole)^2 <= reach (V(parts) - 2 r C + r^2 V(wholes)), the ends of
// which solve a quadratic equation, a r^2 - 2 b r + c = 0.
std::optional<Band> BandOfRatio(const std::vector<double>& parts,
                                const std::vector<double>& wholes) {
  if (wholes.size() < 2) return std::nullopt;
  const double part = MeanOf(parts);
  const double whole = MeanOf(wholes);
  const double reach =
      std::pow(StudentReach(wholes.size()), 2) / static_cast<double>(wholes.size());
  const double a = whole * whole - reach * Covariance(wholes, wholes);
  if (!(whole > 0) || !(a > 0)) return std::nullopt;
  const double b = part * whole - reach * Covariance(parts, wholes);
  const double c = part * part - reach * Covariance(parts, parts);
  const double root = std::sqrt(std::max(0.0, b * b - a * c));
  return Band{.mean = part / whole, .low = (b - root) / a, .high = (b + root) / a};
}

}  // namespace privatemail::client
