// One product with the affinity matrix of n unit rows (s = 6, two columns and the degrees).
//
// usage: affinity_benchmark tiled|factored N D RUNS SAMPLED
//
// Prints a line of JSON: time, memory, and the largest relative error on SAMPLED rows compared with
// the definition. Baseline: numpy, see compare_numpy.py.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "common/embedding/plan_affinity.h"
#include "tests/benchmarks/measure.h"

namespace privatemail {
namespace {

constexpr double kDenominator = 72;  // s = 6

// max over sampled rows i and columns of |W~ v - W v|_i / (W |v|)_i, from differences of rows.
double LargestError(const PointSource& points, const Matrix& v, const Matrix& product,
                    Eigen::Index sampled) {
  const Eigen::Index n = points.rows(), stride = std::max<Eigen::Index>(1, n / sampled);
  Matrix all(n, points.cols());
  if (!points.Read(0, &all).ok()) std::abort();
  double largest = 0;
  for (Eigen::Index i = 0; i < n; i += stride) {
    Vector w = (-(all.rowwise() - all.row(i)).rowwise().squaredNorm() / kDenominator).array().exp();
    w[i] = 0;
    const RowVector error = (w.transpose() * v - product.row(i)).cwiseAbs();
    largest = std::max(largest, error.cwiseQuotient(w.transpose() * v.cwiseAbs()).maxCoeff());
  }
  return largest;
}

int Run(const AffinityOperator& affinity, const PointSource& points, int runs,
        Eigen::Index sampled) {
  std::mt19937 bits(2);
  std::normal_distribution<double> normal;
  const Matrix v = Matrix::NullaryExpr(affinity.size(), 2, [&] { return normal(bits); });
  std::vector<double> seconds;
  std::vector<double> processor_seconds;
  Matrix product;
  for (int run = 0; run < runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const double processor_start = ProcessorSeconds();
    auto result = affinity.MultiplyWithDegrees(v);
    if (!result.ok()) return 1;
    processor_seconds.push_back(ProcessorSeconds() - processor_start);
    seconds.push_back(SecondsSince(start));
    product = std::move(result->product);
  }
  const double megabytes = PeakMemory() / (1 << 20);
  std::sort(seconds.begin(), seconds.end());
  std::sort(processor_seconds.begin(), processor_seconds.end());
  std::printf(
      "{\"seconds\": %.6f, \"processor_seconds\": %.6f, \"megabytes\": %.1f, \"error\": %.3g}\n",
      seconds[seconds.size() / 2], processor_seconds[seconds.size() / 2], megabytes,
      sampled > 0 ? LargestError(points, v, product, sampled) : 0);
  return 0;
}

int Main(int argc, char** argv) {
  if (argc != 6) return 2;
  FloatMatrix rows = NormalRows(std::atoi(argv[2]), std::atoi(argv[3]));
  const FloatMatrix none(0, rows.cols());
  const auto points = std::make_shared<UnitPoints>(*UnitPoints::Create(std::move(rows), none));
  AffinityPlan plan;
  if (std::string(argv[1]) == "factored") {
    plan = PlanAffinity({.rows = points->rows(),
                         .cols = points->cols(),
                         .kernel_denominator = kDenominator,
                         .max_squared_length = kUnitSquaredLength,
                         .tolerance = 1e-6});
    std::fprintf(stderr, "%s\n", plan.why.c_str());
  }
  return Run(*MakeAffinity(plan, points, kDenominator), *points, std::atoi(argv[4]),
             std::atoi(argv[5]));
}

}  // namespace
}  // namespace privatemail

int main(int argc, char** argv) { return privatemail::Main(argc, argv); }
