// Cost of exact noise on 1,100 x 2 and 1,100 x 64 values through MakeMechanism; baseline: noise in
// doubles, which has no guarantee.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "client/privacy/mechanisms/make_mechanism.h"
#include "privatemail/bit_source.h"

namespace privatemail::client {
namespace {

constexpr int kRows = 1100;

Matrix Values(int64_t columns) {
  std::mt19937_64 bits(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  return Matrix::NullaryExpr(kRows, columns, [&] { return uniform(bits); });
}

// A small sensitivity makes the box of a bounded mechanism many deviations wide.
MechanismParameters Parameters(MechanismKind kind, double sensitivity) {
  MechanismParameters parameters = {.kind = kind, .epsilon = 1, .sensitivity = sensitivity};
  if (TraitsOf(kind).TakesDelta()) parameters.delta = 1e-6;
  if (TraitsOf(kind).law == MechanismTraits::Law::kBoundedGaussian) {
    parameters.box = {.lower = {-1}, .upper = {1}};
  }
  return parameters;
}

void Exact(benchmark::State& state, MechanismKind kind, double sensitivity) {
  const Matrix values = Values(state.range(0));
  const auto mechanism =
      MakeMechanism(Parameters(kind, sensitivity), {.values = values.size(), .largest_value = 1});
  if (!mechanism.ok()) {
    state.SkipWithError(mechanism.status().ToString().c_str());
    return;
  }
  SecureBits bits;
  for (auto _ : state) {
    const auto released = (*mechanism)->Release(values, bits);
    if (!released.ok()) std::abort();
    benchmark::DoNotOptimize(released->data());
  }
  state.SetItemsProcessed(state.iterations() * values.size());
}

void Plain(benchmark::State& state) {
  const Matrix values = Values(state.range(0));
  std::mt19937_64 bits(std::random_device{}());
  std::normal_distribution<double> normal(0, 4);
  for (auto _ : state) {
    FloatMatrix released(values.rows(), values.cols());
    for (int64_t i = 0; i < values.size(); ++i) {
      released.data()[i] = static_cast<float>(values.data()[i] + normal(bits));
    }
    benchmark::DoNotOptimize(released.data());
  }
  state.SetItemsProcessed(state.iterations() * values.size());
}

// After the table, each median of processor time, which a busy machine stretches less than the
// clock, as a ratio to the plain sampler's and beside its target.
class Ratios : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.aggregate_name != "median") continue;
      medians_[run.run_name.function_name][run.run_name.args] = run.GetAdjustedCPUTime();
    }
  }
  void Finalize() override {
    ConsoleReporter::Finalize();
    for (const auto& [name, times] : medians_) {
      for (const auto& [columns, milliseconds] : times) {
        if (name == "plain") continue;
        const double target = columns == "2" ? 1 : 30;
        std::printf("%-26s %d x %-2s %8.3f ms, %5.1f times plain; target %g ms: %s\n", name.c_str(),
                    kRows, columns.c_str(), milliseconds, milliseconds / medians_["plain"][columns],
                    target, milliseconds < target ? "met" : "MISSED");
      }
    }
  }

 private:
  std::map<std::string, std::map<std::string, double>> medians_;
};

void Register(const std::string& name, benchmark::internal::Benchmark* registered) {
  registered->Name(name)->Arg(2)->Arg(64)->Unit(benchmark::kMillisecond)->Repetitions(5);
  registered->ReportAggregatesOnly();
}

}  // namespace
}  // namespace privatemail::client

int main(int argc, char** argv) {
  using namespace privatemail::client;
  Register("plain", benchmark::RegisterBenchmark("plain", &Plain));
  for (const MechanismKind kind :
       {MechanismKind::kGaussian, MechanismKind::kLaplace, MechanismKind::kBoundedGaussian}) {
    for (const double sensitivity : {1., 1e-6}) {
      if (sensitivity != 1 && kind != MechanismKind::kBoundedGaussian) continue;
      std::string name = TraitsOf(kind).name;
      if (sensitivity != 1) name += ", wide box";
      const auto run = [=](benchmark::State& state) { Exact(state, kind, sensitivity); };
      Register(name, benchmark::RegisterBenchmark(name.c_str(), run));
    }
  }
  benchmark::Initialize(&argc, argv);
  Ratios reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return 0;
}
