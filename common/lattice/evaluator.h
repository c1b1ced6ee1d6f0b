// The server's arithmetic of encrypted scores: products with rows, packing, rounding.
//
// Held by the server. Sees ciphertexts and evaluation keys, which tell nothing about the target, and
// the rows. The work depends on sizes alone.
#ifndef PRIVATEMAIL_COMMON_LATTICE_EVALUATOR_H_
#define PRIVATEMAIL_COMMON_LATTICE_EVALUATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "common/lattice/wire.h"

namespace privatemail::lattice {

// Parsed evaluation keys and queries, in the form of the evaluator that made them. Immutable.
class EvaluationKeys {
 public:
  virtual ~EvaluationKeys() = default;
  int delta() const { return delta_; }
  size_t memory() const { return memory_; }  // bytes

 protected:
  EvaluationKeys(int delta, size_t memory) : delta_(delta), memory_(memory) {}

 private:
  int delta_;
  size_t memory_;
};

class Query {
 public:
  virtual ~Query() = default;
  int64_t dimensions() const { return dimensions_; }
  size_t memory() const { return memory_; }  // bytes

 protected:
  Query(int64_t dimensions, size_t memory) : dimensions_(dimensions), memory_(memory) {}

 private:
  int64_t dimensions_;
  size_t memory_;
};

// The bytes that keys and a query take once they are parsed.
size_t KeysMemory(int delta);
size_t QueryMemory(int64_t dimensions, int delta);

// What a call asks of each block. All parts of one call are of the evaluator that scores them, with
// keys and query of one delta.
struct Target {
  const EvaluationKeys* keys = nullptr;
  const Query* query = nullptr;
  char* answers = nullptr;  // kAnswerBytes for each block of the call
};

// kDegree x dimensions row-major int16, rows of 2^14 times a unit vector or zero.
using BlockRows = const int16_t*;

// Runs task(0) .. task(count - 1), each once, and returns when all have ended. Tasks are independent.
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

  virtual ~Evaluator() = default;

  // Null: not KeysBytes(delta) bytes, or a value is q or more; or `shake` failed.
  virtual std::shared_ptr<const EvaluationKeys> ParseKeys(std::string_view bytes, int delta,
                                                          const Shake128& shake) const = 0;
  // Null: the seed is not kSeedBytes or the chunks not QueryChunkBytes, or a value is q or more; or
  // `shake` failed. dimensions: 1 to kMaxDimensions.
  virtual std::shared_ptr<const Query> ParseQuery(std::string_view seed, std::string_view chunks,
                                                  int64_t dimensions, int delta,
                                                  const Shake128& shake) const = 0;

  // Writes the answers of all blocks to every target. All targets share the transforms of the rows.
  // Takes about 0.5 MB of memory for each task of `run` and target.
  virtual void Score(const std::vector<BlockRows>& blocks, int64_t dimensions,
                     const std::vector<Target>& targets, const ParallelRun& run) const = 0;
};

}  // namespace privatemail::lattice

#endif  // PRIVATEMAIL_COMMON_LATTICE_EVALUATOR_H_
