#include "client/schemes/class_ranker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace privatemail::client {
namespace {

constexpr int kClasses = 6;
constexpr int kEach = 12;

struct Cloud {
  Matrix rows;
  std::vector<int64_t> slots;
};

// Classes 0 and 1 overlap, the others are far apart.
Cloud DrawCloud(int each, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal;
  Cloud cloud;
  cloud.rows.resize(kClasses * each, 8);
  for (int c = 0; c < kClasses; ++c) {
    for (int i = 0; i < each; ++i) {
      RowVector row = RowVector::NullaryExpr(8, [&] { return .12 * normal(bits); });
      row[std::max(c, 1)] += 1;
      cloud.rows.row(c * each + i) = row.normalized();
      cloud.slots.push_back(c);
    }
  }
  return cloud;
}

int64_t Sum(const std::vector<ClassPlaces>& allotted) {
  int64_t sum = 0;
  for (const ClassPlaces& one : allotted) sum += one.places;
  return sum;
}

TEST(ClassRanker, SureTargetGetsOneClassUnsureOneSeveral) {
  const Cloud anchors = DrawCloud(kEach, 1);
  const ClassRanker ranker(anchors.rows, anchors.slots, kClasses);
  const Cloud targets = DrawCloud(20, 2);
  for (Eigen::Index i = 0; i < targets.rows.rows(); ++i) {
    const int64_t truth = targets.slots[static_cast<size_t>(i)];
    const auto allotted = ranker.Allot(targets.rows.row(i), 8, 0);
    EXPECT_EQ(Sum(allotted), 8);
    if (truth > 1) {
      ASSERT_EQ(allotted.size(), 1u) << i;
      EXPECT_EQ(allotted[0].slot, truth) << i;
    } else {
      ASSERT_EQ(allotted.size(), 2u) << i;
      EXPECT_EQ(allotted[0].slot + allotted[1].slot, 1) << i;
    }
  }
  EXPECT_GT(ranker.ExpectedRecall(8, 0), .95);
  EXPECT_LT(ranker.ExpectedRecall(8, 1), .9);  // half of two classes' targets are misplaced
}

TEST(ClassRanker, AllotsAtLeastOnePlaceAndTheRestByPosterior) {
  const Cloud anchors = DrawCloud(kEach, 1);
  const ClassRanker ranker(anchors.rows, anchors.slots, kClasses);
  const RowVector target = DrawCloud(1, 5).rows.row(0);
  const Vector posterior = ranker.Posterior(target);
  for (const int64_t k : {1, 3, 8, 100}) {
    for (const int64_t m : {1, 2, 4, 6, 9}) {
      const auto allotted = ranker.Allot(target, k, m);
      EXPECT_EQ(std::ssize(allotted), std::min<int64_t>({k, m, kClasses}));
      EXPECT_EQ(Sum(allotted), k);
      double covered = 0;
      for (const ClassPlaces& one : allotted) covered += one.posterior;
      for (size_t i = 0; i < allotted.size(); ++i) {
        EXPECT_GE(allotted[i].places, 1);
        EXPECT_EQ(allotted[i].posterior, posterior[allotted[i].slot]);
        if (i > 0) {
          EXPECT_GE(allotted[i - 1].posterior, allotted[i].posterior);
        }
        // One place at least takes from the quotas of others, at most as many as there are classes.
        EXPECT_LE(allotted[i].places, std::max(1.0, std::ceil(allotted[i].posterior / covered *
                                                              static_cast<double>(k))));
      }
    }
  }
}

TEST(ClassRanker, OneAnchorAClassAndEqualAnchorsAreRanked) {
  const ClassRanker single(Matrix::Identity(3, 5), {0, 1, 2}, 3);
  EXPECT_TRUE(single.Posterior(RowVector::Unit(5, 1)).allFinite());
  Matrix equal = Matrix::Zero(6, 4);
  for (int i = 0; i < 6; ++i) equal(i, i % 2) = 1;
  const ClassRanker pure(equal, {0, 1, 0, 1, 0, 1}, 2);
  EXPECT_EQ(pure.Allot(RowVector::Unit(4, 1), 8, 1).front().slot, 1);
  EXPECT_TRUE(pure.Posterior(RowVector::Unit(4, 2)).allFinite());
}

}  // namespace
}  // namespace privatemail::client
