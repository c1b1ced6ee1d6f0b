// The inner loops of an evaluator, one set for each kind of processor.
//
// Every kernel computes the same residues modulo q. They differ in the type of a value (double or
// int64_t), in the order of a transform and in how far intermediate values are reduced. Only the
// evaluator uses them. All arrays have kDegree words and are aligned to 64 bytes.
#ifndef PRIVATEMAIL_COMMON_LATTICE_KERNEL_H_
#define PRIVATEMAIL_COMMON_LATTICE_KERNEL_H_

#include <cstdint>

#include "common/lattice/modular.h"
#include "common/lattice/scores.h"

namespace privatemail::lattice {

// A value of a kernel's own type. Memory of words is only read and written by one kernel.
struct Word {
  alignas(8) unsigned char bytes[8];
};

// Words from an array to the next one of the same memory. Arrays a power of two apart would compete
// for the same sets of a cache.
inline constexpr int kArrayStride = kDegree + 8;

struct Ciphertext {
  Word* a;
  Word* b;
};

// Products that one call of add_products sums.
inline constexpr int kProductsOfSum = 4;

// Two leaves of a block, of which the sum and the difference are taken: row j delta + even at
// coefficients j delta .. j delta + delta - 1, plus or minus row j delta + odd, delta / 2
// coefficients later.
struct LeafPair {
  const int16_t* rows;  // kDegree x dimensions; row r is at place ReverseBits(r)
  int64_t dimensions;
  int delta;
  int64_t chunk;  // which delta dimensions
  int even, odd;
};

// The leaves' sum and difference; the last chunk may have fewer than delta dimensions. Each kernel
// instantiates it for its own type of values, so that they share no code.
template <typename Value>
void LoadLeaves(const LeafPair& leaves, Value* sum, Value* difference) {
  for (int i = 0; i < kDegree; ++i) sum[i] = difference[i] = 0;
  const int64_t first = leaves.chunk * leaves.delta, left = leaves.dimensions - first;
  const int columns = left < leaves.delta ? static_cast<int>(left) : leaves.delta;
  for (int slot = 0; slot < kDegree; slot += leaves.delta) {
    const int16_t* even = leaves.rows + ReverseBits(slot + leaves.even) * leaves.dimensions + first;
    const int16_t* odd = leaves.rows + ReverseBits(slot + leaves.odd) * leaves.dimensions + first;
    for (int i = 0; i < columns; ++i) {
      sum[slot + i] += even[i];
      difference[slot + i] += even[i];
      const int place = slot + leaves.delta / 2 + i;
      const Value value = place < kDegree ? odd[i] : -odd[i];  // X^N = -1
      sum[place % kDegree] += value;
      difference[place % kDegree] -= value;
    }
  }
}

struct Kernel {
  // The kernel's order: position p of a transform holds the value that Transform puts at order[p].
  const uint16_t* order;

  // Converts centred values, whose order stays.
  void (*load)(const int64_t* values, Word* words);
  // In place, to the kernel's order.
  void (*transform)(Word* values);
  // The inverse, as centred coefficients. Overwrites words.
  void (*inverse_transform)(Word* words, int64_t* values);
  void (*reduce)(const Ciphertext& values);

  // Two arrays: the transforms of the leaves' sum and difference.
  void (*transform_leaves)(const LeafPair& leaves, Word* transforms);
  // sum and difference = (first ? 0 : themselves) + leaf 0 factor 0 + .. + leaf count - 1 factor
  // count - 1, for both parts of each factor. leaves: arrays in the order of transform_leaves.
  // factors: arrays a and b of each. count <= kProductsOfSum. At most 128 calls before reduce.
  void (*add_products)(const Word* leaves, const Word* factors, int count, bool first,
                       const Ciphertext& sum, const Ciphertext& difference);
  // difference = even - monomial odd; even += monomial odd.
  void (*add_and_subtract)(const Word* monomial, const Ciphertext& odd, const Ciphertext& even,
                           const Ciphertext& difference);
  // sum += tau(difference) with its key switched. source: position p of tau(x) is position
  // source[p] of x. keys: the two digits' keys. work: 2 arrays. Overwrites difference.
  void (*add_switched)(const uint16_t* source, const Ciphertext& difference, const Ciphertext* keys,
                       Word* const* work, const Ciphertext& sum);
};

const Kernel& PortableKernel();
// Null in builds for other processors. Requires AVX2 and FMA.
const Kernel* Avx2Kernel();

}  // namespace privatemail::lattice

#endif  // PRIVATEMAIL_COMMON_LATTICE_KERNEL_H_
