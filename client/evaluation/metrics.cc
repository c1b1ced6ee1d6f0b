#include "client/evaluation/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "client/evaluation/baselines/label_ceiling.h"
#include "client/evaluation/seeded_bits.h"
#include "common/numerics/neighbors.h"

namespace privatemail {
namespace {

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Of one sample.
double ResampledMean(const std::vector<std::vector<double>>& values_by_seed,
                     std::mt19937_64& bits) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < values_by_seed.size(); ++i) {
    const std::vector<double>& values = values_by_seed[bits() % values_by_seed.size()];
    for (size_t j = 0; j < values.size(); ++j) sum += values[bits() % values.size()];
    count += values.size();
  }
  return sum / static_cast<double>(count);
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

Band BootstrapBand(const std::vector<std::vector<double>>& values_by_seed, uint64_t seed) {
  constexpr size_t kSamples = 1000;
  double sum = 0;
  size_t count = 0;
  for (const std::vector<double>& values : values_by_seed) {
    sum += Sum(values);
    count += values.size();
  }
  std::mt19937_64 bits(SeedOf("bootstrap", seed));
  std::vector<double> means(kSamples);
  for (double& mean : means) mean = ResampledMean(values_by_seed, bits);
  std::sort(means.begin(), means.end());
  return {.mean = sum / static_cast<double>(count),
          .low = means[kSamples / 40],
          .high = means[kSamples - 1 - kSamples / 40]};
}

}  // namespace privatemail
