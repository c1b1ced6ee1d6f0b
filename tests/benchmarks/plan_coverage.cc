// Whether what `privatemail plan` foresees comes true: how often the mean over targets lies in the
// foreseen interval, and how wide intervals are.
//
// usage: plan_coverage VECTORS LABELS [FIRST LAST [SPLITS]]
//
// VECTORS and LABELS in the formats of common/features/vector_file.h. FIRST, LAST: of the classes,
// put in a fixed random order, those from FIRST up to but not LAST, so that one part may be fitted
// to and another left for a check. Each split deals the rows into anchors, a gallery and targets.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/planning/answer_size.h"
#include "client/planning/forecast.h"
#include "client/planning/query_plan.h"
#include "common/base/validate.h"
#include "common/features/vector_file.h"
#include "server/cells/partition_anchors.h"
#include "tests/testing/found_in_cells.h"

namespace privatemail {
namespace {

constexpr int64_t kMatches = 8;
constexpr int64_t kIdBytes = 24;
constexpr double kEpsilons[] = {.5, 1, 2, 4, 8};
constexpr double kShares[] = {.01, .03, .1};
constexpr double kAnchorShares[] = {.08, .12, .2};
constexpr double kGalleryShare = .6;
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
  Tally chosen_fidelity{
      "fidelity"};  // of plans that were chosen for what they were foreseen to find
  Tally chosen_recall{"recall"};
};

// With a tenth of the items, and what half of them, or of the targets, shall find.
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
  const FoundInCells truth(parameters, anchors, gallery, targets);
  std::vector<int64_t> lengths;
  for (const double share : kShares) {
    lengths.push_back(
        std::max<int64_t>(kMatches, std::llround(share * static_cast<double>(items))));
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
        const FoundMeans means = truth.Mean(partition, epsilon, lengths[i], kMatches);
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
  for (const double epsilon : kEpsilons) {
    for (const PlanWish& wish : WishesAt(epsilon, AnswerBytes(parameters, items / 10, kIdBytes))) {
      const QueryPlan plan = MakePlan(parameters, forecaster, wish).value();
      const FoundMeans means =
          truth.Mean(static_cast<size_t>(plan.cost.partition), epsilon, plan.items, kMatches);
      tallies->chosen_fidelity.Add(plan.forecast.fidelity, means.fidelity);
      tallies->chosen_recall.Add(plan.forecast.recall, means.recall);
    }
  }
  std::fflush(stdout);
}

void PrintBoth(const Tally& fidelity, const Tally& recall) {
  fidelity.Print();
  recall.Print();
  Tally both("both");
  both.Add(fidelity);
  both.Add(recall);
  both.Print();
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
  std::printf("all cases\n");
  PrintBoth(tallies.fidelity, tallies.recall);
  std::printf("chosen plans\n");
  PrintBoth(tallies.chosen_fidelity, tallies.chosen_recall);
  return 0;
}

}  // namespace
}  // namespace privatemail

int main(int argc, char** argv) { return privatemail::Main(argc, argv); }
