// A client's work for one query: 100 classes, 1,000 anchors, 128 features, T = 5, exact noise and
// the durable charge included. compare_release.py runs it beside numpy.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <random>

#include "client/release/joint_scheme.h"
#include "common/numerics/smlq.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail {
namespace {

constexpr int kClasses = 100;
constexpr int kAnchors = 1000;
constexpr int kDim = 128;
constexpr char kUuid[] = "4ccbd2bb-24d1-4c1c-8a5e-1f53ad5dd2a5";

Anchors MakeAnchors() {
  std::mt19937 bits(1);
  std::normal_distribution<float> normal;
  Anchors anchors{FloatMatrix::NullaryExpr(kAnchors, kDim, [&] { return normal(bits); }), {}};
  for (int i = 0; i < kAnchors; ++i) anchors.labels.push_back(i % kClasses);
  return anchors;
}

void Release(benchmark::State& state) {
  const TemporaryFolder folder;
  const auto ledger = *Ledger::Open(folder / "ledger");
  if (!ledger->Grant(kUuid, {1e9, .99}).ok()) std::abort();
  const Anchors anchors = MakeAnchors();
  const JointScheme scheme = *JointScheme::Create(
      *MakePublicParameters(kUuid, EmbeddingSettings{}, anchors, {}, "vectors"), anchors);
  const Target target{anchors.features.row(7), 7};
  SecureBits bits;
  for (auto _ : state) {
    const auto release = scheme.Release(target, {.epsilon = 1, .delta = 1e-9}, *ledger, bits);
    if (!release.ok()) std::abort();
    benchmark::DoNotOptimize(PostProcess(release->rows.cast<double>(), scheme.label_graph(),
                                         scheme.parameters().settings)
                                 ->sum());
  }
}
BENCHMARK(Release)->Unit(benchmark::kMillisecond)->Repetitions(5)->ReportAggregatesOnly();

}  // namespace
}  // namespace privatemail

BENCHMARK_MAIN();
