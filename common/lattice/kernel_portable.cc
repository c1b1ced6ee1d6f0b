// The kernel for any processor: int64_t values in the order of Transform.
#include <algorithm>
#include <array>

#include "common/lattice/kernel.h"
#include "common/lattice/modular.h"

namespace privatemail::lattice {
namespace {

int64_t* Values(Word* words) { return reinterpret_cast<int64_t*>(words); }
const int64_t* Values(const Word* words) { return reinterpret_cast<const int64_t*>(words); }

void Load(const int64_t* values, Word* words) { std::copy_n(values, kDegree, Values(words)); }
void Store(const Word* words, int64_t* values) { std::copy_n(Values(words), kDegree, values); }
void TransformWords(Word* words) { Transform(Values(words)); }
void InverseTransformWords(Word* words) { InverseTransform(Values(words)); }

void TransformLeaf(const LeafPair& leaf, Word* x) {
  int64_t* values = Values(x);
  std::fill_n(values, kDegree, 0);
  const int64_t first = leaf.chunk * leaf.delta;
  const auto columns = static_cast<int>(std::min<int64_t>(leaf.delta, leaf.dimensions - first));
  const int shift = leaf.delta / 2;
  for (int slot = 0; slot < kDegree; slot += leaf.delta) {
    const int16_t* even = leaf.rows + ReverseBits(slot + leaf.even) * leaf.dimensions + first;
    const int16_t* odd = leaf.rows + ReverseBits(slot + leaf.odd) * leaf.dimensions + first;
    for (int i = 0; i < columns; ++i) values[slot + i] += even[i];
    for (int i = 0; i < columns; ++i) {
      const int place = slot + shift + i;
      const int sign = place < kDegree ? leaf.sign : -leaf.sign;  // X^N = -1
      values[place % kDegree] += sign * odd[i];
    }
  }
  Transform(values);
}

void Reduce(const Ciphertext& values) {
  int64_t *a = Values(values.a), *b = Values(values.b);
  for (int i = 0; i < kDegree; ++i) {
    a[i] = Centre(a[i]);
    b[i] = Centre(b[i]);
  }
}

void AddProducts(const Word* const* x, const Ciphertext* factors, int count, bool first,
                 const Ciphertext& sum) {
  int64_t *a = Values(sum.a), *b = Values(sum.b);
  if (first) {
    std::fill_n(a, kDegree, 0);
    std::fill_n(b, kDegree, 0);
  }
  for (int product = 0; product < count; ++product) {
    const int64_t* xs = Values(x[product]);
    const int64_t *fa = Values(factors[product].a), *fb = Values(factors[product].b);
    for (int i = 0; i < kDegree; ++i) {
      a[i] += Multiply(xs[i], fa[i]);
      b[i] += Multiply(xs[i], fb[i]);
    }
  }
}

void AddAndSubtract(const Word* monomial, const Ciphertext& odd, const Ciphertext& even,
                    const Ciphertext& difference) {
  const int64_t *m = Values(monomial), *oa = Values(odd.a), *ob = Values(odd.b);
  int64_t *ea = Values(even.a), *eb = Values(even.b);
  int64_t *da = Values(difference.a), *db = Values(difference.b);
  for (int i = 0; i < kDegree; ++i) {
    const int64_t a = Multiply(oa[i], m[i]), b = Multiply(ob[i], m[i]);
    da[i] = ea[i] - a;
    db[i] = eb[i] - b;
    ea[i] += a;
    eb[i] += b;
  }
}

void AddSwitched(const uint16_t* source, const Ciphertext& difference, const Ciphertext* keys,
                 Word* const* work, const Ciphertext& sum) {
  const int64_t *da = Values(difference.a), *db = Values(difference.b);
  int64_t *low = Values(work[0]), *high = Values(work[1]);
  int64_t *a = Values(sum.a), *b = Values(sum.b);
  for (int i = 0; i < kDegree; ++i) {
    low[i] = Centre(da[source[i]]);
    b[i] += db[source[i]];
  }
  InverseTransform(low);
  for (int i = 0; i < kDegree; ++i) {
    const int64_t kept = (low[i] + (int64_t{1} << (kDroppedBits - 1))) >> kDroppedBits;
    high[i] = (kept + (int64_t{1} << (kDigitBits - 1))) >> kDigitBits;
    low[i] = kept - (high[i] << kDigitBits);
  }
  Transform(low);
  Transform(high);
  const int64_t *a0 = Values(keys[0].a), *b0 = Values(keys[0].b);
  const int64_t *a1 = Values(keys[1].a), *b1 = Values(keys[1].b);
  for (int i = 0; i < kDegree; ++i) {
    a[i] = Centre(a[i] - Multiply(low[i], a0[i]) - Multiply(high[i], a1[i]));
    b[i] = Centre(b[i] - Multiply(low[i], b0[i]) - Multiply(high[i], b1[i]));
  }
}

std::array<uint16_t, kDegree> IdentityOrder() {
  std::array<uint16_t, kDegree> order;
  for (int i = 0; i < kDegree; ++i) order[i] = static_cast<uint16_t>(i);
  return order;
}

}  // namespace

const Kernel& PortableKernel() {
  static const std::array<uint16_t, kDegree> order = IdentityOrder();
  static const Kernel kernel = {order.data(),   Load,        TransformWords, InverseTransformWords,
                                Store,          Reduce,      TransformLeaf,  AddProducts,
                                AddAndSubtract, AddSwitched};
  return kernel;
}

}  // namespace privatemail::lattice
