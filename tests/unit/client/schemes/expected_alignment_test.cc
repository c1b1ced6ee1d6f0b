#include "client/schemes/expected_alignment.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/testing/matchers.h"

namespace privatemail::client::expected_alignment_test {
namespace {

constexpr int kClasses = 10;
constexpr int kEach = 6;

struct Cloud {
  Matrix anchors{kClasses * kEach, 2};
  std::vector<int64_t> slots;
};

// Classes on a circle.
Cloud DrawCloud(unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal;
  Cloud cloud;
  for (int i = 0; i < kClasses * kEach; ++i) {
    const int slot = i % kClasses;
    const double angle = 2 * M_PI * slot / kClasses;
    cloud.anchors.row(i) << std::cos(angle) + .02 * normal(bits),
        std::sin(angle) + .02 * normal(bits);
    cloud.slots.push_back(slot);
  }
  return cloud;
}

// The mean of each class's anchors, then the anchors.
Matrix MeansThenAnchors(const Cloud& cloud) {
  Matrix rows(kClasses + cloud.anchors.rows(), 2);
  rows << Matrix::Zero(kClasses, 2), cloud.anchors;
  for (Eigen::Index i = 0; i < cloud.anchors.rows(); ++i) {
    rows.row(cloud.slots[static_cast<size_t>(i)]) += cloud.anchors.row(i) / kEach;
  }
  return rows;
}

Matrix Turned(const Matrix& rows) {
  Matrix turn(2, 2);
  turn << .6, .8, -.8, .6;
  return (3 * rows * turn).rowwise() + RowVector{{5, -2}};
}

TEST(ExpectAlignment, SimilarCloudsAlign) {
  const Cloud cloud = DrawCloud(1);
  ASSERT_OK_AND_ASSIGN(
      const ExpectedAlignment alignment,
      ExpectAlignment(MeansThenAnchors(cloud), cloud.slots, Turned(cloud.anchors)));
  EXPECT_EQ(alignment.recall, 1);
  EXPECT_LT(alignment.relative_residual, 1e-12);
  EXPECT_THAT(CheckAlignment(alignment), IsOk());
}

TEST(ExpectAlignment, CountsSlotsThatLandAtOtherClasses) {
  const Cloud cloud = DrawCloud(1);
  Matrix rows = MeansThenAnchors(cloud);
  rows.row(3).swap(rows.row(7));
  ASSERT_OK_AND_ASSIGN(const ExpectedAlignment alignment,
                       ExpectAlignment(rows, cloud.slots, Turned(cloud.anchors)));
  EXPECT_DOUBLE_EQ(alignment.recall, .8);
  EXPECT_THAT(CheckAlignment(alignment), FailsWith(kFailedPrecondition, "expected_recall must"));
}

TEST(ExpectAlignment, RefusesNaN) {
  EXPECT_FALSE(CheckAlignment({.recall = std::nan("")}).ok());
  EXPECT_FALSE(CheckPairing(std::nan("")).ok());
}

TEST(PairingScore, IsTheSumOverItsSpreadUnderOrdersWithinClasses) {
  const Cloud cloud = DrawCloud(1);
  Matrix noisy = cloud.anchors;
  std::mt19937 bits(2);
  std::normal_distribution<double> normal;
  for (double& value : noisy.reshaped()) value += .02 * normal(bits);
  const Matrix means = MeansThenAnchors(cloud).topRows(kClasses);
  const auto sum_of = [&](const Matrix& server) {
    double sum = 0;
    for (Eigen::Index i = 0; i < server.rows(); ++i) {
      sum += (cloud.anchors.row(i) - means.row(cloud.slots[static_cast<size_t>(i)]))
                 .dot(server.row(i));
    }
    return sum;
  };
  // 4,000 random orders: the standard deviation is known to 1.1 %; 5 times that is allowed.
  constexpr int kOrders = 4000;
  double squares = 0;
  double total = 0;
  for (int order = 0; order < kOrders; ++order) {
    Matrix permuted = noisy;
    for (int slot = 0; slot < kClasses; ++slot) {
      std::vector<int> places(kEach);
      for (int i = 0; i < kEach; ++i) places[static_cast<size_t>(i)] = i * kClasses + slot;
      std::vector<int> from = places;
      std::shuffle(from.begin(), from.end(), bits);
      for (size_t i = 0; i < places.size(); ++i) permuted.row(places[i]) = noisy.row(from[i]);
    }
    total += sum_of(permuted);
    squares += sum_of(permuted) * sum_of(permuted);
  }
  const double mean = total / kOrders;
  const double spread = std::sqrt(squares / kOrders - mean * mean);
  const double score = PairingScore(cloud.anchors, noisy, cloud.slots);
  EXPECT_NEAR(score, (sum_of(noisy) - mean) / spread, .055 * score + 5 / std::sqrt(kOrders));
  EXPECT_THAT(CheckPairing(score), IsOk());
}

// 200 wrong orders, of which each passes with probability 2.3e-4: one may.
TEST(PairingScore, RefusesWrongOrders) {
  const Cloud cloud = DrawCloud(1);
  std::mt19937 bits(3);
  int passed = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int> order(kClasses * kEach);
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::shuffle(order.begin(), order.end(), bits);
    passed +=
        CheckPairing(PairingScore(cloud.anchors, cloud.anchors(order, Eigen::all), cloud.slots))
            .ok();
  }
  EXPECT_LE(passed, 1);
}

TEST(PairingScore, OneAnchorAClassShowsNothing) {
  const Matrix rows = Matrix::Random(4, 2);
  EXPECT_EQ(PairingScore(rows, rows, {0, 1, 2, 3}), 0);
  EXPECT_THAT(CheckPairing(0), FailsWith(kFailedPrecondition, "own_anchors must be"));
}

}  // namespace
}  // namespace privatemail::client::expected_alignment_test
