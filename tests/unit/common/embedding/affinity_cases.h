// Point clouds for tests of affinity operators, and the comparison with the dense matrix.
#ifndef PRIVATEMAIL_TESTS_UNIT_COMMON_EMBEDDING_AFFINITY_CASES_H_
#define PRIVATEMAIL_TESTS_UNIT_COMMON_EMBEDDING_AFFINITY_CASES_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "common/base/matrix.h"
#include "common/embedding/affinity.h"
#include "common/numerics/point_source.h"

namespace privatemail::testing {

inline Matrix Normal(Eigen::Index n, Eigen::Index d, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(n, d, [&] { return normal(bits); });
}

inline Matrix UnitNormal(Eigen::Index n, Eigen::Index d, unsigned seed) {
  return Normal(n, d, seed).rowwise().normalized();
}

struct Cloud {
  std::string name;
  Matrix points;  // of length at most 1
};

// Rows of length at most 1 around the borders of blocks of 128, 256 and 512 rows, and what is
// special: duplicates, opposites, rows of length zero, two rows, one dimension.
inline std::vector<Cloud> Clouds() {
  std::vector<Cloud> clouds;
  for (const int n : {2, 3, 127, 128, 129, 255, 256, 257, 513, 640, 641, 1153}) {
    clouds.push_back({"random, n " + std::to_string(n), UnitNormal(n, 5, n)});
  }
  for (const int d : {2, 3, 33}) {
    const std::string dims = ", d " + std::to_string(d);
    clouds.push_back({"duplicates" + dims, UnitNormal(1, d, 1).colwise().replicate(300)});
    Matrix opposite = UnitNormal(300, d, 2);
    opposite.bottomRows(150) = -opposite.topRows(150);
    clouds.push_back({"opposites" + dims, opposite});
    clouds.push_back({"two opposite rows" + dims, opposite({0, 150}, Eigen::all)});
  }
  Matrix with_zeros = UnitNormal(300, 16, 3);
  with_zeros.middleRows(100, 30).setZero();
  clouds.push_back({"rows of length zero", with_zeros});
  clouds.push_back({"all rows of length zero", Matrix::Zero(200, 4)});
  clouds.push_back({"of any length up to 1", (UnitNormal(400, 40, 4).array().colwise() *
                                              (0.5 + 0.5 * Normal(400, 1, 5).array().sin()).col(0))
                                                 .matrix()});
  clouds.push_back({"one dimension", UnitNormal(300, 1, 6)});
  return clouds;
}

// |W~ v - W v|_i <= error ((W |v|)_i + |v_i|) for every row and column, degrees likewise.
inline void ExpectClose(const AffinityOperator& affinity, const Matrix& points, double denominator,
                        const Matrix& v, double error, const std::string& name) {
  const Matrix w = GaussianAffinity(points, denominator);
  const Matrix allowed = error * (w * v.cwiseAbs() + v.cwiseAbs());
  const auto first = affinity.MultiplyWithDegrees(v);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto later = affinity.Multiply(v, first->degrees);
  ASSERT_TRUE(later.ok()) << later.status();
  const Matrix expected = w * v;
  EXPECT_TRUE(((first->product - expected).array().abs() <= allowed.array()).all()) << name;
  EXPECT_TRUE(((*later - expected).array().abs() <= allowed.array()).all()) << name;
  const Vector degrees = w.rowwise().sum();
  EXPECT_TRUE(((first->degrees - degrees).array().abs() <= error * (1 + degrees.array())).all())
      << name;
}

// Expects a product to end within half a second of an observer's error, before `max_share` is done.
inline void ExpectObserverStopsSoon(const AffinityOperator& affinity, Eigen::Index columns,
                                    double max_share) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  Clock::time_point called;
  double last_share = 0;
  const Matrix v = Matrix::Ones(affinity.size(), columns);
  const auto product = affinity.MultiplyWithDegrees(v, [&](double share) {
    EXPECT_GE(share, last_share);
    EXPECT_LE(share, 1);
    last_share = share;
    called = Clock::now();
    return share > 0 ? absl::CancelledError("enough") : absl::OkStatus();
  });
  EXPECT_EQ(product.status(), absl::CancelledError("enough"));
  EXPECT_LT(last_share, max_share);
  // Relative, since a busy machine slows both parts.
  EXPECT_LT(Clock::now() - called,
            std::max<Clock::duration>(called - start, std::chrono::milliseconds(500)));
}

// A source whose rows from `bad` on are unreadable.
class DamagedPoints : public MatrixPoints {
 public:
  DamagedPoints(Matrix points, Eigen::Index bad) : MatrixPoints(std::move(points)), bad_(bad) {}
  absl::Status Read(Eigen::Index first, Matrix* block) const override {
    if (first + block->rows() > bad_) return absl::DataLossError("row is gone");
    return MatrixPoints::Read(first, block);
  }

 private:
  Eigen::Index bad_;
};

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_COMMON_EMBEDDING_AFFINITY_CASES_H_
