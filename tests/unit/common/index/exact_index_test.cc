#include "common/index/exact_index.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace privatemail {
namespace {

// Edge cases of the trees: duplicates, ties on a lattice, lines, clusters, overflow.
std::vector<Matrix> Clouds(Eigen::Index dim) {
  std::mt19937 bits(static_cast<unsigned>(dim));
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> small(0, 3);
  const Matrix random = Matrix::NullaryExpr(3000, dim, [&] { return normal(bits); });
  std::vector<Matrix> clouds = {random, Matrix::NullaryExpr(3000, dim, [&] { return small(bits); }),
                                Matrix::Ones(500, dim), random.topRows(1), random.topRows(2)};
  clouds.push_back(random.col(0).replicate(1, dim));
  // Like embeddings: near an oblique line, far from the origin.
  clouds.push_back(clouds.back() + 1e-9 * random);
  for (Eigen::Index c = 0; c < dim; ++c) clouds.back().col(c) *= .1 + static_cast<double>(c);
  clouds.back().array() += 3;
  clouds.push_back(1e-3 * random);
  clouds.back().topRows(1500).array() += 1e6;
  // Distances of neighbours are below the rounding of rotated coordinates.
  clouds.push_back(1e-9 * random);
  clouds.back().topRows(1500).array() += 1e6;
  // Classes whose rows all coincide, and which are a millionth of their distances wide.
  Matrix classes(3000, dim);
  for (Eigen::Index row = 0; row < classes.rows(); ++row) classes.row(row) = random.row(row % 10);
  clouds.push_back(classes);
  clouds.push_back(classes + 1e-6 * random);
  // Floats at the scale of the outlier cannot distinguish the other rows.
  clouds.push_back(random);
  clouds.back().row(7) *= 1e9;
  // Neighbouring numbers, whose middle is rounded to one of them.
  clouds.push_back(Matrix::NullaryExpr(3000, dim, [&] { return 1e16 + 2 * (small(bits) % 2); }));
  clouds.push_back(1e200 * random);
  clouds.push_back(1e-310 * random);
  return clouds;
}

void ExpectSame(const std::vector<std::vector<Neighbor>>& found,
                const std::vector<std::vector<Neighbor>>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t q = 0; q < found.size(); ++q) {
    ASSERT_EQ(found[q].size(), expected[q].size());
    for (size_t i = 0; i < found[q].size(); ++i) {
      EXPECT_EQ(found[q][i].row, expected[q][i].row);
      EXPECT_EQ(found[q][i].squared_distance, expected[q][i].squared_distance);
    }
  }
}

// Both squared distances overflow in single precision; in double the second is smaller by one
// rounding.
TEST(ExactIndex, FarQueryIsComparedInDouble) {
  Matrix points = Matrix::Zero(2, 5);
  points(0, 0) = 2047;
  points(1, 0) = 2049;
  Matrix query = Matrix::Zero(1, 5);
  query(0, 0) = 0x1p65;
  const auto found = ExactIndex(points).Search(query, 1, nullptr);
  ASSERT_EQ(found[0].size(), 1u);
  EXPECT_EQ(found[0][0].row, 1);
}

// Some of the points, points beside them, and three whose squares, or which themselves, overflow
// single precision. In the order of the rows, classes and clusters alternate.
Matrix QueriesFor(const Matrix& points) {
  Matrix queries = points.topRows(std::min<Eigen::Index>(points.rows(), 40));
  for (Eigen::Index q = 1; q < queries.rows(); q += 2) queries.row(q).array() += .25;
  // Between classes, where no leaf is near.
  for (Eigen::Index q = 2; q < queries.rows(); q += 4) {
    queries.row(q) = (points.row(q) + points.row(q / 2)) / 2;
  }
  double far = 1e12;
  for (Eigen::Index q = std::max<Eigen::Index>(0, queries.rows() - 5); q < queries.rows(); ++q) {
    queries.row(q) *= far;
    far *= far > 1e30 ? 1e100 : 1e8;
  }
  return queries;
}

TEST(ExactIndex, MatchesScanBitForBit) {
  for (const Eigen::Index dim : {1, 2, 3, 4, 5, 17}) {
    for (const Matrix& points : Clouds(dim)) {
      const ExactIndex index(points);
      std::vector<bool> hidden(static_cast<size_t>(points.rows()));
      for (size_t row = 0; row < hidden.size(); row += 3) hidden[row] = true;
      const Matrix queries = QueriesFor(points);
      for (const int64_t count : {0, 1, 8, 100, 5000}) {
        for (const std::vector<bool>* skipped :
             {static_cast<std::vector<bool>*>(nullptr), &hidden}) {
          ExpectSame(index.Search(queries, count, skipped),
                     NearestRows(queries, points, count, skipped));
        }
      }
    }
  }
}

TEST(ExactIndex, PartMatchesScanBitForBit) {
  for (const Eigen::Index dim : {2, 6}) {
    for (const Matrix& points : Clouds(dim)) {
      const ExactIndex index(points);
      std::vector<int64_t> rows;
      std::vector<bool> others(static_cast<size_t>(points.rows()), true);
      for (int64_t row = 0; row < points.rows() - 1; row += 2) {
        rows.push_back(row);
        others[static_cast<size_t>(row)] = false;
      }
      const ExactIndex::Part part(index, rows);
      const Matrix queries = QueriesFor(points);
      for (const int64_t count : {8, 2000}) {
        ExpectSame(part.Search(queries, count), NearestRows(queries, points, count, &others));
      }
      EXPECT_TRUE(ExactIndex::Part(index, {}).Search(queries.topRows(1), 2).front().empty());
    }
  }
}

// A search that starts where every row is hidden has to go on elsewhere.
TEST(ExactIndex, HiddenClustersAreLeftOut) {
  constexpr Eigen::Index kDim = 5;
  Matrix points = Clouds(kDim).front();
  for (Eigen::Index row = 0; row < points.rows(); ++row) {
    points.row(row).array() += 100. * static_cast<double>(row % 3);
  }
  std::vector<bool> hidden(static_cast<size_t>(points.rows()));
  for (size_t row = 0; row < hidden.size(); ++row) hidden[row] = row % 3 != 0 && row != 2999;
  const Matrix queries = points.topRows(30);
  for (const int64_t count : {1, 8, 1001}) {
    ExpectSame(ExactIndex(points).Search(queries, count, &hidden),
               NearestRows(queries, points, count, &hidden));
  }
}

}  // namespace
}  // namespace privatemail
