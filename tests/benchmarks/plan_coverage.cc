// Whether what `privatemail plan` foresees comes true: how often the mean over targets lies in the
// foreseen interval, and how wide intervals are.
//
// usage: plan_coverage VECTORS LABELS [FIRST LAST [SPLITS]]
//
// VECTORS and LABELS in the formats of common/features/vector_file.h. FIRST, LAST: of the classes,
// put in a fixed random order, those from FIRST up to but not LAST, so that one part may be fitted
// to and another left for a check. Each split deals the rows into anchors, a gallery and targets;
// the server's own code cuts the anchors into partitions and makes lists, and what targets find in
// these is exact over the mechanism's law, so that nothing is drawn.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/planning/forecast.h"
#include "common/base/parallel.h"
#include "common/base/validate.h"
#include "common/features/vector_file.h"
#include "common/numerics/neighbors.h"
#include "server/cells/cell_index.h"
#include "server/cells/partition_anchors.h"

namespace privatemail {
namespace {

constexpr int64_t kMatches = 8;
constexpr double kEpsilons[] = {.5, 1, 2, 4, 8};
constexpr double kShares[] = {.01, .03, .1};
constexpr double kAnchorShares[] = {.08, .12, .2};
constexpr double kGalleryShare = .7;
constexpr double kAnchorsPerCell[] = {50, 15};

struct Rows {
  FloatMatrix features;
  std::vector<int32_t> labels;
};

Rows Take(const Rows& all, const std::vector<int64_t>& which) {
  Rows some{all.features(which, Eigen::all), {}};
  for (const int64_t row : which) some.labels.push_back(all.labels[static_cast<size_t>(row)]);
  return some;
}

Rows OfClasses(const Rows& all, size_t first, size_t last) {
  const std::set<int32_t> distinct(all.labels.begin(), all.labels.end());
  std::vector<int32_t> classes(distinct.begin(), distinct.end());
  std::shuffle(classes.begin(), classes.end(), std::mt19937_64(5));
  last = std::min(last, classes.size());
  const std::set<int32_t> chosen(classes.begin() + static_cast<int64_t>(std::min(first, last)),
                                 classes.begin() + static_cast<int64_t>(last));
  std::vector<int64_t> rows;
  for (size_t row = 0; row < all.labels.size(); ++row) {
    if (chosen.count(all.labels[row]) > 0) rows.push_back(static_cast<int64_t>(row));
  }
  return Take(all, rows);
}

struct Means {
  double fidelity = 0;
  double recall = 0;
};

// Targets and a gallery that answers for cells.
class Truth {
 public:
  Truth(const PublicParameters& parameters, const Anchors& anchors, const Rows& gallery,
        const Rows& targets)
      : gallery_(gallery), targets_(targets) {
    const std::atomic<bool> stopped = false;
    Gallery stored;
    stored.features = gallery.features;
    stored.labels = gallery.labels;
    stored.payloads.resize(gallery.labels.size());
    for (size_t i = 0; i < gallery.labels.size(); ++i) {
      stored.ids.push_back(absl::StrCat(10'000'000 + i));  // ascending
    }
    index_ = CellIndex::Make(parameters, anchors, std::move(stored), stopped);
    const Matrix items = UnitRows("gallery", gallery.features).value();
    const Matrix queries = UnitRows("targets", targets.features).value();
    const Matrix unit_anchors = UnitRows("anchors", anchors.features).value();
    for (const CellPartition& partition : parameters.cell_partitions) {
      std::vector<int64_t>& cells = cells_.emplace_back();
      for (const auto& nearest : NearestRows(queries, CellCentroids(partition, unit_anchors), 1)) {
        cells.push_back(nearest.front().row);
      }
    }
    order_.resize(static_cast<size_t>(queries.rows()));
    ParallelFor(static_cast<int>(queries.rows()), [&](int i) {
      const auto all = NearestRows(Matrix(queries.row(i)), items, items.rows());
      for (const Neighbor& one : all.front()) {
        order_[static_cast<size_t>(i)].push_back(static_cast<int32_t>(one.row));
      }
    });
  }

  // Over all targets, who ask for one cell of the partition, `length` items of which answer.
  Means Find(size_t partition, int64_t cells, double epsilon, int64_t length) const {
    std::vector<uint32_t> all(static_cast<size_t>(cells));
    std::iota(all.begin(), all.end(), 0U);
    const auto lists =
        index_->ListsFor(partition, all, epsilon, length, [] { return false; }).value();
    std::vector<std::vector<bool>> has(lists.size(), std::vector<bool>(gallery_.labels.size()));
    for (size_t cell = 0; cell < lists.size(); ++cell) {
      for (int64_t i = 0; i < length; ++i) {
        has[cell][static_cast<size_t>((*lists[cell])[static_cast<size_t>(i)])] = true;
      }
    }
    std::vector<Means> found(order_.size());
    ParallelFor(static_cast<int>(order_.size()), [&](int i) {
      const auto target = static_cast<size_t>(i);
      for (size_t cell = 0; cell < has.size(); ++cell) {
        const bool own = static_cast<int64_t>(cell) == cells_[partition][target];
        const double weight =
            (own ? std::exp(epsilon) : 1) / (std::exp(epsilon) + static_cast<double>(cells - 1));
        AddFound(target, has[cell], weight, &found[target]);
      }
    });
    Means mean;
    for (const Means& one : found) {
      mean.fidelity += one.fidelity / static_cast<double>(found.size());
      mean.recall += one.recall / static_cast<double>(found.size());
    }
    return mean;
  }

 private:
  void AddFound(size_t target, const std::vector<bool>& has, double weight, Means* found) const {
    int64_t rank = 0, came = 0;
    bool hit = false;
    for (const int32_t item : order_[target]) {
      if (has[static_cast<size_t>(item)]) {
        ++came;
        hit = hit || gallery_.labels[static_cast<size_t>(item)] == targets_.labels[target];
        if (rank < kMatches) found->fidelity += weight / static_cast<double>(kMatches);
      }
      ++rank;
      if (rank >= kMatches && (came == kMatches || hit)) break;
    }
    if (hit) found->recall += weight;
  }

  const Rows& gallery_;
  const Rows& targets_;
  std::shared_ptr<const CellIndex> index_;
  std::vector<std::vector<int64_t>> cells_;  // of each partition and target the nearest
  std::vector<std::vector<int32_t>> order_;  // of each target all items, nearest first
};

// How estimates of one kind have done.
class Tally {
 public:
  explicit Tally(const char* what) : what_(what) {}

  void Add(const Estimate& estimate, double truth) {
    ++cases_;
    if (estimate.low <= truth && truth <= estimate.high) ++inside_;
    width_ += estimate.high - estimate.low;
    error_ += estimate.value - truth;
    squares_ += (estimate.value - truth) * (estimate.value - truth);
  }
  void Add(const Tally& more) {
    cases_ += more.cases_;
    inside_ += more.inside_;
    width_ += more.width_;
    error_ += more.error_;
    squares_ += more.squares_;
  }
  void Print() const {
    std::printf("%-9s inside %5.1f %% of %d, mean width %.3f, error %+.3f, rms %.3f\n", what_,
                100. * inside_ / cases_, cases_, width_ / cases_, error_ / cases_,
                std::sqrt(squares_ / cases_));
  }

 private:
  const char* what_;
  int cases_ = 0;
  int inside_ = 0;
  double width_ = 0;
  double error_ = 0;
  double squares_ = 0;
};

struct Tallies {
  Tally fidelity{"fidelity"};
  Tally recall{"recall"};
};

void Measure(const Rows& all, double anchor_share, uint64_t seed, Tallies* tallies) {
  std::vector<int64_t> rows(all.labels.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::shuffle(rows.begin(), rows.end(), std::mt19937_64(seed));
  const auto count = static_cast<double>(rows.size());
  const auto gallery_begin = rows.begin() + std::llround(anchor_share * count);
  const auto targets_begin = gallery_begin + std::llround(kGalleryShare * count);
  const Rows anchor_rows = Take(all, {rows.begin(), gallery_begin});
  const Rows gallery = Take(all, {gallery_begin, targets_begin});
  const Rows targets = Take(all, {targets_begin, rows.end()});
  const Anchors anchors{anchor_rows.features, anchor_rows.labels};
  const FloatMatrix unit = UnitRows("anchors", anchors.features).value().cast<float>();
  std::vector<int64_t> counts;
  for (const double each : kAnchorsPerCell) {
    counts.push_back(std::max<int64_t>(2, std::llround(static_cast<double>(unit.rows()) / each)));
  }
  const PublicParameters parameters =
      MakePublicParameters("uuid", EmbeddingSettings{}, anchors, {}, "vectors",
                           PartitionAnchors(unit, counts).value(), CellCode::kFloat16)
          .value();
  const auto items = std::ssize(gallery.labels);
  const Forecaster forecaster = Forecaster::Create(parameters, anchors, items).value();
  const Truth truth(parameters, anchors, gallery, targets);
  std::vector<int64_t> lengths;
  for (const double share : kShares) {
    lengths.push_back(std::max<int64_t>(kMatches, std::llround(share * static_cast<double>(items))));
  }
  for (size_t partition = 0; partition < counts.size(); ++partition) {
    for (const double epsilon : kEpsilons) {
      const std::vector<Forecast> foreseen =
          forecaster
              .Foresee(
                  {.partition = static_cast<int64_t>(partition), .epsilon = epsilon, .k = kMatches},
                  lengths)
              .value();
      for (size_t i = 0; i < lengths.size(); ++i) {
        const Means means = truth.Find(partition, counts[partition], epsilon, lengths[i]);
        const Forecast& forecast = foreseen[i];
        std::printf(
            "anchors %ld items %ld targets %zu cells %ld epsilon %g answered %ld: fidelity %.3f in "
            "%.3f (%.3f to %.3f), recall %.3f in %.3f (%.3f to %.3f)\n",
            static_cast<long>(unit.rows()), static_cast<long>(items), targets.labels.size(),
            static_cast<long>(counts[partition]), epsilon, static_cast<long>(lengths[i]),
            means.fidelity, forecast.fidelity.value, forecast.fidelity.low, forecast.fidelity.high,
            means.recall, forecast.recall.value, forecast.recall.low, forecast.recall.high);
        tallies->fidelity.Add(forecast.fidelity, means.fidelity);
        tallies->recall.Add(forecast.recall, means.recall);
      }
    }
  }
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  int64_t first = 0, last = 1'000'000, splits = 1;
  const bool read =
      (argc == 3 || argc == 5 || argc == 6) &&
      (argc < 5 || (absl::SimpleAtoi(argv[3], &first) && absl::SimpleAtoi(argv[4], &last) &&
                    first >= 0 && first < last)) &&
      (argc < 6 || absl::SimpleAtoi(argv[5], &splits));
  if (!read) {
    std::fprintf(stderr, "usage: plan_coverage VECTORS LABELS [FIRST LAST [SPLITS]]\n");
    return 2;
  }
  const Rows all{ReadVectors(argv[1]).value(), ReadLabels(argv[2]).value()};
  const Rows some = OfClasses(all, static_cast<size_t>(first), static_cast<size_t>(last));
  Tallies tallies;
  for (int64_t split = 1; split <= splits; ++split) {
    for (const double share : kAnchorShares) {
      Measure(some, share, static_cast<uint64_t>(split), &tallies);
    }
  }
  tallies.fidelity.Print();
  tallies.recall.Print();
  Tally both("both");
  both.Add(tallies.fidelity);
  both.Add(tallies.recall);
  both.Print();
  return 0;
}

}  // namespace
}  // namespace privatemail

int main(int argc, char** argv) { return privatemail::Main(argc, argv); }
