#include "common/embedding/smlq.h"

#include <sys/resource.h>

#include <cmath>

#include "common/embedding/public_parameters.h"
#include "common/embedding/tiled_affinity.h"
#include "tests/testing/matchers.h"
#include "tests/unit/common/embedding/affinity_cases.h"

namespace privatemail::testing {
namespace {

int64_t PeakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{1024} * usage.ru_maxrss;
}

std::vector<int32_t> Labels(int n, int classes) {
  std::vector<int32_t> labels(n);
  for (int i = 0; i < n; ++i) labels[i] = (i * i + i / 3) % classes * 3 - 5;
  return labels;
}

Matrix DenseLaplacian(const Matrix& affinity) {
  Matrix laplacian = -affinity;
  laplacian.diagonal() += affinity.rowwise().sum();
  return laplacian;
}

Matrix DenseLabelAffinity(const std::vector<int32_t>& labels, LabelGraphKind kind, double c) {
  const auto n = static_cast<Eigen::Index>(labels.size());
  Matrix distance(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j) distance(i, j) = std::abs(labels[i] - labels[j]);
  }
  Matrix affinity(n, n);
  if (kind == LabelGraphKind::kDistance) {
    const Matrix centring = Matrix::Identity(n, n) - Matrix::Constant(n, n, 1.0 / n);
    return -0.5 * centring * distance * centring;
  }
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j) {
      const double squared = kind == LabelGraphKind::kKernel ? distance(i, j) * distance(i, j)
                                                             : (distance(i, j) > 0 ? 2.0 : 0.0);
      affinity(i, j) = i == j ? 0 : std::exp(-squared / c);
    }
  }
  return affinity;
}

TEST(LabelGraph, MatchesDenseLaplacian) {
  for (const std::vector<int32_t>& labels :
       {Labels(60, 7), Labels(60, 1), Labels(1, 1), std::vector<int32_t>{4, 4},
        std::vector<int32_t>{4, -4}, std::vector<int32_t>{9, 1, 5, 3, 7}}) {
    const auto n = static_cast<int>(labels.size());
    const Matrix v = Normal(n, 4, 9);
    for (const auto kind :
         {LabelGraphKind::kDistance, LabelGraphKind::kKernel, LabelGraphKind::kOneHotKernel}) {
      for (const double c : {1e-3, 4.5, 1e6}) {
        const Matrix laplacian = DenseLaplacian(DenseLabelAffinity(labels, kind, c));
        const Matrix fast = LabelGraph(labels, kind, c).MultiplyLaplacian(v);
        // With one class the product is rounding alone.
        const double size = laplacian.cwiseAbs().rowwise().sum().maxCoeff() + n;
        EXPECT_LT((fast - laplacian * v).norm(), 1e-14 * size * v.norm())
            << n << " rows, first label " << labels.front() << ", c " << c;
      }
    }
  }
}

TEST(ClassCode, IsCentredAndOrthonormalOverClasses) {
  for (int classes = 2; classes < 12; ++classes) {
    for (int k = 1; k < classes; ++k) {
      const Matrix code = ClassCode(classes, k);
      EXPECT_LT(code.colwise().sum().cwiseAbs().maxCoeff(), 1e-12) << classes << " " << k;
      EXPECT_TRUE((code.transpose() * code / classes).isApprox(Matrix::Identity(k, k), 1e-12))
          << classes << " " << k;
    }
    EXPECT_EQ(ClassCode(classes, classes + 1).rightCols(2), Matrix::Zero(classes, 2));
  }
}

// An embedding reaches the other side in single precision.
TEST(ClassCode, SinglePrecisionSeparatesAsManyClassesAsAreAllowed) {
  for (const int k : {1, 2, 3, 16}) {
    const double rounding = std::sqrt(k) * std::sqrt(3.0) * 0x1p-24;
    const Matrix code = ClassCode(kMaxSlots, k);
    for (Eigen::Index c = 1; c < kMaxSlots; ++c) {  // neighbours are the closest
      ASSERT_GT((code.row(c) - code.row(c - 1)).norm(), 1000 * rounding) << k;
    }
  }
}

TEST(Smlq, NormalisingFactorUndoesReflectionAndShear) {
  const LabelGraph graph(Labels(40, 5), LabelGraphKind::kBalanced, 1);
  Matrix map(2, 2);
  map << -3, .5, .2, 1e-6;  // determinant < 0
  const Matrix x = graph.CodeOfRows(2) * map;
  ASSERT_OK_AND_ASSIGN(const Matrix factor, NormalisingFactor("x", 1, 1, true, graph, x));
  EXPECT_TRUE((x * factor).isApprox(graph.CodeOfRows(2), 1e-9));
  EXPECT_THAT(NormalisingFactor("x", 2, 3, true, graph, graph.CodeOfRows(2).col(0).replicate(1, 2))
                  .status(),
              FailsWith(kFailedPrecondition,
                        "x after step 2 of 3, its class means span too few dimensions"));
}

// 10,000 classes take no table of classes by classes: 800 MB.
TEST(LabelGraph, MemoryIsLinearInClasses) {
  std::vector<int32_t> labels(10000);
  for (int i = 0; i < 10000; ++i) labels[i] = i;
  for (const auto kind : {LabelGraphKind::kBalanced, LabelGraphKind::kDistance,
                          LabelGraphKind::kKernel, LabelGraphKind::kOneHotKernel}) {
    const int64_t before = PeakMemory();
    const LabelGraph graph(labels, kind, 72);
    EXPECT_TRUE(graph.MultiplyLaplacian(Matrix::Ones(10000, 2)).allFinite());
    EXPECT_LT(PeakMemory() - before, 50 << 20);
  }
}

// Sensitivity and release use different functions; both must give the same value.
TEST(LabelGraph, AddAndMultiplyGiveSameBits) {
  const std::vector<int32_t> labels = Labels(700, 7);
  const Matrix v = Normal(700, 2, 9);
  const LabelGraph graph(labels, LabelGraphKind::kDistance, 4.5);
  const Matrix product = graph.MultiplyLaplacian(v);
  Matrix sum = Matrix::Zero(700, 2);
  graph.AddLaplacian(1, v, &sum);
  EXPECT_EQ(sum, product);
}

TEST(LabelGraph, ExtremeLabelsDoNotOverflow) {
  const std::vector<int32_t> labels = {INT32_MIN, INT32_MAX, 0};
  EXPECT_TRUE(LabelGraph(labels, LabelGraphKind::kKernel, 72)
                  .MultiplyLaplacian(Matrix::Ones(3, 1))
                  .allFinite());
}

TEST(Smlq, RowOfDegreeZeroIsUnchanged) {
  Matrix points(3, 1);
  points << 0, 1e20, -1e20;  // every kernel value underflows
  const Matrix x = Normal(3, 2, 4);
  const LabelGraph labels(std::vector<int32_t>{0, 1, 2}, LabelGraphKind::kDistance, 2);
  EXPECT_EQ(SmlqUpdate(x, TiledAffinity(points, 2), labels, .6).value(), x);
}

TEST(Smlq, ObserverErrorStopsIteration) {
  const std::vector<int32_t> labels = Labels(20, 4);
  const TiledAffinity graph(Normal(20, 3, 5), 2);
  int calls = 0;
  const auto z =
      SmlqIterate(Normal(20, 2, 6), graph, LabelGraph(labels, LabelGraphKind::kDistance, 2), .6, 9,
                  true, [&](double done, int steps) {
                    ++calls;
                    EXPECT_EQ(steps, 9);
                    return done == 2 ? absl::CancelledError("enough") : absl::OkStatus();
                  });
  EXPECT_EQ(z.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(calls, 2);
}

TEST(Smlq, ObjectiveMatchesTraces) {
  const std::vector<int32_t> labels = Labels(30, 5);
  const Matrix points = Normal(30, 4, 7);
  const Matrix z = Normal(30, 2, 8);
  const Matrix l_x = DenseLaplacian(GaussianAffinity(points, 3));
  const Matrix l_y = DenseLaplacian(DenseLabelAffinity(labels, LabelGraphKind::kKernel, 3));
  const double expected =
      (z.transpose() * l_x * z).trace() - .6 * (z.transpose() * l_y * z).trace();
  const Vector degrees = GaussianAffinity(points, 3).rowwise().sum();
  EXPECT_NEAR(SmlqObjective(z, TiledAffinity(points, 3), degrees,
                            LabelGraph(labels, LabelGraphKind::kKernel, 3), .6)
                  .value(),
              expected, 1e-10 * std::abs(expected));
}

TEST(Smlq, ZeroIterateIsRejected) {
  const std::vector<int32_t> labels = Labels(6, 2);
  const auto z = SmlqIterate(Matrix::Zero(6, 2), TiledAffinity(Normal(6, 3, 1), 2),
                             LabelGraph(labels, LabelGraphKind::kDistance, 2), .6, 1, true);
  EXPECT_EQ(z.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(EmbeddingSettings, InvalidFieldIsNamed) {
  EXPECT_THAT(Validate(EmbeddingSettings()), IsOk());
  EXPECT_THAT(Validate(EmbeddingSettings{.alpha = std::nan("")}),
              FailsWith(kInvalid, "alpha must be between 0 and 1e+09, but is nan"));
  // Its squares underflow, and with them a sensitivity.
  EXPECT_THAT(Validate(EmbeddingSettings{.start_stddev = 4.5e-163}),
              FailsWith(kInvalid, "start_stddev must be"));
  EXPECT_THAT(Validate(EmbeddingSettings{.kernel_bandwidth = 1e160}),
              FailsWith(kInvalid, "kernel_bandwidth must"));
  EXPECT_THAT(Validate(EmbeddingSettings{.embedding_dim = 0}),
              FailsWith(kInvalid, "embedding_dim must be"));
  EXPECT_THAT(Validate(EmbeddingSettings{.steps = 0}),
              FailsWith(kInvalid, "steps must be between 1 and 10000"));
}

}  // namespace
}  // namespace privatemail::testing
