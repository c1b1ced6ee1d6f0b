// The inner loops of an evaluator, one set for each kind of processor.
//
// Every kernel computes the same residues modulo q. They differ in the type of a value (double or
// int64_t), in the order of a transform and in how far intermediate values are reduced. Only the
// evaluator uses them. All arrays have kDegree words and are aligned to 32 bytes.
#ifndef PRIVATEMAIL_COMMON_LATTICE_KERNEL_H_
#define PRIVATEMAIL_COMMON_LATTICE_KERNEL_H_

#include <cstdint>

#include "common/lattice/scores.h"

namespace privatemail::lattice {

// A value of a kernel's own type. Memory of words is only read and written by one kernel.
struct Word {
  alignas(8) unsigned char bytes[8];
};

struct Ciphertext {
  Word* a;
  Word* b;
};

// Products that one call of add_products sums.
inline constexpr int kProductsOfSum = 4;

// A leaf pair's sum (sign 1) or difference (sign -1): row j delta + even of the block at
// coefficients j delta .. j delta + delta - 1, plus or minus row j delta + odd, delta / 2
// coefficients later.
struct LeafPair {
  const int16_t* rows;  // kDegree x dimensions
  int64_t dimensions;
  int delta;
  int64_t chunk;  // which delta dimensions
  int even, odd;
  int sign;
};

struct Kernel {
  // The kernel's order: position p of a transform holds the value that Transform puts at order[p].
  const uint16_t* order;

  // Converts centred values, whose order stays.
  void (*load)(const int64_t* values, Word* words);
  // In place, to the kernel's order.
  void (*transform)(Word* values);
  void (*inverse_transform)(Word* values);  // results are centred
  void (*store)(const Word* words, int64_t* values);
  void (*reduce)(const Ciphertext& values);

  // x = the transform of a leaf pair.
  void (*transform_leaf)(const LeafPair& leaf, Word* x);
  // sum = (first ? 0 : sum) + x[0] factors[0] + .. + x[count - 1] factors[count - 1], for both parts.
  // x: of transform_leaf. count <= kProductsOfSum. At most 128 calls before reduce.
  void (*add_products)(const Word* const* x, const Ciphertext* factors, int count, bool first,
                       const Ciphertext& sum);
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
