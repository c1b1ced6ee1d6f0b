#include "common/numerics/decompositions.h"

#include <cmath>
#include <limits>

#include "tests/unit/common/embedding/affinity_cases.h"

namespace privatemail {
namespace {

using testing::Normal;

TEST(SpectralNormBound, IsSlightlyAboveTheLargestSingularValue) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {1, 7}, {7, 1}, {300, 2}, {16, 2000}}) {
    const Eigen::MatrixXd m = Normal(rows, cols, 3);
    const double norm = SingularValues(m)[0];
    EXPECT_GE(SpectralNormBound(m), norm * (1 - 1e-15)) << rows << " x " << cols;
    EXPECT_LE(SpectralNormBound(m), norm * (1 + 1e-10)) << rows << " x " << cols;
  }
}

// Gram matrices of such values would underflow or overflow.
TEST(SpectralNormBound, CoversExtremeScales) {
  for (const double scale : {1e-300, 1e-100, 1e100, 1e300}) {
    const Eigen::MatrixXd m = scale * Eigen::MatrixXd::Ones(4, 9);
    EXPECT_GE(SpectralNormBound(m), 6 * scale);
    EXPECT_LE(SpectralNormBound(m), 6 * scale * (1 + 1e-10));
  }
}

// The small singular value is lost in the Gram matrix, the large one is not.
TEST(SpectralNormBound, CoversNearlyDependentColumns) {
  Eigen::MatrixXd m = Eigen::MatrixXd::Ones(100, 2);
  m(0, 1) += 1e-12;
  EXPECT_GE(SpectralNormBound(m), std::sqrt(200));
  EXPECT_LE(SpectralNormBound(m), std::sqrt(200) * (1 + 1e-10));
}

TEST(SpectralNormBound, IsZeroOfZeroAndInfiniteOfNoNumber) {
  EXPECT_EQ(SpectralNormBound(Eigen::MatrixXd::Zero(3, 2)), 0);
  EXPECT_EQ(SpectralNormBound(Eigen::MatrixXd(0, 2)), 0);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
    Eigen::MatrixXd m = Eigen::MatrixXd::Ones(3, 2);
    m(1, 1) = bad;
    EXPECT_EQ(SpectralNormBound(m), kInfinity);
  }
}

}  // namespace
}  // namespace privatemail
