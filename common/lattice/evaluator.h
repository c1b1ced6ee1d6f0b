// The server's arithmetic of encrypted scores: products with rows, packing, rounding.
//
// Held by the server. Sees ciphertexts and evaluation keys, which tell nothing about the target,
// and the rows. The work depends on sizes alone. PRIVACY.md, section 9,
// defines every bit of an answer.
#ifndef PRIVATEMAIL_COMMON_LATTICE_EVALUATOR_H_
#define PRIVATEMAIL_COMMON_LATTICE_EVALUATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "common/lattice/kernel.h"
#include "common/lattice/wire.h"

namespace privatemail::lattice {

// Memory of `arrays` polynomials in a kernel's form.
class Words {
 public:
  explicit Words(int64_t arrays)
      : arrays_(std::make_unique_for_overwrite<Array[]>(static_cast<size_t>(arrays))) {}
  Word* operator[](int64_t array) const { return arrays_[static_cast<size_t>(array)].words; }
  static constexpr size_t kArrayBytes = size_t{kArrayStride} * sizeof(Word);

 private:
  struct alignas(64) Array {
    Word words[kArrayStride];
  };
  static_assert(sizeof(Array) == kArrayBytes);
  std::unique_ptr<Array[]> arrays_;
};

// A session's evaluation keys. Immutable.
struct EvaluationKeys {
  int delta;
  Words polynomials;  // a and b of each level and digit

  Ciphertext Of(int level, int digit) const;  // level: from 0
  static size_t Memory(int delta);            // bytes
};

// A query: a ciphertext for each chunk. Immutable.
struct Query {
  int delta;
  int64_t dimensions;
  Words polynomials;  // a and b of each chunk

  Ciphertext Of(int64_t chunk) const {
    return {polynomials[2 * chunk], polynomials[2 * chunk + 1]};
  }
  static size_t Memory(int64_t dimensions, int delta);  // bytes
};

// A query with its keys, both of one evaluator and delta, and the memory of its answers.
struct Target {
  const EvaluationKeys* keys = nullptr;
  const Query* query = nullptr;
  char* answers = nullptr;  // kAnswerBytes for each block
};

// Runs task(0) .. task(count - 1), each once, and returns when all have ended.
using ParallelRun = std::function<void(int count, const std::function<void(int)>& task)>;

// Thread-safe.
class Evaluator {
 public:
  // All give the same bits.
  enum class Path { kPortable, kAvx2 };
  // Null: this processor or build does not have it.
  static const Evaluator* Find(Path path);
  // The fastest one of this processor.
  static const Evaluator& Best();

  // Null: `bytes` are not KeysBytes(delta), or a value is q or more; or `shake` failed.
  std::shared_ptr<const EvaluationKeys> ParseKeys(std::string_view bytes, int delta,
                                                  const Shake128& shake) const;
  // Null: the seed is not kSeedBytes or the chunks are not QueryChunkBytes, or a value is q or
  // more; or `shake` failed. dimensions: 1 to kMaxDimensions.
  std::shared_ptr<const Query> ParseQuery(std::string_view seed, std::string_view chunks,
                                          int64_t dimensions, int delta,
                                          const Shake128& shake) const;

  // Writes the answers of all blocks to every target; all targets have one delta. A block is
  // kDegree x dimensions row-major int16: rows of 2^14 times a unit vector, or zero. Row r, whose
  // score is coefficient r of the answer, is at place ReverseBits(r) (modular.h). The targets share
  // the transforms of the rows.
  void Score(const std::vector<const int16_t*>& blocks, int64_t dimensions,
             const std::vector<Target>& targets, const ParallelRun& run) const;
  // The bytes that a task of `run` takes in Score; about as many tasks run as there are cores.
  static size_t ScoreMemory(size_t targets, int delta);

 private:
  class BlockScorer;
  struct Tables;  // of the automorphisms and monomials, by level

  explicit Evaluator(const Kernel& kernel);
  // Fills `polynomials` with a and b of `count` ciphertexts. False: as in ParseKeys.
  bool ReadCiphertexts(std::string_view seed, SeedUse use, const char* b, int64_t count,
                       const Shake128& shake, const Words& polynomials) const;

  const Kernel& kernel_;
  const std::shared_ptr<const Tables> tables_;
};

}  // namespace privatemail::lattice

#endif  // PRIVATEMAIL_COMMON_LATTICE_EVALUATOR_H_
