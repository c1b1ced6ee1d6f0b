#include "server/cells/quality_measurement.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "common/index/k_means.h"
#include "common/index/nearest_others.h"
#include "common/items/item_checks.h"
#include "common/items/item_code.h"
#include "tests/testing/matchers.h"

namespace privatemail::server {
namespace {

constexpr int64_t kItems = 1000, kDim = 6, kClasses = 12;

// A gallery of overlapping clouds, one a class.
class QualityMeasurement : public ::testing::Test {
 protected:
  QualityMeasurement() : features_(kItems, kDim) {
    std::mt19937_64 random(3);
    std::normal_distribution<float> normal;
    FloatMatrix centres(kClasses, kDim);
    for (float& value : centres.reshaped()) value = normal(random);
    for (float& value : features_.reshaped()) value = .7F * normal(random);
    for (int64_t i = 0; i < kItems; ++i) {
      labels_.push_back(static_cast<int32_t>(i % kClasses));
      features_.row(i) += centres.row(i % kClasses);
      queries_.push_back(i);
    }
    features_.rowwise().normalize();
    nearest_ = NearestOthers(MatrixRows(features_), queries_, Demand::kRanks, never_).value();
    parameters_.feature_dim = kDim;
    parameters_.cell_code = CellCode::kScalar8;
    for (int64_t i = 0; i < kItems; ++i) AppendItemCode(parameters_, features_.row(i), &codes_);
    decoded_ = DecodeItemCodes(parameters_, codes_).value();
    Partition(2);
  }

  void Partition(int64_t cells) {
    cell_count_ = cells;
    cells_ = FindItemCells(features_, features_.topRows(cells), nullptr);
    demands_ = {{cells_, Demand({nearest_, cells_.cells}, cells, kItems)}};
  }

  std::optional<CellQuality> Measure(bool stopped = false) const {
    CellContents contents{.partitions = demands_, .codes = codes_};
    contents.gallery.labels = labels_;
    return MeasureQuality(parameters_, contents,
                          SampleQueries(MatrixRows(features_), queries_, nearest_).value(),
                          [&] { return stopped; });
  }

  // As if the item had cast no vote.
  Demand DemandWithout(int64_t item) const {
    KnownQueries others{nearest_, cells_.cells};
    others.nearest.erase(others.nearest.begin() + item);
    others.cells.erase(others.cells.begin() + item);
    return {others, cell_count_, kItems};
  }

  // Fidelity and recall of a target like the item if the first `count` rows of a list but the item
  // are returned.
  std::pair<double, double> Found(int64_t item, std::vector<int64_t> list, int64_t count) const {
    list.erase(std::find(list.begin(), list.end(), item));
    list.resize(static_cast<size_t>(count));
    const Eigen::VectorXf distances =
        (decoded_.rowwise() - features_.row(item)).rowwise().squaredNorm();
    std::stable_sort(list.begin(), list.end(),
                     [&](int64_t a, int64_t b) { return distances[a] < distances[b]; });
    list.resize(std::min(list.size(), size_t{kQualityMatches}));
    const std::vector<int64_t>& nearest = nearest_[static_cast<size_t>(item)];
    double fidelity = 0, recall = 0;
    for (const int64_t row : list) {
      const auto rank = std::find(nearest.begin(), nearest.end(), row) - nearest.begin();
      if (rank < kQualityMatches) fidelity += 1. / kQualityMatches;
      if (labels_[static_cast<size_t>(row)] == labels_[static_cast<size_t>(item)]) recall = 1;
    }
    return {fidelity, recall};
  }

  const std::atomic<bool> never_ = false;
  PublicParameters parameters_;
  FloatMatrix features_;
  std::vector<int32_t> labels_;
  std::string codes_;
  FloatMatrix decoded_;
  std::vector<Eigen::Index> queries_;
  std::vector<std::vector<int64_t>> nearest_;
  int64_t cell_count_ = 0;
  ItemCells cells_;
  std::vector<PartitionDemand> demands_;
};

struct Expected {
  double own_fidelity = 0, own_recall = 0, other_fidelity = 0, other_recall = 0;

  void Add(bool own, const std::pair<double, double>& found, double weight) {
    (own ? own_fidelity : other_fidelity) += weight * found.first;
    (own ? own_recall : other_recall) += weight * found.second;
  }
};

// With two cells every query requests both, so the means have no sampling error.
TEST_F(QualityMeasurement, IsThatOfListsMadeWithoutTheQuery) {
  const std::optional<CellQuality> quality = Measure();
  ASSERT_TRUE(quality.has_value());
  EXPECT_TRUE(Validate(*quality, 1).ok());
  EXPECT_EQ(quality->queries, kItems);
  EXPECT_EQ(quality->items.front(), 8);
  EXPECT_EQ(quality->items.back(), 362) << "the last step below half the gallery";
  for (const double epsilon : {.125, 4.}) {
    const auto at = std::find(quality->epsilons.begin(), quality->epsilons.end(), epsilon);
    ASSERT_NE(at, quality->epsilons.end());
    const std::vector<size_t> counts = {0, 4, quality->items.size() - 1};
    std::vector<Expected> expected(counts.size());
    for (int64_t item = 0; item < kItems; ++item) {
      const Demand demand = DemandWithout(item);
      for (int64_t cell = 0; cell < cell_count_; ++cell) {
        const bool own = cell == cells_.cells[static_cast<size_t>(item)];
        const std::vector<int64_t> list = CellOrder(demand, cells_, cell, epsilon).First(kItems);
        for (size_t i = 0; i < counts.size(); ++i) {
          expected[i].Add(own, Found(item, list, quality->items[counts[i]]), 1. / kItems);
        }
      }
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      const auto mean =
          static_cast<size_t>(at - quality->epsilons.begin()) * quality->items.size() + counts[i];
      const MeasuredQuality& own = quality->partitions[0].own[mean];
      const MeasuredQuality& other = quality->partitions[0].other[mean];
      constexpr double kRounding = .0051;
      EXPECT_NEAR(own.fidelity.value, expected[i].own_fidelity, kRounding) << epsilon;
      EXPECT_NEAR(own.recall.value, expected[i].own_recall, kRounding) << epsilon;
      EXPECT_NEAR(other.fidelity.value, expected[i].other_fidelity, kRounding);
      EXPECT_NEAR(other.recall.value, expected[i].other_recall, kRounding);
      for (const MeasuredMean& recall : {own.recall, other.recall}) {  // of values that are 0 or 1
        const double variance = recall.value * (1 - recall.value) / (kItems - 1);
        EXPECT_NEAR(recall.standard_error, std::sqrt(variance), .0012);
      }
    }
  }
}

TEST_F(QualityMeasurement, ItemsWithoutLabelsShareNoClass) {
  labels_.assign(kItems, kNoLabel);
  const std::optional<CellQuality> quality = Measure();
  ASSERT_TRUE(quality.has_value());
  EXPECT_TRUE(Validate(*quality, 1).ok());
  double fidelity = 0;
  for (const MeasuredQuality& own : quality->partitions[0].own) {
    EXPECT_EQ(own.recall.value, 0);
    fidelity = std::max(fidelity, own.fidelity.value);
  }
  EXPECT_GT(fidelity, .5) << "which needs no labels";
}

// The items' classes repeat every 12 rows, which must not decide which other cell they request.
TEST_F(QualityMeasurement, OtherCellsAreAlike) {
  constexpr double kEpsilon = 1;
  constexpr size_t kCount = 8;
  Partition(13);
  const std::optional<CellQuality> quality = Measure();
  ASSERT_TRUE(quality.has_value());
  const auto at = std::find(quality->epsilons.begin(), quality->epsilons.end(), kEpsilon);
  Expected expected;
  for (int64_t item = 0; item < kItems; item += 5) {
    const Demand demand = DemandWithout(item);
    for (int64_t cell = 0; cell < cell_count_; ++cell) {
      if (cell == cells_.cells[static_cast<size_t>(item)]) continue;
      const std::vector<int64_t> list = CellOrder(demand, cells_, cell, kEpsilon).First(kItems);
      expected.Add(false, Found(item, list, quality->items[kCount]), 5. / kItems / 12);
    }
  }
  const auto mean =
      static_cast<size_t>(at - quality->epsilons.begin()) * quality->items.size() + kCount;
  const MeasuredQuality& other = quality->partitions[0].other[mean];
  EXPECT_NEAR(other.fidelity.value, expected.other_fidelity, 6 * other.fidelity.standard_error);
  EXPECT_NEAR(other.recall.value, expected.other_recall, 6 * other.recall.standard_error);
}

TEST_F(QualityMeasurement, EndsWhenItIsStoppedAndNeedsEnoughQueries) {
  EXPECT_FALSE(Measure(true).has_value());
  queries_.pop_back();
  nearest_.pop_back();
  EXPECT_FALSE(Measure().has_value());
}

}  // namespace
}  // namespace privatemail::server
