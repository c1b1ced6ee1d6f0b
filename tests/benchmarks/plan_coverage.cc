// Coverage and width of the intervals that `privatemail plan` gives, for each item code.
//
// VECTORS and LABELS have the formats of common/features/vector_file.h. Each split deals the rows
// of every class at random and in like proportions into about ANCHORS anchors, a gallery, and
// TARGETS targets. What plans find is exact: a mean over the targets and over the mechanism's law.
// Product codes are skipped if there are too few anchors for their codebook.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/planning/query_plan.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "common/features/vector_file.h"
#include "common/numerics/neighbors.h"
#include "tests/benchmarks/coded_items.h"
#include "tests/testing/build_cells.h"

namespace privatemail {
namespace {

using namespace client;  // NOLINT: plans
using namespace server;  // NOLINT: lists

constexpr double kEpsilons[] = {.5, 1, 2, 4, 8};
constexpr double kShares[] = {.01, .03, .1, .3};  // of the gallery, that max_bytes allows
constexpr double kAnchorsPerCell[] = {50, 15};

struct Options {
  std::string vectors, labels;
  int64_t anchors = 0;
  int64_t targets = 2000;
  uint64_t splits = 1;
  std::vector<std::string> codes = {"scalar8", "pq32", "pq16"};
};

// Means over targets, of the k returned items that are nearest by their codes.
struct MeanRetrieval {
  double fidelity = 0;  // share of the k nearest items of the gallery
  double recall = 0;    // share of targets with a match of their class
};

struct Scene {
  Labelled anchors;
  Labelled gallery;
  Labelled targets;
};

Scene Deal(const Options& options, uint64_t seed) {
  const Labelled all{ReadVectors(options.vectors).value(), ReadLabels(options.labels)->numbers};
  std::mt19937_64 random(seed);
  std::map<int32_t, std::vector<int64_t>> rows_of;
  for (size_t row = 0; row < all.labels.size(); ++row) {
    rows_of[all.labels[row]].push_back(static_cast<int64_t>(row));
  }
  // In the order of their places within their classes, so that a range has all of them alike.
  std::vector<std::pair<double, int64_t>> places;
  std::uniform_real_distribution<double> jitter;
  for (auto& [label, rows] : rows_of) {
    std::shuffle(rows.begin(), rows.end(), random);
    for (size_t i = 0; i < rows.size(); ++i) {
      places.emplace_back((static_cast<double>(i) + jitter(random)) / std::ssize(rows), rows[i]);
    }
  }
  std::sort(places.begin(), places.end());
  std::vector<int64_t> rows;
  for (const auto& [place, row] : places) rows.push_back(row);
  const auto gallery = rows.begin() + options.anchors;
  const auto targets = rows.end() - options.targets;
  return {.anchors = Take(all, rows.begin(), gallery),
          .gallery = Take(all, gallery, targets),
          .targets = Take(all, targets, rows.end())};
}

// Fails if there are too few anchors for the codebook.
absl::StatusOr<PublicParameters> Published(const Anchors& anchors, CellCode code) {
  std::vector<int64_t> counts;
  for (const double each : kAnchorsPerCell) {
    const auto rows = static_cast<double>(anchors.features.rows());
    counts.push_back(std::max<int64_t>(2, std::llround(rows / each)));
  }
  EmbeddingSettings settings;
  settings.embedding_dim = 1;  // cells do not need it
  PM_ASSIGN_OR_RETURN(PublicParameters parameters, ParametersOf(anchors, settings, code, counts));
  parameters.publish_quality = true;
  return parameters;
}

// All rows of `items`, nearest to the query first.
std::vector<int32_t> OrderAround(const Matrix& query, const Matrix& items) {
  std::vector<int32_t> order;
  const auto all = NearestRows(query, items, items.rows());
  for (const Neighbor& one : all.front()) {
    order.push_back(static_cast<int32_t>(one.row));
  }
  return order;
}

// Computes means exactly over the distribution of the chosen cell; draws nothing. Takes the lists
// from the server's CellIndex and ranks decoded items as a client does.
class RetrievalOracle {
 public:
  // Requires nonzero rows and a code of features. Keeps references to all but the anchors.
  RetrievalOracle(const PublicParameters& parameters, const Anchors& anchors,
                  const Labelled& gallery, const Labelled& targets)
      : parameters_(parameters),
        gallery_(gallery),
        targets_(targets),
        index_(testing::BuildCells(parameters, anchors, GalleryOf(gallery), 0, &sample_)),
        ranks_(targets.labels.size()),
        by_codes_(targets.labels.size()) {
    const Matrix items = UnitRows("gallery", gallery.features).value();
    const Matrix queries = UnitRows("targets", targets.features).value();
    const Matrix unit_anchors = UnitRows("anchors", anchors.features).value();
    for (const CellPartition& partition : parameters.cell_partitions) {
      std::vector<int64_t>& cells = cells_.emplace_back();
      const Matrix centroids = CellCentroids(partition, unit_anchors);
      for (const std::vector<Neighbor>& nearest : NearestRows(queries, centroids, 1)) {
        cells.push_back(nearest.front().row);
      }
    }
    const Matrix decoded = DecodedItems(parameters, *index_);
    ParallelFor(static_cast<int>(queries.rows()), [&](int i) {
      const auto target = static_cast<size_t>(i);
      const Matrix query = queries.row(i);
      const std::vector<int32_t> order = OrderAround(query, items);
      ranks_[target].resize(order.size());
      for (size_t rank = 0; rank < order.size(); ++rank) {
        ranks_[target][static_cast<size_t>(order[rank])] = static_cast<int32_t>(rank);
      }
      by_codes_[target] = OrderAround(query, decoded);
    });
  }

  // As the server measures it; needs kMinQualityQueries items.
  CellQuality MeasureQuality() const {
    return server::MeasureQuality(parameters_, index_->contents(), sample_, [] { return false; })
        .value();
  }

  // For queries of one cell of the partition that return `answered` items.
  MeanRetrieval Mean(size_t partition, double epsilon, int64_t answered, int64_t k) const {
    const int64_t cells = parameters_.cell_partitions[partition].cells;
    std::vector<std::vector<bool>> has(static_cast<size_t>(cells),
                                       std::vector<bool>(gallery_.labels.size()));
    for (size_t cell = 0; cell < has.size(); ++cell) {
      const auto rows = index_->RowsFor(partition, {static_cast<uint32_t>(cell)}, epsilon, answered,
                                        [] { return false; });
      for (const int32_t row : rows.value()) has[cell][static_cast<size_t>(row)] = true;
    }
    const double other = 1 / (std::exp(epsilon) + static_cast<double>(cells - 1));
    std::vector<MeanRetrieval> found(targets_.labels.size());
    ParallelFor(static_cast<int>(found.size()), [&](int i) {
      const auto target = static_cast<size_t>(i);
      for (size_t cell = 0; cell < has.size(); ++cell) {
        const bool own = static_cast<int64_t>(cell) == cells_[partition][target];
        const MeanRetrieval one = Found(target, has[cell], k);
        found[target].fidelity += (own ? std::exp(epsilon) * other : other) * one.fidelity;
        found[target].recall += (own ? std::exp(epsilon) * other : other) * one.recall;
      }
    });
    MeanRetrieval mean;
    for (const MeanRetrieval& one : found) {
      mean.fidelity += one.fidelity / static_cast<double>(found.size());
      mean.recall += one.recall / static_cast<double>(found.size());
    }
    return mean;
  }

 private:
  // For one target, if the items with has[i] are returned.
  MeanRetrieval Found(size_t target, const std::vector<bool>& has, int64_t k) const {
    MeanRetrieval found;
    int64_t kept = 0;
    for (const int32_t row : by_codes_[target]) {
      const auto item = static_cast<size_t>(row);
      if (!has[item]) continue;
      if (ranks_[target][item] < k) found.fidelity += 1 / static_cast<double>(k);
      if (gallery_.labels[item] == targets_.labels[target]) found.recall = 1;
      if (++kept == k) break;
    }
    return found;
  }

  const PublicParameters& parameters_;
  const Labelled& gallery_;
  const Labelled& targets_;
  QualitySample sample_;
  std::shared_ptr<const CellIndex> index_;
  std::vector<std::vector<int64_t>> cells_;     // nearest cell by partition and target
  std::vector<std::vector<int32_t>> ranks_;     // by target and item: number of nearer items
  std::vector<std::vector<int32_t>> by_codes_;  // by target: items in the order of their codes
};

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
  void Print() const {
    std::printf("%-9s inside %5.1f %% of %d, mean width %.3f, error %+.4f, rms %.4f\n", what_,
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
  double slowest_ms = 0;

  void Add(const Prediction& prediction, const MeanRetrieval& means) {
    fidelity.Add(prediction.fidelity, means.fidelity);
    recall.Add(prediction.recall, means.recall);
  }
};

// No goal, and two that are often in reach.
std::vector<PlanWish> WishesAt(double epsilon, int64_t max_bytes) {
  const PlanWish most{.epsilon = epsilon, .max_bytes = max_bytes};
  PlanWish fidelity = most, recall = most;
  fidelity.fidelity = .3;
  recall.recall = .5;
  return {most, fidelity, recall};
}

void TallyPlans(const Scene& scene, const PublicParameters& parameters, Tallies* tallies) {
  const RetrievalOracle truth(parameters, scene.anchors, scene.gallery, scene.targets);
  const CellQuality quality = truth.MeasureQuality();
  const auto items = std::ssize(scene.gallery.labels);
  for (const double epsilon : kEpsilons) {
    for (const double share : kShares) {
      const auto most = std::max<int64_t>(2 * kQualityMatches, std::llround(share * items));
      for (const PlanWish& wish :
           WishesAt(epsilon, AnswerBytes(parameters, most, PlanWish().id_bytes))) {
        const auto start = std::chrono::steady_clock::now();
        const QueryPlan plan = MakePlan(parameters, quality, items, wish).value();
        const std::chrono::duration<double, std::milli> taken =
            std::chrono::steady_clock::now() - start;
        tallies->slowest_ms = std::max(tallies->slowest_ms, taken.count());
        const MeanRetrieval means = truth.Mean(static_cast<size_t>(plan.cost.partition), epsilon,
                                               plan.items, kQualityMatches);
        tallies->Add(plan.prediction, means);
      }
    }
  }
}

void Measure(const std::string& name, CellCode code, const Options& options) {
  Tallies tallies;
  for (uint64_t split = 1; split <= options.splits; ++split) {
    const Scene scene = Deal(options, split);
    const auto parameters = Published(scene.anchors, code);
    if (!parameters.ok()) {
      std::printf("%s: too few anchors or dimensions for it\n", name.c_str());
      return;
    }
    TallyPlans(scene, *parameters, &tallies);
    if (split > 1) continue;
    std::printf("%s: %ld anchors, gallery %ld, targets %ld\n", name.c_str(),
                static_cast<long>(scene.anchors.features.rows()),
                static_cast<long>(scene.gallery.features.rows()),
                static_cast<long>(scene.targets.features.rows()));
  }
  std::printf("%s, plans; the slowest took %.2f ms\n", name.c_str(), tallies.slowest_ms);
  tallies.fidelity.Print();
  tallies.recall.Print();
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Coverage of the intervals of plans");
  app.add_option("VECTORS", options.vectors)->required();
  app.add_option("LABELS", options.labels)->required();
  app.add_option("ANCHORS", options.anchors, "Of each split")->required();
  app.add_option("TARGETS", options.targets, "Of each split")->capture_default_str();
  app.add_option("--splits", options.splits)->capture_default_str();
  std::vector<std::string> names;
  for (const auto& [name, code] : kFeatureCodes) names.emplace_back(name);
  app.add_option("--code", options.codes, "One or more")
      ->capture_default_str()
      ->check(CLI::IsMember(names));
  CLI11_PARSE(app, argc, argv);
  for (const auto& [name, code] : kFeatureCodes) {
    if (std::count(options.codes.begin(), options.codes.end(), name) == 0) continue;
    Measure(name, code, options);
  }
  return 0;
}

}  // namespace
}  // namespace privatemail

int main(int argc, char** argv) { return privatemail::Main(argc, argv); }
