#include "common/lattice/evaluator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "common/lattice/modular.h"

namespace privatemail::lattice {
namespace {

// With fewer blocks than this, each is scored by two tasks.
constexpr size_t kMinBlocksPerPass = 16;
constexpr int kWorkArrays = 2 * kProductsOfSum;

bool HasAvx2AndFma() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

// Levels of the packing tree: 12 - log2(delta) to 11, here from 0.
int ExponentOf(int delta, int level) { return kLogDegree + 1 - CountLevels(delta) + level; }

}  // namespace

Ciphertext EvaluationKeys::Of(int level, int digit) const {
  const int64_t first = 2 * (int64_t{level} * kDigits + digit);
  return {polynomials[first], polynomials[first + 1]};
}

size_t EvaluationKeys::Memory(int delta) {
  return static_cast<size_t>(2 * CountLevels(delta) * kDigits) * Words::kArrayBytes;
}

size_t Query::Memory(int64_t dimensions, int delta) {
  return static_cast<size_t>(2 * CountChunks(dimensions, delta)) * Words::kArrayBytes;
}

// For the exponents l = 1 .. kLogDegree of automorphisms X -> X^(2^l + 1): where a transform's
// value comes from, and the transform of X^(N / 2^l).
struct Evaluator::Tables {
  std::array<std::array<uint16_t, kDegree>, kLogDegree + 1> source;
  Words monomials{kLogDegree + 1};

  explicit Tables(const Kernel& kernel) {
    std::array<uint16_t, kDegree> position;  // of a place of Transform in the kernel's order
    for (int p = 0; p < kDegree; ++p) position[kernel.order[p]] = static_cast<uint16_t>(p);
    for (int l = 1; l <= kLogDegree; ++l) {
      for (int p = 0; p < kDegree; ++p) {
        const int power = 2 * ReverseBits(kernel.order[p]) + 1;  // the value at psi^power
        const int from = power * ((1 << l) + 1) % (2 * kDegree);
        source[l][p] = position[ReverseBits((from - 1) / 2)];
      }
      std::array<int64_t, kDegree> monomial = {};
      monomial[kDegree >> l] = 1;
      kernel.load(monomial.data(), monomials[l]);
      kernel.transform(monomials[l]);
    }
  }
};

Evaluator::Evaluator(const Kernel& kernel)
    : kernel_(kernel), tables_(std::make_shared<const Tables>(kernel)) {}

const Evaluator* Evaluator::Find(Path path) {
  if (path == Path::kPortable) {
    static const Evaluator portable(PortableKernel());
    return &portable;
  }
  if (Avx2Kernel() == nullptr || !HasAvx2AndFma()) return nullptr;
  static const Evaluator avx2(*Avx2Kernel());
  return &avx2;
}

const Evaluator& Evaluator::Best() {
  const Evaluator* avx2 = Find(Path::kAvx2);
  return avx2 != nullptr ? *avx2 : *Find(Path::kPortable);
}

bool Evaluator::ReadCiphertexts(std::string_view seed, SeedUse use, const char* b, int64_t count,
                                const Shake128& shake, const Words& polynomials) const {
  std::array<int64_t, kDegree> values, ordered;
  for (int64_t i = 0; i < count; ++i, b += kPolynomialBytes) {
    const Ciphertext ciphertext = {polynomials[2 * i], polynomials[2 * i + 1]};
    if (!ExpandSeed(seed, use, static_cast<uint32_t>(i), shake, values.data())) return false;
    for (int p = 0; p < kDegree; ++p) ordered[p] = values[kernel_.order[p]];
    kernel_.load(ordered.data(), ciphertext.a);
    if (!ReadPolynomial(b, values.data())) return false;
    kernel_.load(values.data(), ciphertext.b);
    kernel_.transform(ciphertext.b);
    kernel_.reduce(ciphertext);
  }
  return true;
}

std::shared_ptr<const EvaluationKeys> Evaluator::ParseKeys(std::string_view bytes, int delta,
                                                           const Shake128& shake) const {
  if (bytes.size() != KeysBytes(delta)) return nullptr;
  const int64_t count = CountLevels(delta) * kDigits;
  auto keys = std::make_shared<EvaluationKeys>(EvaluationKeys{delta, Words(2 * count)});
  const bool valid = ReadCiphertexts(bytes.substr(0, kSeedBytes), SeedUse::kKeys,
                                     bytes.data() + kSeedBytes, count, shake, keys->polynomials);
  return valid ? keys : nullptr;
}

std::shared_ptr<const Query> Evaluator::ParseQuery(std::string_view seed, std::string_view chunks,
                                                   int64_t dimensions, int delta,
                                                   const Shake128& shake) const {
  if (seed.size() != kSeedBytes || chunks.size() != QueryChunkBytes(dimensions, delta)) {
    return nullptr;
  }
  const int64_t count = CountChunks(dimensions, delta);
  auto query = std::make_shared<Query>(Query{delta, dimensions, Words(2 * count)});
  const bool valid =
      ReadCiphertexts(seed, SeedUse::kQuery, chunks.data(), count, shake, query->polynomials);
  return valid ? query : nullptr;
}

// Scores one block at a time for all targets. Not thread-safe: each task has its own.
class Evaluator::BlockScorer {
 public:
  BlockScorer(const Evaluator& evaluator, const std::vector<Target>& targets)
      : kernel_(evaluator.kernel_),
        tables_(*evaluator.tables_),
        targets_(targets),
        delta_(targets.front().query->delta),
        levels_(CountLevels(delta_)),
        work_(CountArrays(targets.size(), delta_)) {}

  // Arrays of work; for every target a ciphertext for each level and a difference.
  static int64_t CountArrays(size_t targets, int delta) {
    return kWorkArrays + static_cast<int64_t>(targets) * 2 * (CountLevels(delta) + 1);
  }

  // The packed ciphertexts of a whole block, in results().
  void ScoreBlock(const int16_t* rows, int64_t dimensions) {
    rows_ = rows;
    dimensions_ = dimensions;
    Pack(levels_ - 1, 0, levels_ - 1);
  }
  // The half of its leaves whose numbers are `half` modulo 2.
  void ScoreHalf(const int16_t* rows, int64_t dimensions, int half) {
    rows_ = rows;
    dimensions_ = dimensions;
    Pack(levels_ - 2, half, levels_ - 1);
  }
  // Merges the results of the other half.
  void Merge(const BlockScorer& odd) {
    for (size_t t = 0; t < targets_.size(); ++t) {
      MergeTwo(levels_ - 1, t, odd.At(t, levels_ - 1), At(t, levels_ - 1));
    }
  }
  // Rounds and writes the results as answers of block `block`.
  void Write(size_t block) {
    std::array<int64_t, kDegree> a, b;
    for (size_t t = 0; t < targets_.size(); ++t) {
      const Ciphertext result = At(t, levels_ - 1);
      RoundTo(kAnswerBitsA, result.a, a.data());
      RoundTo(kAnswerBitsB, result.b, b.data());
      WriteAnswer(a.data(), b.data(), targets_[t].answers + block * kAnswerBytes);
    }
  }

 private:
  // The ciphertext of a target for results of depth `slot`.
  Ciphertext At(size_t target, int slot) const {
    const auto first = kWorkArrays + static_cast<int64_t>(target) * 2 * (levels_ + 1) + 2 * slot;
    return {work_[first], work_[first + 1]};
  }

  // Merges leaves leaf, leaf + step, .. with step = delta / 2^(level + 1), level by level, into
  // slot `slot`. The right half of each level waits in the slot of its own level.
  void Pack(int level, int leaf, int slot) {
    const int half = delta_ >> (level + 1);
    if (level == 0) {
      PackLeaves(leaf, leaf + half, slot);
      return;
    }
    Pack(level - 1, leaf, slot);
    Pack(level - 1, leaf + half, level - 1);
    for (size_t t = 0; t < targets_.size(); ++t) {
      MergeTwo(level, t, At(t, level - 1), At(t, slot));
    }
  }

  // The first level's sums and differences come from the rows, which spares a product each.
  void PackLeaves(int even, int odd, int slot) {
    const int64_t chunks = CountChunks(dimensions_, delta_);
    for (int64_t chunk = 0; chunk < chunks; chunk += kProductsOfSum) {
      const int count = static_cast<int>(std::min<int64_t>(kProductsOfSum, chunks - chunk));
      for (int i = 0; i < count; ++i) {
        kernel_.transform_leaves({rows_, dimensions_, delta_, chunk + i, even, odd}, work_[2 * i]);
      }
      for (size_t t = 0; t < targets_.size(); ++t) {
        kernel_.add_products(work_[0], targets_[t].query->Of(chunk).a, count, chunk == 0,
                             At(t, slot), At(t, levels_));
      }
    }
    for (size_t t = 0; t < targets_.size(); ++t) {
      kernel_.reduce(At(t, slot));
      kernel_.reduce(At(t, levels_));
      Switch(0, t, At(t, slot));
    }
  }

  // even += X^k odd + tau(even - X^k odd), keys switched.
  void MergeTwo(int level, size_t target, const Ciphertext& odd, const Ciphertext& even) {
    const int exponent = ExponentOf(delta_, level);
    kernel_.add_and_subtract(tables_.monomials[exponent], odd, even, At(target, levels_));
    Switch(level, target, even);
  }

  void Switch(int level, size_t target, const Ciphertext& sum) {
    const EvaluationKeys& keys = *targets_[target].keys;
    const Ciphertext digits[kDigits] = {keys.Of(level, 0), keys.Of(level, 1)};
    Word* const work[2] = {work_[0], work_[1]};
    kernel_.add_switched(tables_.source[ExponentOf(delta_, level)].data(), At(target, levels_),
                         digits, work, sum);
  }

  void RoundTo(int bits, Word* transform, int64_t* values) const {
    kernel_.inverse_transform(transform, values);
    for (int i = 0; i < kDegree; ++i) values[i] = RoundToBits(values[i], bits);
  }

  const Kernel& kernel_;
  const Tables& tables_;
  const std::vector<Target>& targets_;
  const int delta_;
  const int levels_;
  const Words work_;
  const int16_t* rows_ = nullptr;
  int64_t dimensions_ = 0;
};

size_t Evaluator::ScoreMemory(size_t targets, int delta) {
  return static_cast<size_t>(BlockScorer::CountArrays(targets, delta)) * Words::kArrayBytes;
}

void Evaluator::Score(const std::vector<const int16_t*>& blocks, int64_t dimensions,
                      const std::vector<Target>& targets, const ParallelRun& run) const {
  if (blocks.size() < kMinBlocksPerPass) {
    // The later one of a block's two tasks joins both halves.
    std::vector<std::unique_ptr<BlockScorer>> halves(2 * blocks.size());
    std::vector<std::atomic<int>> ended(blocks.size());
    run(static_cast<int>(2 * blocks.size()), [&](int task) {
      const size_t block = static_cast<size_t>(task) / 2;
      auto scorer = std::make_unique<BlockScorer>(*this, targets);
      scorer->ScoreHalf(blocks[block], dimensions, task % 2);
      halves[static_cast<size_t>(task)] = std::move(scorer);
      if (++ended[block] < 2) return;
      halves[2 * block]->Merge(*halves[2 * block + 1]);
      halves[2 * block]->Write(block);
      halves[2 * block].reset();
      halves[2 * block + 1].reset();
    });
    return;
  }
  std::mutex mutex;  // guards idle
  std::vector<std::unique_ptr<BlockScorer>> idle;
  run(static_cast<int>(blocks.size()), [&](int block) {
    std::unique_ptr<BlockScorer> scorer;
    {
      const std::lock_guard<std::mutex> guard(mutex);
      if (!idle.empty()) {
        scorer = std::move(idle.back());
        idle.pop_back();
      }
    }
    if (scorer == nullptr) scorer = std::make_unique<BlockScorer>(*this, targets);
    scorer->ScoreBlock(blocks[static_cast<size_t>(block)], dimensions);
    scorer->Write(static_cast<size_t>(block));
    const std::lock_guard<std::mutex> guard(mutex);
    idle.push_back(std::move(scorer));
  });
}

}  // namespace privatemail::lattice
