#include "common/embedding/tiled_affinity.h"

#include <cmath>

#include "tests/unit/common/embedding/affinity_cases.h"

namespace privatemail::testing {
namespace {

TEST(TiledAffinity, MatchesDenseMatrix) {
  for (const Cloud& cloud : Clouds()) {
    const Matrix v = Normal(cloud.points.rows(), 3, 17);
    for (const double c : {0.3, 2.5, 72.0, 1e8}) {
      ExpectClose(TiledAffinity(cloud.points, c), cloud.points, c, v, 1e-13, cloud.name);
    }
  }
}

// Squared distances of unit rows are exact to 2^-50 (d + 4); a small c amplifies that.
TEST(TiledAffinity, TinyBandwidthStaysWithinDocumentedError) {
  constexpr double kDenominator = 1e-6;
  for (const Cloud& cloud : Clouds()) {
    // So close that affinities are neither 0 nor 1.
    const Matrix near =
        cloud.points.row(0).replicate(cloud.points.rows(), 1) * (1 - 1e-3) + 1e-3 * cloud.points;
    const auto d = static_cast<double>(near.cols());
    const double error = std::ldexp(d + 4, -50) / kDenominator + 1e-13;
    const Matrix v = Normal(near.rows(), 3, 17);
    ExpectClose(TiledAffinity(near, kDenominator), near, kDenominator, v, error, cloud.name);
    ExpectClose(TiledAffinity(cloud.points, kDenominator), cloud.points, kDenominator, v, error,
                cloud.name);
  }
}

TEST(TiledAffinity, FewColumnsFarFromOriginStayExact) {
  for (const int d : {1, 2, 3, 4}) {
    const Matrix points = Normal(700, d, d).array() + 1e6;
    ExpectClose(TiledAffinity(points, 2.5), points, 2.5, Normal(700, 2, 5), 1e-13,
                std::to_string(d));
  }
}

TEST(TiledAffinity, CachedMatrixGivesSameBits) {
  for (const int n : {2, 129, 1100, 4096, 4097}) {
    const Matrix points = Normal(n, 2, n);
    const Matrix v = Normal(n, 2, n + 1);
    const TiledAffinity uncached(points, 2.5, 1);
    const auto computed = uncached.MultiplyWithDegrees(v);
    EXPECT_EQ(*uncached.Multiply(v, computed->degrees), computed->product) << n;
    const TiledAffinity cached(points, 2.5, 5);
    for (int product = 0; product < 2; ++product) {
      EXPECT_EQ(cached.MultiplyWithDegrees(v)->product, computed->product) << n;
      EXPECT_EQ(cached.MultiplyWithDegrees(v)->degrees, computed->degrees) << n;
    }
  }
}

TEST(TiledAffinity, DuplicatePointsHaveAffinityAtMostOne) {
  const Matrix points = Normal(1, 64, 3).colwise().replicate(3) * 1e3;
  const auto product = TiledAffinity(points, 1e-6).MultiplyWithDegrees(Matrix::Ones(3, 1));
  EXPECT_LE(product->degrees.maxCoeff(), 2.0);
}

TEST(TiledAffinity, IsolatedRowsHaveDegreeAndProductZero) {
  const Matrix points = 1e6 * UnitNormal(300, 3, 4);
  const Matrix v = Normal(300, 2, 5);
  const auto first = TiledAffinity(points, 1e-3).MultiplyWithDegrees(v);
  EXPECT_TRUE((first->degrees.array() == 0).all());
  EXPECT_TRUE((first->product.array() == 0).all());
  const auto later = TiledAffinity(points, 1e-3).Multiply(v, first->degrees);
  EXPECT_TRUE((later->array() == 0).all());
}

TEST(TiledAffinity, ReadErrorIsReturned) {
  const TiledAffinity affinity(std::make_shared<DamagedPoints>(UnitNormal(700, 4, 1), 600), 2);
  EXPECT_EQ(affinity.MultiplyWithDegrees(Matrix::Ones(700, 1)).status(),
            absl::DataLossError("row is gone"));
}

// 40,000 rows of 256 coordinates would take several seconds.
TEST(TiledAffinity, ObserverErrorStopsProductSoon) {
  ExpectObserverStopsSoon(TiledAffinity(UnitNormal(40000, 256, 1), 72), 1, 0.5);
}

}  // namespace
}  // namespace privatemail::testing
