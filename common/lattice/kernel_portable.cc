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
void TransformWords(Word* words) { Transform(Values(words)); }
void InverseTransformWords(Word* words, int64_t* values) {
  std::copy_n(Values(words), kDegree, values);
  InverseTransform(values);
}

void TransformLeaves(const LeafPair& leaves, Word* transforms) {
  int64_t *sum = Values(transforms), *difference = sum + kArrayStride;
  LoadLeaves(leaves, sum, difference);
  TransformUnreduced(sum);
  TransformUnreduced(difference);
}

void Reduce(const Ciphertext& values) {
  int64_t *a = Values(values.a), *b = Values(values.b);
  for (int i = 0; i < kDegree; ++i) {
    a[i] = CentreInline(a[i]);
    b[i] = CentreInline(b[i]);
  }
}

void AddProducts(const Word* leaves, const Word* factors, int count, bool first,
                 const Ciphertext& sum, const Ciphertext& difference) {
  const auto add = [&](const int64_t* x, const int64_t* factor, Word* words) {
    int64_t* result = Values(words);
    for (int i = 0; i < kDegree; ++i) {
      Wide value = first ? 0 : result[i];
      for (int product = 0; product < count; ++product) {
        value += Wide{x[2 * product * kArrayStride + i]} * factor[2 * product * kArrayStride + i];
      }
      result[i] = FoldWide(value);
    }
  };
  const int64_t *x = Values(leaves), *factor = Values(factors);
  add(x, factor, sum.a);
  add(x, factor + kArrayStride, sum.b);
  add(x + kArrayStride, factor, difference.a);
  add(x + kArrayStride, factor + kArrayStride, difference.b);
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
    low[i] = CentreInline(da[source[i]]);
    b[i] += db[source[i]];
  }
  InverseTransform(low);
  for (int i = 0; i < kDegree; ++i) {
    const int64_t kept = (low[i] + (int64_t{1} << (kDroppedBits - 1))) >> kDroppedBits;
    high[i] = (kept + (int64_t{1} << (kDigitBits - 1))) >> kDigitBits;
    low[i] = kept - (high[i] << kDigitBits);
  }
  TransformUnreduced(low);
  TransformUnreduced(high);
  const int64_t *a0 = Values(keys[0].a), *b0 = Values(keys[0].b);
  const int64_t *a1 = Values(keys[1].a), *b1 = Values(keys[1].b);
  for (int i = 0; i < kDegree; ++i) {
    a[i] = FoldWide(a[i] - Wide{low[i]} * a0[i] - Wide{high[i]} * a1[i]);
    b[i] = FoldWide(b[i] - Wide{low[i]} * b0[i] - Wide{high[i]} * b1[i]);
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
  static const Kernel kernel = {order.data(),          Load,           TransformWords,
                                InverseTransformWords, Reduce,         TransformLeaves,
                                AddProducts,           AddAndSubtract, AddSwitched};
  return kernel;
}

}  // namespace privatemail::lattice
