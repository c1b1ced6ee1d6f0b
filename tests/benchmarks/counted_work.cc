// Fixed pieces of work for instruction_budget.py, which counts the instructions within Measured.
//
// usage: counted_work NAME    without a name: lists the names
#include <cstdio>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "client/privacy/mechanisms/make_mechanism.h"
#include "client/privacy/sampling/exact_sampling.h"
#include "common/embedding/bordered_affinity.h"
#include "common/embedding/factored_affinity.h"
#include "common/embedding/label_graph.h"
#include "common/embedding/low_dimensional_affinity.h"
#include "common/embedding/plan_affinity.h"
#include "common/embedding/tiled_affinity.h"
#include "common/index/exact_index.h"
#include "tests/testing/seeded_bits.h"

// By this name callgrind finds it.
__attribute__((noinline)) void Measured(const std::function<void()>& work) { work(); }

namespace privatemail::client {
namespace {

constexpr double kDenominator = 72;

Matrix Normal(Eigen::Index rows, Eigen::Index cols) {
  std::mt19937 bits(1);
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, cols, [&] { return normal(bits); });
}

Matrix UnitNormal(Eigen::Index rows, Eigen::Index cols) {
  return Normal(rows, cols).rowwise().normalized();
}

void Multiply(const AffinityOperator& affinity) {
  const Matrix v = Normal(affinity.size(), 2);
  Measured([&] { affinity.MultiplyWithDegrees(v).value(); });
}

void Tiled() { Multiply(TiledAffinity(UnitNormal(600, 64), kDenominator)); }

void Factored() {
  const auto points = std::make_shared<MatrixPoints>(UnitNormal(2000, 64));
  Multiply(FactoredAffinity(points, kDenominator, FitExp(2, 2 / kDenominator, kUnitSquaredLength)));
}

void LowDimensional() {
  const Matrix points = Normal(1100, 2);
  const Matrix v = Normal(1100, 2);
  Measured([&] { LowDimensionalAffinity(points, kDenominator, 8).MultiplyWithDegrees(v).value(); });
}

// As in a release whose dummies are anchors.
void Bordered() {
  Border slots{{}, UnitNormal(1, 64)};
  for (Eigen::Index row = 0; row < 49; ++row) slots.copy_of.push_back(row);
  slots.copy_of.push_back(Border::kOwn);
  const auto anchors = *FixedRows::Create(UnitNormal(500, 64), kDenominator);
  const Matrix v = Normal(550, 2);
  Measured([&] { BorderedAffinity(slots, anchors).MultiplyWithDegrees(v).value(); });
}

void GaussianNoise() {
  const Matrix values = Normal(1100, 2);
  const auto mechanism = MakeMechanism(
      {.kind = MechanismKind::kGaussian, .epsilon = 1, .delta = 1e-6, .sensitivity = 1},
      {.values = values.size(), .largest_value = values.cwiseAbs().maxCoeff()});
  SeededBits bits(1);
  Measured([&] { (*mechanism)->Release(values, bits).value(); });
}

void Find(Eigen::Index dim) {
  const ExactIndex index(Normal(20000, dim));
  const Matrix queries = Normal(100, dim);
  Measured([&] { index.Search(queries, 8); });
}

void Search() { Find(2); }

void Noise() { Find(16); }

// Fifty classes a hundredth as wide as they are apart.
void Classes() {
  const Matrix centres = Normal(50, 16);
  Matrix points = .01 * Normal(20100, 16);
  for (Eigen::Index row = 0; row < points.rows(); ++row) points.row(row) += centres.row(row % 50);
  const ExactIndex index(points.topRows(20000));
  const Matrix queries = points.bottomRows(100);
  Measured([&] { index.Search(queries, 8); });
}

void ClassSums() {
  std::vector<int32_t> labels;
  for (int32_t row = 0; row < 20000; ++row) labels.push_back(row % 100);
  const LabelGraph graph(labels, LabelGraphKind::kDistance, kDenominator);
  const Matrix v = Normal(20000, 2);
  Measured([&] { graph.MultiplyLaplacian(v); });
}

const std::map<std::string, void (*)()> kWork = {{"tiled", Tiled},
                                                 {"factored", Factored},
                                                 {"low_dimensional", LowDimensional},
                                                 {"bordered", Bordered},
                                                 {"gaussian_noise", GaussianNoise},
                                                 {"class_sums", ClassSums},
                                                 {"search", Search},
                                                 {"kd_tree_noise", Noise},
                                                 {"kd_tree_classes", Classes}};

}  // namespace
}  // namespace privatemail::client

int main(int argc, char** argv) {
  const auto work =
      argc == 2 ? privatemail::client::kWork.find(argv[1]) : privatemail::client::kWork.end();
  if (work == privatemail::client::kWork.end()) {
    for (const auto& [name, unused] : privatemail::client::kWork) std::printf("%s\n", name.c_str());
    return 2;
  }
  work->second();
  return 0;
}
