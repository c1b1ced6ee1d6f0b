#include "common/numerics/bordered_affinity.h"

#include "tests/unit/numerics/affinity_cases.h"

namespace privatemail::testing {
namespace {

BorderedAffinity Bordered(const Matrix& points, Eigen::Index border, double c) {
  return {points.topRows(border),
          std::make_shared<FixedRows>(points.bottomRows(points.rows() - border), c)};
}

TEST(BorderedAffinity, EqualsTheDenseMatrixOnEveryCloudForAnyBandwidthAndBorder) {
  for (const Cloud& cloud : Clouds()) {
    const Eigen::Index n = cloud.points.rows();
    const Matrix v = Normal(n, 3, 17);
    for (const double c : {0.3, 72.0, 1e8}) {
      for (const Eigen::Index border : {Eigen::Index{1}, n / 2, n - 1}) {
        ExpectClose(Bordered(cloud.points, border, c), cloud.points, c, v, 1e-13, cloud.name);
      }
    }
  }
}

// As many of them as are too many to be kept.
TEST(BorderedAffinity, TakesManyFixedRows) {
  const Matrix points = UnitNormal(4200, 3, 1);
  ExpectClose(Bordered(points, 10, 2), points, 2, Normal(4200, 2, 2), 1e-13, "4,190 fixed rows");
}

TEST(BorderedAffinity, SharesFixedRowsBetweenBorders) {
  const Matrix points = UnitNormal(300, 7, 1);
  const auto fixed = std::make_shared<const FixedRows>(points.bottomRows(290), 2);
  const Matrix v = Normal(300, 2, 2);
  for (const unsigned seed : {1u, 2u}) {
    Matrix other = points;
    other.topRows(10) = UnitNormal(10, 7, seed);
    ExpectClose(BorderedAffinity(other.topRows(10), fixed), other, 2, v, 1e-13, "border");
  }
}

TEST(BorderedAffinity, StopsWhenItsObserverSaysSo) {
  const auto product =
      Bordered(UnitNormal(300, 7, 1), 10, 2).MultiplyWithDegrees(Matrix::Ones(300, 1), [](double) {
        return absl::CancelledError("enough");
      });
  EXPECT_EQ(product.status(), absl::CancelledError("enough"));
}

}  // namespace
}  // namespace privatemail::testing
