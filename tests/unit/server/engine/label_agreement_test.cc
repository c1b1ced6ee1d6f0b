#include "server/engine/label_agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/testing/matchers.h"

namespace privatemail::server::label_agreement_test {
namespace {

constexpr int kClasses = 20;
constexpr int kAnchorsPerClass = 8;

struct Scene {
  Matrix points;  // items, then anchors
  std::vector<int32_t> item_labels;
  std::vector<int32_t> anchor_labels;

  absl::StatusOr<LabelAgreement> Compare(const std::vector<int32_t>& labels) const {
    return CompareLabels(MatrixPoints(points), labels, anchor_labels, nullptr);
  }
};

// Draws classes of `per_class` items each around directions of their own. With spread 10 they mix.
Scene Draw(int per_class, double spread, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal;
  Scene scene;
  const Eigen::Index rows = kClasses * (per_class + kAnchorsPerClass);
  scene.points.resize(rows, 24);
  for (Eigen::Index i = 0; i < rows; ++i) {
    const auto label = static_cast<int32_t>(i % kClasses);
    (i < kClasses * per_class ? scene.item_labels : scene.anchor_labels).push_back(label);
    RowVector row = RowVector::NullaryExpr(24, [&] { return spread * normal(bits); });
    row[label] += 1;
    scene.points.row(i) = row.normalized();
  }
  return scene;
}

TEST(LabelAgreement, CountsNearestRowsOfTheSameLabel) {
  Scene scene;
  scene.points.resize(7, 2);
  // Items at 0, 90 and 180 degrees; anchors at 5, 80, 10 and 175 degrees.
  const double degrees[] = {0, 90, 180, 5, 80, 10, 175};
  for (int i = 0; i < 7; ++i) {
    scene.points.row(i) << std::cos(degrees[i] * M_PI / 180), std::sin(degrees[i] * M_PI / 180);
  }
  scene.anchor_labels = {1, 2, 1, 4};  // no item has label 4: the last is not compared
  ASSERT_OK_AND_ASSIGN(const LabelAgreement agreement, scene.Compare({1, 1, 2}));
  EXPECT_EQ(agreement.anchors, 3);
  EXPECT_DOUBLE_EQ(agreement.with_items, 2. / 3);     // 5 and 10 degrees; 80 finds label 1
  EXPECT_DOUBLE_EQ(agreement.among_anchors, 2. / 3);  // 5 and 10 find each other; 80 finds 10
  EXPECT_NEAR(agreement.by_chance, (2. / 3 + 1. / 3 + 2. / 3) / 3, 1e-15);
}

TEST(LabelAgreement, TrueLabelsPassAndShuffledOnesAreRefused) {
  std::mt19937 bits(1);
  for (unsigned seed = 0; seed < 10; ++seed) {
    for (const double spread : {.1, .3}) {
      const Scene scene = Draw(/*per_class=*/5, spread, seed);
      EXPECT_THAT(CheckLabelsAgree(*scene.Compare(scene.item_labels)), IsOk()) << seed;
      std::vector<int32_t> shuffled = scene.item_labels;
      std::shuffle(shuffled.begin(), shuffled.end(), bits);
      EXPECT_THAT(CheckLabelsAgree(*scene.Compare(shuffled)),
                  FailsWith(kFailedPrecondition,
                            "the items' labels do not seem to mean the anchors' classes: of 128"));
      std::vector<int32_t> renamed = scene.item_labels;  // every class has the name of the next
      for (int32_t& label : renamed) label = (label + 1) % kClasses;
      EXPECT_FALSE(CheckLabelsAgree(*scene.Compare(renamed)).ok()) << seed;
    }
  }
}

// Every 20th item would be of one class only.
TEST(LabelAgreement, TrueLabelsInTurnPass) {
  const Scene scene = Draw(/*per_class=*/2000, /*spread=*/.1, /*seed=*/1);
  ASSERT_OK_AND_ASSIGN(const LabelAgreement agreement, scene.Compare(scene.item_labels));
  EXPECT_GT(agreement.with_items, .9);
  EXPECT_THAT(CheckLabelsAgree(agreement), IsOk());
}

// 40 draws; features that tell nothing give no reason to refuse: they pass unless a share is 4
// standard errors off, with probability 40 x 3e-5.
TEST(LabelAgreement, FeaturesThatTellNothingPass) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Scene scene = Draw(/*per_class=*/5, /*spread=*/100, seed);
    EXPECT_THAT(CheckLabelsAgree(*scene.Compare(scene.item_labels)), IsOk()) << seed;
  }
}

TEST(LabelAgreement, GalleryWithoutClassOfAnchorsPasses) {
  const Scene scene = Draw(/*per_class=*/2, .1, 1);
  const std::vector<int32_t> others(scene.item_labels.size(), kClasses + 1);
  ASSERT_OK_AND_ASSIGN(const LabelAgreement agreement, scene.Compare(others));
  EXPECT_EQ(agreement.anchors, 0);
  EXPECT_THAT(CheckLabelsAgree(agreement), IsOk());
}

TEST(LabelAgreement, ObserverStopsTheComparison) {
  const Scene scene = Draw(/*per_class=*/2, .1, 1);
  EXPECT_THAT(CompareLabels(MatrixPoints(scene.points), scene.item_labels, scene.anchor_labels,
                            [] { return absl::CancelledError("enough"); }),
              FailsWith(kCancelled, "enough"));
}

}  // namespace
}  // namespace privatemail::server::label_agreement_test
