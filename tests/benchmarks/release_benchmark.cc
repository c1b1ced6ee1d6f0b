// Client time of one joint release (100 classes, 1,000 anchors, 128 features, T = 5) with exact
// noise and durable charge, as a whole, in batches of 100, and by step. Baseline: numpy, see
// compare_release.py.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/schemes/joint/joint_scheme.h"
#include "client/schemes/joint/joint_steps.h"
#include "common/base/validate.h"
#include "common/embedding/smlq.h"
#include "tests/benchmarks/measure.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

constexpr int kClasses = 100;
constexpr int kAnchors = 1000;
constexpr int kDim = 128;
constexpr char kUuid[] = "4ccbd2bb-24d1-4c1c-8a5e-1f53ad5dd2a5";
constexpr int kTargetRow = 7;

const PrivacyCost& Cost() {
  static const PrivacyCost cost{.epsilon = 1, .delta = 1e-9};
  return cost;
}

Anchors MakeAnchors() {
  Anchors anchors{NormalRows(kAnchors, kDim), {}};
  for (int i = 0; i < kAnchors; ++i) anchors.labels.push_back(i % kClasses);
  return anchors;
}

PublicParameters Parameters(const Anchors& anchors) {
  return *MakePublicParameters(kUuid, EmbeddingSettings{}, anchors, {}, "vectors");
}

void Release(benchmark::State& state, bool batch) {
  const TemporaryFolder folder;
  const auto ledger = *Ledger::Open(folder / "ledger");
  if (!ledger->Grant(kUuid, {1e9, .99}).ok()) std::abort();
  const Anchors anchors = MakeAnchors();
  const JointScheme scheme = *JointScheme::Create(Parameters(anchors), anchors);
  const Target target{anchors.features.row(kTargetRow), kTargetRow};
  SecureBits bits;
  int64_t done = 0;
  for (auto _ : state) {
    if (batch && done++ % 100 == 0) ledger->StartBatch(100);
    const auto release = scheme.Release(target, Cost(), ChargeTo(*ledger, kUuid), bits);
    if (!release.ok()) std::abort();
    benchmark::DoNotOptimize(PostProcess(release->rows.cast<double>(), scheme.label_graph(),
                                         scheme.parameters().settings)
                                 ->sum());
  }
}
BENCHMARK_CAPTURE(Release, single, false)->Unit(benchmark::kMillisecond)->Iterations(100);
BENCHMARK_CAPTURE(Release, batch, true)->Unit(benchmark::kMillisecond)->Iterations(100);

// Milliseconds a release that one step takes.
class Share {
 public:
  Share(benchmark::State& state, const char* name) : counter_(state.counters[name]) {
    counter_ = benchmark::Counter(0, benchmark::Counter::kAvgIterations);
  }
  template <typename Step>
  auto Of(Step step) {
    const absl::Time start = absl::Now();
    auto result = step();
    counter_.value += absl::ToDoubleMilliseconds(absl::Now() - start);
    return result;
  }

 private:
  benchmark::Counter& counter_;
};

// The steps one by one; the rest of a release is checks.
void Steps(benchmark::State& state) {
  const TemporaryFolder folder;
  const auto ledger = *Ledger::Open(folder / "ledger");
  if (!ledger->Grant(kUuid, {1e9, .99}).ok()) std::abort();
  const Anchors anchors = MakeAnchors();
  const JointSetting setting = *MakeJointSetting(Parameters(anchors), anchors);
  const RowVector target = UnitRows("target", anchors.features)->row(kTargetRow);
  SecureBits bits;
  // Found in the counters as soon as they all are there: a map's values stay where they are.
  Share start(state, "start_bound"), charge(state, "charge"), kernel(state, "kernel"),
      iteration(state, "iteration"), noise(state, "noise"), finish(state, "post_processing");
  for (auto _ : state) {
    const auto part = *start.Of([&] { return DrawTargetIndependentPart(setting, Cost(), bits); });
    if (!charge.Of([&] { return ledger->Charge(kUuid, part.guarantee); }).ok()) std::abort();
    const BorderedAffinity graph = kernel.Of(
        [&] { return FeatureGraph(setting, SlotRows(setting, part, kTargetRow, target)); });
    const Matrix iterate =
        iteration.Of([&] { return PrivateIteration(setting, part.start, graph); });
    const FloatMatrix released =
        *noise.Of([&] { return part.noise.mechanism->Release(iterate, bits); });
    benchmark::DoNotOptimize(finish.Of([&] {
      return PostProcess(released.cast<double>(), setting.label_graph, setting.parameters.settings)
          ->sum();
    }));
  }
}
BENCHMARK(Steps)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace privatemail::client

BENCHMARK_MAIN();
