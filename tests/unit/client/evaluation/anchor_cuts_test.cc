#include "client/evaluation/anchor_cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace privatemail::client {
namespace {

// Two classes side by side along the first axis, and far spread along the second.
struct Stripes {
  Matrix rows{400, 3};
  std::vector<int32_t> labels;

  Stripes() {
    std::mt19937 bits(1);
    std::normal_distribution<double> normal;
    for (int row = 0; row < rows.rows(); ++row) {
      labels.push_back(row % 2 == 0 ? 4 : 9);
      rows.row(row) << .2 * normal(bits) + (row % 2), 3 * normal(bits), .2 * normal(bits);
    }
  }
};

TEST(DiscriminantRows, HaveOneDirectionForTwoClassesAndTellThemApart) {
  const Stripes stripes;
  const Matrix found = DiscriminantRows(stripes.rows, stripes.labels);
  ASSERT_EQ(found.rows(), 400);
  ASSERT_EQ(found.cols(), 1);
  // Of two classes Fisher's direction is S^-1 (m1 - m0): the first axis, for the others have no
  // part in the difference of means. What the first axis tells of a row the discriminant tells,
  // too.
  const Vector along = found.col(0).array() - found.mean();
  const Vector first = stripes.rows.col(0).array() - stripes.rows.col(0).mean();
  EXPECT_GT(std::abs(along.dot(first)) / (along.norm() * first.norm()), .95);
  const Vector second = stripes.rows.col(1).array() - stripes.rows.col(1).mean();
  EXPECT_LT(std::abs(along.dot(second)) / (along.norm() * second.norm()), .3);
}

TEST(DiscriminantRows, AreAsManyAsClassesLessOneOrAsDimensions) {
  const Stripes stripes;
  std::vector<int32_t> labels;
  for (int row = 0; row < 400; ++row) labels.push_back(row % 3);
  EXPECT_EQ(DiscriminantRows(stripes.rows, labels).cols(), 2);
  for (int row = 0; row < 400; ++row) labels[static_cast<size_t>(row)] = row % 20;
  EXPECT_EQ(DiscriminantRows(stripes.rows, labels).cols(), 3);
}

TEST(DiscriminantRows, AreFiniteWhereNoClassIsWide) {
  Matrix rows = Matrix::Zero(6, 4);
  rows.topRows(3).col(0).setOnes();
  EXPECT_TRUE(DiscriminantRows(rows, {0, 0, 0, 1, 1, 1}).allFinite());
}

std::vector<int64_t> SizesOf(const std::vector<int64_t>& cells, int64_t count) {
  std::vector<int64_t> sizes(static_cast<size_t>(count));
  for (const int64_t cell : cells) ++sizes.at(static_cast<size_t>(cell));
  return sizes;
}

TEST(BalancedCells, AreOfASizeWhateverTheClouds) {
  std::mt19937 bits(2);
  std::normal_distribution<float> normal;
  FloatMatrix rows = FloatMatrix::NullaryExpr(103, 5, [&] { return normal(bits); });
  rows.topRows(80).array() += 4;  // most of them in one cloud
  for (const int64_t count : {1, 2, 7, 50, 103}) {
    const std::vector<int64_t> sizes = SizesOf(BalancedCells(rows, count), count);
    const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
    EXPECT_GE(*least, 103 / count);
    EXPECT_LE(*most, (103 + count - 1) / count);
  }
}

TEST(BalancedCells, AreTheCloudsWhereTheseAreOfASize) {
  std::mt19937 bits(2);
  std::normal_distribution<float> noise(0, .1F);
  FloatMatrix rows = FloatMatrix::NullaryExpr(60, 4, [&] { return noise(bits); });
  for (int row = 0; row < 60; ++row) rows(row, row % 3) += 2;
  const std::vector<int64_t> cells = BalancedCells(rows, 3);
  for (size_t row = 3; row < 60; ++row) EXPECT_EQ(cells[row], cells[row % 3]);
  EXPECT_THAT(SizesOf(cells, 3), testing::ElementsAre(20, 20, 20));
}

TEST(MeansOfCells, AreThoseOfFeaturesWithoutEmptyCells) {
  Matrix features(3, 2);
  features << 1, 0, 0, 1, 2, 4;
  FloatMatrix expected(2, 2);
  expected << .5F, .5F, 2, 4;
  EXPECT_EQ(MeansOfCells(features, {0, 0, 2}, 4), expected);
}

}  // namespace
}  // namespace privatemail::client
