#include "server/cells/anchor_training.h"

#include <faiss/impl/ProductQuantizer.h>

#include <random>
#include <string>

#include "tests/testing/matchers.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

// Clustered rows of length 1.
FloatMatrix ClusteredRows(int64_t count, unsigned seed, int dim = 32) {
  std::mt19937_64 bits(seed);
  std::normal_distribution<float> normal;
  const FloatMatrix directions =
      FloatMatrix::NullaryExpr(20, dim, [&] { return 3 * normal(bits); });
  FloatMatrix rows = FloatMatrix::NullaryExpr(count, dim, [&] { return normal(bits); });
  for (Eigen::Index row = 0; row < count; ++row) rows.row(row) += directions.row(row % 20);
  rows.rowwise().normalize();
  return rows;
}

// Mean squared error of FAISS's quantizer.
double LossOf(const faiss::ProductQuantizer& quantizer, const FloatMatrix& rows) {
  std::string codes(static_cast<size_t>(rows.rows()) * quantizer.code_size, '\0');
  auto* bytes = reinterpret_cast<uint8_t*>(codes.data());
  const auto count = static_cast<size_t>(rows.rows());
  quantizer.compute_codes(rows.data(), bytes, count);
  FloatMatrix decoded(rows.rows(), rows.cols());
  quantizer.decode(bytes, decoded.data(), count);
  return (decoded - rows).cast<double>().squaredNorm() / static_cast<double>(count);
}

// Mean squared error with the nearest centroid of each part.
double LossByHand(const ProductCodebook& codebook, const FloatMatrix& rows) {
  double sum = 0;
  for (int64_t part = 0; part < codebook.parts; ++part) {
    const int64_t begin = part * rows.cols() / codebook.parts;
    const int64_t count = (part + 1) * rows.cols() / codebook.parts - begin;
    const Matrix centroids = codebook.centroids.middleRows(begin, count).cast<double>();
    for (Eigen::Index row = 0; row < rows.rows(); ++row) {
      const Vector wanted = rows.row(row).segment(begin, count).cast<double>().transpose();
      sum += (centroids.colwise() - wanted).colwise().squaredNorm().minCoeff();
    }
  }
  return sum / static_cast<double>(rows.rows());
}

TEST(PartitionAnchors, AssignsNearestCentroidDeterministically) {
  const FloatMatrix anchors = SmallAnchors().features.rowwise().normalized();
  ASSERT_OK_AND_ASSIGN(const auto partitions, PartitionAnchors(anchors, {3, 5}));
  ASSERT_EQ(partitions.size(), 2u);
  EXPECT_THAT(Validate(partitions, 12), IsOk());
  for (const CellPartition& partition : partitions) {
    // k-means has converged, so each anchor is nearest to the mean of its cell.
    const Matrix centroids = CellCentroids(partition, anchors.cast<double>());
    for (Eigen::Index i = 0; i < 12; ++i) {
      Eigen::Index nearest = 0;
      (centroids.rowwise() - anchors.row(i).cast<double>()).rowwise().norm().minCoeff(&nearest);
      EXPECT_EQ(partition.cell_of_anchor[static_cast<size_t>(i)], nearest);
    }
  }
  ASSERT_OK_AND_ASSIGN(const auto again, PartitionAnchors(anchors, {3, 5}));
  EXPECT_EQ(again[1].cell_of_anchor, partitions[1].cell_of_anchor);
}

TEST(PartitionAnchors, InvalidCountsReturnInvalidArgument) {
  const FloatMatrix anchors = SmallAnchors().features.rowwise().normalized();
  EXPECT_THAT(PartitionAnchors(anchors, {1}),
              FailsWith(kInvalid, "cells must be between 2 and 12, but is 1"));
  EXPECT_THAT(PartitionAnchors(anchors, {13}),
              FailsWith(kInvalid, "cells must be between 2 and 12, but is 13"));
  EXPECT_THAT(PartitionAnchors(anchors, std::vector<int64_t>(9, 2)),
              FailsWith(kInvalid, "number of cell partitions must be between 0 and 8, but is 9"));
  EXPECT_THAT(PartitionAnchors(FloatMatrix::Ones(12, 4), {3}),
              FailsWith(kInvalid, "cells must be fewer than 3"));
  EXPECT_THAT(PartitionAnchors(FloatMatrix::Ones(12, 4), {2}),
              FailsWith(kInvalid, "cells cannot be made of anchors that all have one direction"));
}

// The stated error holds for other rows of the same distribution.
TEST(TrainCodebook, LossEqualsFaissAndIsStated) {
  const FloatMatrix all = ClusteredRows(2624, 1);
  const FloatMatrix rows = all.topRows(624);
  const FloatMatrix others = all.bottomRows(2000);
  ASSERT_OK_AND_ASSIGN(const ProductCodebook codebook, TrainCodebook(rows, CellCode::kPq8));
  EXPECT_THAT(Validate(codebook, CellCode::kPq8, 32), IsOk());
  ASSERT_EQ(codebook.centroids_per_part(), 16);
  const double stated = codebook.relative_squared_error;
  EXPECT_NEAR(stated, LossByHand(codebook, rows), 1e-5 * stated);
  EXPECT_LT(LossByHand(codebook, others), 1.3 * stated);
  faiss::ProductQuantizer quantizer(32, 16, 4);
  quantizer.train(624, rows.data());
  EXPECT_NEAR(stated, LossOf(quantizer, rows), .03 * stated);
}

TEST(TrainCodebook, ManyAnchorsGiveMoreCentroids) {
  const FloatMatrix rows = ClusteredRows(9984, 1, 16);
  ASSERT_OK_AND_ASSIGN(const ProductCodebook fine, TrainCodebook(rows, CellCode::kPq8));
  EXPECT_THAT(Validate(fine, CellCode::kPq8, 16), IsOk());
  EXPECT_EQ(fine.parts, 8);
  ASSERT_EQ(fine.centroids_per_part(), 256);
  EXPECT_NEAR(fine.relative_squared_error, LossByHand(fine, rows),
              1e-5 * fine.relative_squared_error);
  ASSERT_OK_AND_ASSIGN(const ProductCodebook coarse,
                       TrainCodebook(rows.topRows(9983), CellCode::kPq8));
  EXPECT_EQ(coarse.parts, 16);
  EXPECT_EQ(coarse.centroids_per_part(), 16);
  EXPECT_LT(fine.relative_squared_error, coarse.relative_squared_error);
  EXPECT_EQ(TrainCodebook(rows, CellCode::kPq8)->centroids, fine.centroids) << "deterministic";
}

TEST(TrainCodebook, TooFewAnchorsOrDimensionsReturnInvalidArgument) {
  EXPECT_THAT(TrainCodebook(ClusteredRows(623, 1), CellCode::kPq8),
              FailsWith(kInvalid, "cell_code pq8 must have at least 624 anchors to be trained on"));
  EXPECT_THAT(TrainCodebook(ClusteredRows(624, 1), CellCode::kPq32),
              FailsWith(kInvalid, "pq32 must have at least 64 dimensions with 624 anchors"));
  EXPECT_THAT(TrainCodebook(ClusteredRows(9984, 1), CellCode::kPq64),
              FailsWith(kInvalid, "must have at least 64 dimensions with 9984 anchors"));
  // One part a coordinate.
  EXPECT_THAT(TrainCodebook(ClusteredRows(624, 1), CellCode::kPq16), IsOk());
}

TEST(TrainCodebook, EqualAnchorsHaveNoLoss) {
  const FloatMatrix same = ClusteredRows(1, 5).replicate(700, 1);
  ASSERT_OK_AND_ASSIGN(const ProductCodebook codebook, TrainCodebook(same, CellCode::kPq8));
  EXPECT_TRUE(codebook.centroids.allFinite());
  EXPECT_LT(codebook.relative_squared_error, 1e-6);
}

}  // namespace
}  // namespace privatemail::testing
