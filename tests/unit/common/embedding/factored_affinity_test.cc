#include "common/embedding/factored_affinity.h"

#include <sched.h>

#include "common/embedding/plan_affinity.h"
#include "tests/unit/common/embedding/affinity_cases.h"

namespace privatemail::testing {
namespace {

std::shared_ptr<const PointSource> Source(Matrix points) {
  return std::make_shared<MatrixPoints>(std::move(points));
}

FactoredAffinity Factored(const Matrix& points, double c, int degree, double radius = 1 + 1e-12) {
  return {Source(points), c, FitExp(degree, 2 / c, radius)};
}

double ErrorOf(const Matrix& points, double c, int degree, double radius = 1 + 1e-12) {
  return FitExp(degree, 2 / c, radius).relative_error +
         FactoredRounding(points.rows(), points.cols(), 2 / c * radius);
}

TEST(FactoredAffinity, ErrorStaysWithinProvenBound) {
  for (const Cloud& cloud : Clouds()) {
    const Matrix v = Normal(cloud.points.rows(), 3, 17);
    for (const double c : {1.0, 4.5, 72.0, 1e6, 1e12}) {
      for (int degree = 0; degree <= 2; ++degree) {
        ExpectClose(Factored(cloud.points, c, degree), cloud.points, c, v,
                    ErrorOf(cloud.points, c, degree), cloud.name);
      }
    }
  }
}

TEST(FactoredAffinity, AnyScaleStaysWithinProvenBound) {
  for (const double scale : {1e-9, 30.0}) {
    const Matrix points = scale * UnitNormal(300, 2, 8);
    const double c = 100 * scale * scale;
    const double radius = scale * scale * (1 + 1e-12);
    ExpectClose(Factored(points, c, 2, radius), points, c, Normal(300, 2, 9),
                ErrorOf(points, c, 2, radius), "scaled");
  }
}

// The moments of all columns exceed the memory limit of one part.
TEST(FactoredAffinity, ManyColumnsAreSplitIntoParts) {
  const Matrix points = UnitNormal(300, 700, 10);
  ExpectClose(Factored(points, 72, 2), points, 72, Normal(300, 20, 11), ErrorOf(points, 72, 2),
              "many columns");
}

// Worker threads inherit the CPU affinity of the calling thread.
TEST(FactoredAffinity, BitsDoNotDependOnCores) {
  const Matrix points = UnitNormal(20000, 24, 12);
  const Matrix v = Normal(20000, 2, 13);
  const FactoredAffinity affinity = Factored(points, 72, 2);
  const auto on_all = affinity.MultiplyWithDegrees(v);
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const auto on_one = affinity.MultiplyWithDegrees(v);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(on_one->product, on_all->product);
  EXPECT_EQ(on_one->degrees, on_all->degrees);
}

TEST(FactoredAffinity, ReadErrorIsReturned) {
  const FactoredAffinity affinity(std::make_shared<DamagedPoints>(UnitNormal(7000, 4, 1), 6000), 72,
                                  FitExp(2, 2. / 72, 1.1));
  EXPECT_EQ(affinity.MultiplyWithDegrees(Matrix::Ones(7000, 1)).status(),
            absl::DataLossError("row is gone"));
}

TEST(FactoredAffinity, ObserverErrorStopsProductSoon) {
  ExpectObserverStopsSoon(Factored(UnitNormal(40000, 512, 1), 72, 2), 3, 0.9);
}

AffinityTask Task(Eigen::Index n, double c, double tolerance) {
  return {.rows = n,
          .cols = 128,
          .kernel_denominator = c,
          .max_squared_length = kUnitSquaredLength,
          .tolerance = tolerance};
}

TEST(PlanAffinity, ChoosesLowestDegreeWithinTolerance) {
  struct Expected {
    double c, tolerance;
    bool factored;
    int degree;
  };
  for (const auto& [c, tolerance, factored, degree] :
       std::vector<Expected>{{72, 1e-6, true, 2},
                             {72, 1e-3, true, 1},
                             {72, .1, true, 0},
                             {72, 8e-7, false, 0},
                             {50, 1e-6, false, 0},
                             {2e10, 1e-9, true, 0},
                             {72, 0, false, 0},
                             {1e-6, 1e-6, false, 0},
                             {72, std::nan(""), false, 0}}) {
    const AffinityPlan plan = PlanAffinity(Task(100000, c, tolerance));
    EXPECT_EQ(plan.kind == AffinityPlan::Kind::kFactored, factored) << plan.why;
    EXPECT_FALSE(plan.why.empty());
    if (!factored) continue;
    EXPECT_EQ(plan.polynomial.degree, degree) << plan.why;
    EXPECT_LE(plan.relative_error, tolerance);
  }
}

TEST(PlanAffinity, FewRowsAreTiled) {
  EXPECT_EQ(PlanAffinity(Task(1000, 72, 1e-6)).kind, AffinityPlan::Kind::kTiled);
  EXPECT_EQ(PlanAffinity(Task(2000, 72, 1e-6)).kind, AffinityPlan::Kind::kFactored);
}

TEST(PlanAffinity, MakeAffinityFollowsPlan) {
  const Matrix points = UnitNormal(1500, 128, 14);
  const Matrix v = Normal(1500, 2, 15);
  for (const double tolerance : {0., 1e-6, 1e-3}) {
    const AffinityPlan plan = PlanAffinity(Task(1500, 72, tolerance));
    const auto affinity = MakeAffinity(plan, Source(points), 72);
    ExpectClose(*affinity, points, 72, v, std::max(plan.relative_error, 1e-13), plan.why);
  }
}

}  // namespace
}  // namespace privatemail::testing
