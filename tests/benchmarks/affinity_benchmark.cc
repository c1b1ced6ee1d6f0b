// One product with the affinity matrix of n unit rows, by the tiled or the factored operator:
// affinity_benchmark tiled|factored n d, which prints a line of JSON. compare_affinity.py runs it
// beside numpy.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "common/numerics/factored_affinity.h"
#include "common/numerics/tiled_affinity.h"

namespace privatemail {
namespace {

constexpr double kDenominator = 72;  // s = 6
constexpr int kRuns = 3;

FloatMatrix Rows(Eigen::Index n, Eigen::Index d) {
  std::mt19937 bits(1);
  std::normal_distribution<float> normal;
  return FloatMatrix::NullaryExpr(n, d, [&] { return normal(bits); });
}

double ResidentMegabytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

template <typename Operator>
int Run(const Operator& affinity) {
  const double before = ResidentMegabytes();
  const Matrix v = Matrix::Ones(affinity.size(), 2);
  double best = 1e300;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    if (!affinity.MultiplyWithDegrees(v).ok()) return 1;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  std::printf("{\"seconds\": %.6f, \"megabytes\": %.1f, \"megabytes_before\": %.1f}\n", best,
              ResidentMegabytes(), before);
  return 0;
}

int Main(int argc, char** argv) {
  if (argc != 4) return 2;
  const FloatMatrix rows = Rows(std::atoi(argv[2]), std::atoi(argv[3]));
  const FloatMatrix none(0, rows.cols());
  const auto points = std::make_shared<UnitPoints>(*UnitPoints::Create(rows, none));
  if (std::string(argv[1]) == "tiled") return Run(TiledAffinity(points, kDenominator));
  return Run(FactoredAffinity(points, kDenominator, FitExp(2, 2 / kDenominator, 1 + 1e-12)));
}

}  // namespace
}  // namespace privatemail

int main(int argc, char** argv) { return privatemail::Main(argc, argv); }
