// Coverage and width of the intervals that `privatemail plan` predicts, for each item code.
//
// VECTORS and LABELS have the formats of common/features/vector_file.h. The classes are put in a
// fixed random order; those from FIRST to LAST - 1 are used, so that fitting and checking can use
// different ones. Each split divides the rows into anchors, gallery and targets. Product codes are
// skipped if there are too few anchors for their codebook.
//
// With --least-inside or --most-width the exit code is 1 if a code misses them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/planning/forecast.h"
#include "client/planning/query_plan.h"
#include "common/base/validate.h"
#include "common/features/vector_file.h"
#include "server/cells/anchor_training.h"
#include "tests/benchmarks/feature_codes.h"
#include "tests/testing/retrieval_oracle.h"

namespace privatemail {
namespace {

using namespace client;  // NOLINT: forecasts and placement
using namespace server;  // NOLINT: lists and embeddings

constexpr int64_t kMatches = 8;
constexpr int64_t kIdBytes = 24;
constexpr double kEpsilons[] = {.5, 1, 2, 4, 8};
constexpr double kShares[] = {.01, .03, .1};
struct Deal {
  double anchors;
  double gallery;
};
// Shares of the rows; the remaining ones are targets.
constexpr Deal kDeals[] = {{.08, .6}, {.13, .6}, {.2, .6}, {.3, .5}};

constexpr double kAnchorsPerCell[] = {50, 15};

using Rows = LabelledFeatures;

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

// Statistics of the estimates of one kind.
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
  double inside() const { return static_cast<double>(inside_) / cases_; }
  double width() const { return width_ / cases_; }
  int cases() const { return cases_; }
  void Print() const {
    std::printf("%-9s inside %5.1f %% of %d, mean width %.3f, error %+.3f, rms %.3f\n", what_,
                100 * inside(), cases_, width(), error_ / cases_, std::sqrt(squares_ / cases_));
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

  void Add(const Forecast& forecast, const MeanRetrieval& means) {
    fidelity.Add(forecast.fidelity, means.fidelity);
    recall.Add(forecast.recall, means.recall);
  }
  Tally Both() const {
    Tally both("both");
    both.Add(fidelity);
    both.Add(recall);
    return both;
  }
  void Print() const {
    fidelity.Print();
    recall.Print();
    Both().Print();
  }
};

struct TalliesOfCode {
  Tallies all;
  Tallies chosen;  // plans, for what they were foreseen to find
};

// No goal, fidelity .5, and recall .5.
std::vector<PlanWish> WishesAt(double epsilon, int64_t max_bytes) {
  const PlanWish most{.epsilon = epsilon,
                      .max_bytes = max_bytes,
                      .fidelity = {},
                      .recall = {},
                      .k = kMatches,
                      .id_bytes = kIdBytes};
  PlanWish fidelity = most, recall = most;
  fidelity.fidelity = .5;
  recall.recall = .5;
  return {most, fidelity, recall};
}

struct Scene {
  Rows anchors;
  Rows gallery;
  Rows targets;
};

Scene DealOut(const Rows& all, const Deal& deal, uint64_t seed) {
  std::vector<int64_t> rows(all.labels.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::shuffle(rows.begin(), rows.end(), std::mt19937_64(seed));
  const auto count = static_cast<double>(rows.size());
  const auto gallery_begin = rows.begin() + std::llround(deal.anchors * count);
  const auto targets_begin = gallery_begin + std::llround(deal.gallery * count);
  return {.anchors = Take(all, {rows.begin(), gallery_begin}),
          .gallery = Take(all, {gallery_begin, targets_begin}),
          .targets = Take(all, {targets_begin, rows.end()})};
}

// Public parameters for these anchors; nullopt if the codebook cannot be trained.
std::optional<PublicParameters> Published(const Anchors& anchors, CellCode code) {
  const FloatMatrix unit = UnitRows("anchors", anchors.features).value().cast<float>();
  std::optional<ProductCodebook> codebook;
  if (IsProductCode(code)) {
    auto trained = TrainCodebook(unit, code);
    if (!trained.ok()) return std::nullopt;
    codebook = *std::move(trained);
  }
  std::vector<int64_t> counts;
  for (const double each : kAnchorsPerCell) {
    counts.push_back(std::max<int64_t>(2, std::llround(static_cast<double>(unit.rows()) / each)));
  }
  return MakePublicParameters("uuid", EmbeddingSettings{}, anchors, {}, "vectors",
                              PartitionAnchors(unit, counts).value(), code, std::move(codebook))
      .value();
}

// A collection with its forecasts and its true retrieval.
class Trial {
 public:
  Trial(const Scene& scene, const Anchors& anchors, const PublicParameters& parameters)
      : parameters_(parameters),
        items_(std::ssize(scene.gallery.labels)),
        forecaster_(Forecaster::Create(parameters, anchors, items_).value()),
        truth_(parameters, anchors, scene.gallery, scene.targets) {}

  void TallyEveryQuery(Tallies* tallies) const {
    for (size_t partition = 0; partition < forecaster_.cells().size(); ++partition) {
      for (const double epsilon : kEpsilons) TallyEveryLength(partition, epsilon, tallies);
    }
  }

  void TallyPlans(Tallies* tallies) const {
    const int64_t max_bytes = AnswerBytes(parameters_, items_ / 10, kIdBytes);
    for (const double epsilon : kEpsilons) {
      for (const PlanWish& wish : WishesAt(epsilon, max_bytes)) {
        const QueryPlan plan = MakePlan(parameters_, forecaster_, wish).value();
        const auto partition = static_cast<size_t>(plan.cost.partition);
        tallies->Add(plan.forecast, truth_.Mean(partition, epsilon, plan.items, kMatches));
      }
    }
  }

 private:
  void TallyEveryLength(size_t partition, double epsilon, Tallies* tallies) const {
    std::vector<int64_t> lengths;
    for (const double share : kShares) {
      lengths.push_back(
          std::max<int64_t>(kMatches, std::llround(share * static_cast<double>(items_))));
    }
    const CellAsk ask{
        .partition = static_cast<int64_t>(partition), .epsilon = epsilon, .k = kMatches};
    const std::vector<Forecast> foreseen = forecaster_.Foresee(ask, lengths).value();
    for (size_t i = 0; i < lengths.size(); ++i) {
      const MeanRetrieval means = truth_.Mean(partition, epsilon, lengths[i], kMatches);
      Print(ask, lengths[i], foreseen[i], means);
      tallies->Add(foreseen[i], means);
    }
  }

  void Print(const CellAsk& ask, int64_t answered, const Forecast& foreseen,
             const MeanRetrieval& means) const {
    std::printf(
        "anchors %ld items %ld cells %ld epsilon %g answered %ld: fidelity %.3f in %.3f (%.3f to "
        "%.3f), recall %.3f in %.3f (%.3f to %.3f)\n",
        static_cast<long>(parameters_.anchor_count), static_cast<long>(items_),
        static_cast<long>(forecaster_.cells()[static_cast<size_t>(ask.partition)]), ask.epsilon,
        static_cast<long>(answered), means.fidelity, foreseen.fidelity.value, foreseen.fidelity.low,
        foreseen.fidelity.high, means.recall, foreseen.recall.value, foreseen.recall.low,
        foreseen.recall.high);
  }

  const PublicParameters& parameters_;
  int64_t items_;
  Forecaster forecaster_;
  RetrievalOracle truth_;
};

struct Options {
  std::string vectors;
  std::string labels;
  size_t first = 0;
  size_t last = 1'000'000;
  uint64_t splits = 1;
  std::vector<std::string> codes = {"float16", "scalar8", "pq32", "pq16"};
  double least_inside = 0;  // share of all cases of a code
  double most_width = 1;    // mean
};

TalliesOfCode Measure(const Rows& rows, CellCode code, uint64_t splits) {
  TalliesOfCode tallies;
  for (uint64_t split = 1; split <= splits; ++split) {
    for (const Deal& deal : kDeals) {
      const Scene scene = DealOut(rows, deal, split);
      const Anchors anchors{scene.anchors.features, scene.anchors.labels};
      const std::optional<PublicParameters> parameters = Published(anchors, code);
      if (!parameters) continue;
      const Trial trial(scene, anchors, *parameters);
      trial.TallyEveryQuery(&tallies.all);
      trial.TallyPlans(&tallies.chosen);
    }
  }
  return tallies;
}

// Prints a code's statistics; returns whether it meets the limits.
bool MeetsLimits(const std::string& name, const TalliesOfCode& tallies, const Options& options) {
  if (tallies.all.fidelity.cases() == 0) {
    std::printf("%s: too few anchors or dimensions for it\n", name.c_str());
    return true;
  }
  std::printf("%s, all cases\n", name.c_str());
  tallies.all.Print();
  std::printf("%s, chosen plans\n", name.c_str());
  tallies.chosen.Print();
  const Tally both = tallies.all.Both();
  const bool keeps = both.inside() >= options.least_inside && both.width() <= options.most_width;
  if (!keeps) {
    std::printf("MISSED: %s must be inside in %.3g of all cases at a mean width of %.3g at most\n",
                name.c_str(), options.least_inside, options.most_width);
  }
  std::fflush(stdout);
  return keeps;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Coverage of the intervals that plans predict");
  app.add_option("VECTORS", options.vectors)->required();
  app.add_option("LABELS", options.labels)->required();
  app.add_option("FIRST", options.first, "Of the classes")->capture_default_str();
  app.add_option("LAST", options.last, "Without it")->capture_default_str();
  app.add_option("SPLITS", options.splits, "Of the rows")->capture_default_str();
  std::vector<std::string> names;
  for (const auto& [name, code] : kFeatureCodes) names.emplace_back(name);
  app.add_option("--code", options.codes, "One or more")
      ->capture_default_str()
      ->check(CLI::IsMember(names));
  app.add_option("--least-inside", options.least_inside, "Fail below this share of all cases");
  app.add_option("--most-width", options.most_width, "Fail above this mean width");
  CLI11_PARSE(app, argc, argv);
  const Rows all{ReadVectors(options.vectors).value(), ReadLabels(options.labels).value()};
  const Rows rows = OfClasses(all, options.first, options.last);
  bool kept = true;
  for (const auto& [name, code] : kFeatureCodes) {
    if (std::count(options.codes.begin(), options.codes.end(), name) == 0) continue;
    kept = MeetsLimits(name, Measure(rows, code, options.splits), options) && kept;
  }
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace privatemail

int main(int argc, char** argv) { return privatemail::Main(argc, argv); }
