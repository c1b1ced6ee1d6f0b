#include "common/embedding/low_dimensional_affinity.h"

#include "common/embedding/plan_affinity.h"
#include "tests/unit/common/embedding/affinity_cases.h"

namespace privatemail::testing {
namespace {

double DirectErrorOf(const Matrix& points, double c, int degree) {
  const double range = 2 / c * points.rowwise().squaredNorm().maxCoeff();
  return TaylorError(degree, range) +
         LowDimensionalRounding(points.rows(), points.cols(), degree, range);
}

// Points of k coordinates and length about 1, with one outlier.
Matrix Points(Eigen::Index n, Eigen::Index k) {
  Matrix points = Normal(n, k, static_cast<unsigned>(n));
  points.row(0) *= 3;
  return points;
}

TEST(LowDimensionalAffinity, ErrorStaysWithinProvenBound) {
  for (const Eigen::Index k : {1, 2, 3}) {
    for (const Eigen::Index n : {2, 3, 500}) {
      const Matrix points = Points(n, k);
      for (const double c : {20.0, 72.0, 1e6}) {
        for (const int degree : {0, 1, 2, 5, 12, 20}) {
          ExpectClose(LowDimensionalAffinity(points, c, degree), points, c, Normal(n, 3, 17),
                      DirectErrorOf(points, c, degree), absl::StrCat("k ", k, ", degree ", degree));
        }
      }
    }
  }
}

TEST(LowDimensionalAffinity, HighDegreeMatchesDenseMatrix) {
  for (const Cloud& cloud : Clouds()) {
    if (cloud.points.cols() > 5) continue;
    ExpectClose(LowDimensionalAffinity(cloud.points, 9, 12), cloud.points, 9,
                Normal(cloud.points.rows(), 2, 18), 1e-13, cloud.name);
  }
}

TEST(LowDimensionalAffinity, TaylorDegreeIsSmallestWithinTolerance) {
  for (const double range : {1e-9, .1, 1., 3.}) {
    const int degree = *TaylorDegree(range, 1e-10);
    EXPECT_LE(TaylorError(degree, range), 1e-10);
    EXPECT_GT(TaylorError(degree - 1, range), 1e-10);
  }
  EXPECT_EQ(TaylorDegree(0, 0), 0);
  for (const double range : {50., std::nan(""), HUGE_VAL}) {
    EXPECT_EQ(TaylorDegree(range, 1e-10), std::nullopt) << range;
  }
}

AffinityTask Task(const Matrix& points, double c, double tolerance) {
  return {.rows = points.rows(),
          .cols = points.cols(),
          .kernel_denominator = c,
          .columns = 2,
          .products = 5,
          .in_memory = true,
          .max_squared_length = points.rowwise().squaredNorm().maxCoeff(),
          .tolerance = tolerance};
}

TEST(PlanAffinity, FewCoordinatesUseSeriesIfCheaper) {
  using Kind = AffinityPlan::Kind;
  struct Expected {
    Eigen::Index n, k;
    double c, tolerance;
    Kind kind;
  };
  for (const auto& [n, k, c, tolerance, kind] :
       std::vector<Expected>{{1100, 2, 72, 1e-10, Kind::kLowDimensional},
                             {1100, 1, 72, 1e-10, Kind::kLowDimensional},
                             {1100, 2, .01, 1e-10, Kind::kTiled},
                             {1100, 2, 72, 1e-18, Kind::kTiled},
                             {1100, 2, 72, 0, Kind::kTiled},
                             {20, 2, 72, 1e-10, Kind::kTiled},
                             {300, 4, 72, 1e-10, Kind::kTiled}}) {
    const Matrix points = Points(n, k);
    const AffinityPlan plan = PlanAffinity(Task(points, c, tolerance));
    EXPECT_EQ(plan.kind, kind) << plan.why;
    EXPECT_LE(plan.relative_error, tolerance) << plan.why;
    ExpectClose(*MakeAffinity(plan, points, c, 5), points, c, Normal(n, 2, 3),
                std::max(plan.relative_error, 1e-12), plan.why);
  }
}

// A release from a client must not make the server allocate without bound.
TEST(PlanAffinity, SeriesAboveMemoryLimitIsNotPlanned) {
  AffinityTask task = {.rows = 100'000,
                       .cols = 3,
                       .kernel_denominator = 72,
                       .columns = 3,
                       .products = 5,
                       .in_memory = true,
                       .max_squared_length = 1,
                       .tolerance = 1e-10};
  EXPECT_EQ(LowDimensionalAffinity::Features(3, 4), 35) << "terms of (1 + x + y + z)^4";
  const AffinityPlan small = PlanAffinity(task);
  ASSERT_EQ(small.kind, AffinityPlan::Kind::kLowDimensional);
  const auto bytes = [&](const AffinityPlan& plan) {
    return 8. * 100'000 * LowDimensionalAffinity::Features(3, plan.taylor_degree);
  };
  EXPECT_LE(bytes(small), static_cast<double>(kMaxSeriesBytes));
  EXPECT_LE(bytes(small), static_cast<double>(MaxAffinityBytes(100'000, 3)));
  task.max_squared_length = 100;
  EXPECT_THAT(PlanAffinity(task).why, ::testing::HasSubstr("features a row would take more than"));
  EXPECT_EQ(MaxAffinityBytes(100'000, 3), kMaxSeriesBytes);
  EXPECT_EQ(MaxAffinityBytes(1000, 8), 8 * 1000 * 1000 / 2);
  EXPECT_EQ(MaxAffinityBytes(100'000, 8), 0);
}

TEST(LowDimensionalAffinity, ObserverErrorStopsProduct) {
  const LowDimensionalAffinity affinity(Points(10, 2), 72, 3);
  EXPECT_EQ(affinity
                .MultiplyWithDegrees(Matrix::Ones(10, 1),
                                     [](double) { return absl::CancelledError("enough"); })
                .status(),
            absl::CancelledError("enough"));
}

}  // namespace
}  // namespace privatemail::testing
