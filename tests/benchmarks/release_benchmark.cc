// Client time of one joint release (100 classes, 1,000 anchors, 128 features, T = 5) with exact
// noise: without a charge, with a durable charge, and in batches of 100. Baseline: numpy, see
// compare_numpy.py.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "client/schemes/joint/joint_scheme.h"
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

enum class Charge { kNone, kEach, kBatch };

void Release(benchmark::State& state, Charge kind) {
  const TemporaryFolder folder;
  const auto ledger = *Ledger::Open(folder / "ledger");
  if (!ledger->Grant(kUuid, {1e9, .99}).ok()) std::abort();
  const Anchors anchors = MakeAnchors();
  const JointScheme scheme = *JointScheme::Create(Parameters(anchors), anchors);
  const Target target{anchors.features.row(kTargetRow), kTargetRow};
  ChargeFunction charge = ChargeTo(*ledger, kUuid);
  if (kind == Charge::kNone) charge = [](const auto& /*guarantee*/) { return absl::OkStatus(); };
  SecureBits bits;
  int64_t done = 0;
  for (auto _ : state) {
    if (kind == Charge::kBatch && done++ % 100 == 0) ledger->StartBatch(100);
    const auto release = scheme.Release(target, Cost(), charge, bits);
    if (!release.ok()) std::abort();
    benchmark::DoNotOptimize(PostProcess(release->rows.cast<double>(), scheme.label_graph(),
                                         scheme.parameters().settings)
                                 ->sum());
  }
}
BENCHMARK_CAPTURE(Release, uncharged, Charge::kNone)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(100);
BENCHMARK_CAPTURE(Release, single, Charge::kEach)->Unit(benchmark::kMillisecond)->Iterations(100);
BENCHMARK_CAPTURE(Release, batch, Charge::kBatch)->Unit(benchmark::kMillisecond)->Iterations(100);

}  // namespace
}  // namespace privatemail::client

BENCHMARK_MAIN();
