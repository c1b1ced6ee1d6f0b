#include "server/cells/quality_measurement.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "common/index/k_means.h"
#include "common/items/item_code.h"
#include "tests/testing/matchers.h"

namespace privatemail::server {
namespace {

constexpr int64_t kItems = 1000, kDim = 6, kClasses = 12, kCells = 4;

// A gallery of overlapping clouds, one a class.
class QualityMeasurement : public ::testing::Test {
 protected:
  QualityMeasurement() : features_(kItems, kDim) {
    std::mt19937_64 random(3);
    std::normal_distribution<float> normal;
    FloatMatrix centres(kClasses, kDim), centroids(kCells, kDim);
    for (float& value : centres.reshaped()) value = normal(random);
    for (float& value : features_.reshaped()) value = .7F * normal(random);
    for (int64_t i = 0; i < kItems; ++i) {
      labels_.push_back(static_cast<int32_t>(i % kClasses));
      features_.row(i) += centres.row(i % kClasses);
      queries_.push_back(i);
    }
    features_.rowwise().normalize();
    for (int64_t cell = 0; cell < kCells; ++cell) centroids.row(cell) = features_.row(cell);
    nearest_ = NearestOthers(features_, queries_, Demand::kRanks, never_);
    cells_ = FindItemCells(features_, centroids, nullptr);
    parameters_.feature_dim = kDim;
    parameters_.cell_code = CellCode::kScalar8;
    for (int64_t i = 0; i < kItems; ++i) AppendItemCode(parameters_, features_.row(i), &codes_);
    decoded_ = DecodeItemCodes(parameters_, codes_).value();
    demands_.push_back({cells_, Demand({nearest_, cells_.cells}, kCells, kItems)});
  }

  std::optional<CellQuality> Measure() const {
    return MeasureQuality({parameters_, features_, labels_, codes_, queries_, nearest_, demands_},
                          never_);
  }

  // As if the item had cast no vote.
  Demand DemandWithout(int64_t item) const {
    KnownQueries others{nearest_, cells_.cells};
    others.nearest.erase(others.nearest.begin() + item);
    others.cells.erase(others.cells.begin() + item);
    return {others, kCells, kItems};
  }

  // Nearest to the item first.
  void Sort(int64_t item, const FloatMatrix& rows, std::vector<int64_t>* order) const {
    const Eigen::VectorXf distances =
        (rows.rowwise() - features_.row(item)).rowwise().squaredNorm();
    std::stable_sort(order->begin(), order->end(),
                     [&](int64_t a, int64_t b) { return distances[a] < distances[b]; });
  }

  // Fidelity and recall of a target like the item if the first `count` rows of a list but the item
  // are returned.
  std::pair<double, double> Found(int64_t item, std::vector<int64_t> list, int64_t count) const {
    list.erase(std::find(list.begin(), list.end(), item));
    list.resize(static_cast<size_t>(count));
    Sort(item, decoded_, &list);
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
  ItemCells cells_;
  std::vector<PartitionDemand> demands_;
};

struct Expected {
  double own_fidelity = 0, own_recall = 0, other_fidelity = 0, other_recall = 0;
};

// Every other cell of four is asked for, so the means have no sampling error.
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
      for (int64_t cell = 0; cell < kCells; ++cell) {
        const bool own = cell == cells_.cells[static_cast<size_t>(item)];
        const std::vector<int64_t> list = CellList(demand, cells_, cell, epsilon, kItems);
        for (size_t i = 0; i < counts.size(); ++i) {
          const auto [fidelity, recall] = Found(item, list, quality->items[counts[i]]);
          (own ? expected[i].own_fidelity : expected[i].other_fidelity) += fidelity;
          (own ? expected[i].own_recall : expected[i].other_recall) += recall;
        }
      }
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      const auto mean =
          static_cast<size_t>(at - quality->epsilons.begin()) * quality->items.size() + counts[i];
      const MeasuredQuality& own = quality->partitions[0].own[mean];
      const MeasuredQuality& other = quality->partitions[0].other[mean];
      constexpr double kRounding = .0051, kOthers = kItems * (kCells - 1);
      EXPECT_NEAR(own.fidelity.value, expected[i].own_fidelity / kItems, kRounding) << epsilon;
      EXPECT_NEAR(own.recall.value, expected[i].own_recall / kItems, kRounding) << epsilon;
      EXPECT_NEAR(other.fidelity.value, expected[i].other_fidelity / kOthers, kRounding);
      EXPECT_NEAR(other.recall.value, expected[i].other_recall / kOthers, kRounding);
      const double p = expected[i].own_recall / kItems;  // of values that are 0 or 1
      EXPECT_NEAR(own.recall.standard_error, std::sqrt(p * (1 - p) / (kItems - 1)), .00101);
    }
  }
}

TEST_F(QualityMeasurement, NeedsEnoughQueries) {
  queries_.pop_back();
  nearest_.pop_back();
  EXPECT_FALSE(Measure().has_value());
}

TEST_F(QualityMeasurement, EndsWhenItIsStopped) {
  const std::atomic<bool> stopped = true;
  EXPECT_FALSE(MeasureQuality(
                   {parameters_, features_, labels_, codes_, queries_, nearest_, demands_}, stopped)
                   .has_value());
}

}  // namespace
}  // namespace privatemail::server
