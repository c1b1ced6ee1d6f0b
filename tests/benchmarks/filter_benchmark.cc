// Cost of a filter over 100,000 payloads of about 100 bytes: the first search with a path, and
// later ones; baseline: parsing every payload.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/payload_columns.h"

namespace privatemail::server {
namespace {

constexpr int64_t kPlenty = 1 << 30;  // bytes

constexpr int kItems = 100000;

std::vector<std::string> Payloads() {
  std::vector<std::string> payloads;
  payloads.reserve(kItems);
  for (int i = 0; i < kItems; ++i) {
    payloads.push_back(absl::StrCat("{\"file\":\"gallery/heron/", i,
                                    ".png\",\"camera\":{\"lens\":", i % 90,
                                    "},\"year\":", 1990 + i % 35, ",\"tags\":[\"a\",\"b\"]}"));
  }
  return payloads;
}

PayloadFilter SomeYears() {
  v1::PayloadFilter filter;
  filter.mutable_range()->set_path("year");
  filter.mutable_range()->set_gte(2020);
  return *PayloadFilter::FromProto("filter", filter);
}

void ParseEveryPayload(benchmark::State& state) {
  const std::vector<std::string> payloads = Payloads();
  const PayloadFilter filter = SomeYears();
  for (auto _ : state) {
    int64_t fitting = 0;
    for (const std::string& payload : payloads) fitting += filter.Matches(payload) ? 1 : 0;
    benchmark::DoNotOptimize(fitting);
  }
  state.SetItemsProcessed(state.iterations() * kItems);
}

void FirstSearchOfAPath(benchmark::State& state) {
  const std::vector<std::string> payloads = Payloads();
  const PayloadFilter filter = SomeYears();
  for (auto _ : state) {
    state.PauseTiming();
    const PayloadColumns columns(payloads);
    state.ResumeTiming();
    benchmark::DoNotOptimize(columns.RowsThatFit(filter, nullptr, nullptr, kPlenty));
  }
  state.SetItemsProcessed(state.iterations() * kItems);
}

void LaterSearches(benchmark::State& state) {
  const PayloadColumns columns(Payloads());
  const PayloadFilter filter = SomeYears();
  benchmark::DoNotOptimize(columns.RowsThatFit(filter, nullptr, nullptr, kPlenty));
  for (auto _ : state) {
    benchmark::DoNotOptimize(columns.RowsThatFit(filter, nullptr, nullptr, kPlenty));
  }
  state.SetItemsProcessed(state.iterations() * kItems);
}

BENCHMARK(ParseEveryPayload)->Unit(benchmark::kMillisecond);
BENCHMARK(FirstSearchOfAPath)->Unit(benchmark::kMillisecond);
BENCHMARK(LaterSearches)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace privatemail::server

BENCHMARK_MAIN();
