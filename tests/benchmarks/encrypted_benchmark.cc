// Processor and wall time of a query's encrypted scores. Baselines of the same run: the portable
// path, one core, and queries that share no pass.
//
// usage: encrypted_benchmark [ITEMS DIMENSIONS DELTA]    default: three collections
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/base/thread_pool.h"
#include "common/lattice/evaluator.h"
#include "tests/benchmarks/measure.h"
#include "tests/testing/random_polynomials.h"

namespace privatemail::lattice {
namespace {

// The arithmetic takes the same time for all values.
using testing::FillAtRandom;
using testing::RandomPolynomials;

constexpr size_t kCallers = 16;
constexpr int kRounds = 3;

struct Collection {
  int64_t items;
  int64_t dimensions;
  int delta;
};

struct Seconds {
  double wall = 0, processor = 0;
};

template <typename Work>
Seconds Time(const Work& work) {
  const double processor = ProcessorSeconds();
  const auto start = std::chrono::steady_clock::now();
  work();
  return {SecondsSince(start), ProcessorSeconds() - processor};
}

void RunOnOneCore(int count, const std::function<void(int)>& task) {
  for (int i = 0; i < count; ++i) task(i);
}
void RunOnAllCores(int count, const std::function<void(int)>& task) { ParallelFor(count, task); }

// Callers of one query each, with keys of their own.
class Pass {
 public:
  Pass(const Evaluator& evaluator, const Collection& collection, const std::vector<int16_t>& rows,
       size_t callers)
      : evaluator_(evaluator), dimensions_(collection.dimensions) {
    const auto polynomials = static_cast<size_t>(CountLevels(collection.delta)) * kDigits;
    const auto chunks = static_cast<size_t>(CountChunks(dimensions_, collection.delta));
    const auto blocks = static_cast<size_t>(CountBlocks(collection.items));
    for (size_t block = 0; block < blocks; ++block) {
      blocks_.push_back(&rows[block * kDegree * static_cast<size_t>(dimensions_)]);
    }
    answers_.resize(callers, std::string(blocks * kAnswerBytes, '\0'));
    for (size_t caller = 0; caller < callers; ++caller) {
      const std::string seed(kSeedBytes, static_cast<char>('a' + caller));
      keys_.push_back(evaluator.ParseKeys(seed + RandomPolynomials(polynomials, caller),
                                          collection.delta, FillAtRandom));
      queries_.push_back(evaluator.ParseQuery(seed, RandomPolynomials(chunks, ~caller), dimensions_,
                                              collection.delta, FillAtRandom));
      targets_.push_back({keys_.back().get(), queries_.back().get(), answers_[caller].data()});
    }
  }

  void Run(const ParallelRun& run) const { evaluator_.Score(blocks_, dimensions_, targets_, run); }

 private:
  const Evaluator& evaluator_;
  const int64_t dimensions_;
  std::vector<std::shared_ptr<const EvaluationKeys>> keys_;
  std::vector<std::shared_ptr<const Query>> queries_;
  std::vector<const int16_t*> blocks_;
  std::vector<std::string> answers_;
  std::vector<Target> targets_;
};

void Measure(const Collection& collection) {
  std::vector<int16_t> rows(
      static_cast<size_t>(CountBlocks(collection.items) * kDegree * collection.dimensions));
  std::mt19937_64 random(1);
  for (int16_t& value : rows) value = static_cast<int16_t>(random() % 2048);
  const Pass alone(Evaluator::Best(), collection, rows, 1);
  const Pass shared(Evaluator::Best(), collection, rows, kCallers);
  const Pass portable(*Evaluator::Find(Evaluator::Path::kPortable), collection, rows, 1);
  Seconds one_core, all_cores, of_sixteen, without_avx2;
  const auto keep_least = [](const Seconds& now, Seconds* least) {
    least->wall = least->wall == 0 ? now.wall : std::min(least->wall, now.wall);
    least->processor =
        least->processor == 0 ? now.processor : std::min(least->processor, now.processor);
  };
  for (int round = 0; round < kRounds; ++round) {
    keep_least(Time([&] { alone.Run(RunOnOneCore); }), &one_core);
    keep_least(Time([&] { alone.Run(RunOnAllCores); }), &all_cores);
    keep_least(Time([&] { shared.Run(RunOnAllCores); }), &of_sixteen);
    keep_least(Time([&] { portable.Run(RunOnOneCore); }), &without_avx2);
  }
  std::printf("%lld x %lld, delta %d, least of %d rounds, processor ms (share of a query alone):\n",
              static_cast<long long>(collection.items),
              static_cast<long long>(collection.dimensions), collection.delta, kRounds);
  const double alone_ms = 1e3 * one_core.processor;
  const double shared_ms = 1e3 * of_sixteen.processor / kCallers;
  const double portable_ms = 1e3 * without_avx2.processor;
  std::printf("  alone %.2f; %zu sharing a pass %.2f each (%.2f); portable path %.2f (%.2f)\n",
              alone_ms, kCallers, shared_ms, shared_ms / alone_ms, portable_ms,
              portable_ms / alone_ms);
  std::printf("  wall time: one core %.2f ms, all cores %.2f ms (%.2f)\n", 1e3 * one_core.wall,
              1e3 * all_cores.wall, all_cores.wall / one_core.wall);
}

}  // namespace
}  // namespace privatemail::lattice

int main(int argc, char** argv) {
  using privatemail::lattice::Collection;
  std::vector<Collection> collections = {
      {8'000, 128, 64}, {100'000, 768, 32}, {1'000'000, 128, 32}};
  if (argc == 4) collections = {{std::atoll(argv[1]), std::atoll(argv[2]), std::atoi(argv[3])}};
  for (const Collection& collection : collections) Measure(collection);
  return 0;
}
