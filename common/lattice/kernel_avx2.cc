// The kernel for processors with AVX2 and FMA: values in double, which products leave exact.
//
// This file alone is compiled for these instructions, so it calls nothing inline of the standard
// library, whose code other files share.
#include "common/lattice/kernel.h"
#include "common/lattice/modular.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

namespace privatemail::lattice {
namespace {

using Vector = __m256d;
constexpr int kLanes = 4;
constexpr int kGroup = 16;  // values of a block whose last levels are transposed
constexpr double kInverse = 1.0 / static_cast<double>(kModulus);
constexpr double kHalf = static_cast<double>((kModulus - 1) / 2);

double* Values(Word* words) { return reinterpret_cast<double*>(words); }
const double* Values(const Word* words) { return reinterpret_cast<const double*>(words); }

Vector Load(const double* x) { return _mm256_load_pd(x); }
void Store(double* x, Vector value) { _mm256_store_pd(x, value); }
Vector All(double value) { return _mm256_set1_pd(value); }
Vector Round(Vector x) { return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

// A factor of products in each lane, and the factor / q.
struct Root {
  Vector value, share;
};

// Factors as doubles.
template <int kCount>
struct RootTable {
  alignas(32) double value[kCount], share[kCount];

  void Set(int i, double factor) {
    value[i] = factor;
    share[i] = factor / static_cast<double>(kModulus);
  }
  // Returns one factor in all lanes.
  Root InAllLanes(int i) const {
    return {_mm256_broadcast_sd(value + i), _mm256_broadcast_sd(share + i)};
  }
  // Returns the factors i to i + 3.
  Root FourFrom(int i) const { return {Load(value + i), Load(share + i)}; }
};

// Powers of psi. The last two levels' are in the order of their vectors.
struct Tables {
  RootTable<kDegree> forward, inverse;
  RootTable<kDegree / 2> last, first;
  RootTable<1> scale, scaled_root;  // of sums and of differences in the inverse's last level
  uint16_t order[kDegree];
};

void FillTables(Tables* tables) {
  const Roots& roots = GetRoots();
  for (int i = 0; i < kDegree; ++i) {
    tables->forward.Set(i, static_cast<double>(roots.forward[i].value));
    tables->inverse.Set(i, static_cast<double>(roots.inverse[i].value));
  }
  for (int group = 0; group < kDegree / kGroup; ++group) {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int pair = 0; pair < 2; ++pair) {
        const int to = 8 * group + kLanes * pair + lane;
        const int from = kDegree / 2 + 8 * group + 2 * lane + pair;
        tables->last.Set(to, tables->forward.value[from]);
        tables->first.Set(to, tables->inverse.value[from]);
      }
      for (int j = 0; j < kLanes; ++j) {
        tables->order[kGroup * group + kLanes * j + lane] =
            static_cast<uint16_t>(kGroup * group + kLanes * lane + j);
      }
    }
  }
  tables->scale.Set(0, static_cast<double>(roots.scale.value));
  tables->scaled_root.Set(0, static_cast<double>(roots.scaled_root.value));
}

const Tables& GetTables() {
  static Tables tables;
  static const bool filled = (FillTables(&tables), true);
  static_cast<void>(filled);
  return tables;
}

// x y modulo q, for |x| <= 2^52, |y| <= 2^40: at most 2 q in absolute value, q / 2 and a little if
// |x| <= 2^49. The product's rounding error is exact, and so is the difference of two near
// multiples.
inline Vector MultiplyBy(Vector x, const Root& y) {
  const Vector quotient = Round(_mm256_mul_pd(x, y.share));
  const Vector product = _mm256_mul_pd(x, y.value);
  const Vector error = _mm256_fmsub_pd(x, y.value, product);
  return _mm256_add_pd(_mm256_fnmadd_pd(quotient, All(static_cast<double>(kModulus)), product),
                       error);
}
// The same for digits, at most 2^13 in absolute value: their products are exact in one part.
inline Vector MultiplyDigitBy(Vector x, const Root& y) {
  const Vector quotient = Round(_mm256_mul_pd(x, y.share));
  return _mm256_fnmadd_pd(quotient, All(static_cast<double>(kModulus)), _mm256_mul_pd(x, y.value));
}
inline Vector Multiply(Vector x, Vector y) {
  const Vector product = _mm256_mul_pd(x, y);
  const Vector error = _mm256_fmsub_pd(x, y, product);
  const Vector quotient = Round(_mm256_mul_pd(product, All(kInverse)));
  return _mm256_add_pd(_mm256_fnmadd_pd(quotient, All(static_cast<double>(kModulus)), product),
                       error);
}
// At most q / 2 and a little in absolute value.
inline Vector Reduce(Vector x) {
  return _mm256_fnmadd_pd(Round(_mm256_mul_pd(x, All(kInverse))),
                          All(static_cast<double>(kModulus)), x);
}
// Exactly centred, for |x| <= 3 q / 2.
inline Vector CentreOnce(Vector x) {
  const Vector modulus = All(static_cast<double>(kModulus));
  x = _mm256_sub_pd(x, _mm256_and_pd(_mm256_cmp_pd(x, All(kHalf), _CMP_GT_OQ), modulus));
  return _mm256_add_pd(x, _mm256_and_pd(_mm256_cmp_pd(x, All(-kHalf), _CMP_LT_OQ), modulus));
}

inline void Transpose(Vector& a, Vector& b, Vector& c, Vector& d) {
  const Vector ab_low = _mm256_unpacklo_pd(a, b), ab_high = _mm256_unpackhi_pd(a, b);
  const Vector cd_low = _mm256_unpacklo_pd(c, d), cd_high = _mm256_unpackhi_pd(c, d);
  a = _mm256_permute2f128_pd(ab_low, cd_low, 0x20);
  b = _mm256_permute2f128_pd(ab_high, cd_high, 0x20);
  c = _mm256_permute2f128_pd(ab_low, cd_low, 0x31);
  d = _mm256_permute2f128_pd(ab_high, cd_high, 0x31);
}

using Multiplication = Vector (*)(Vector x, const Root& y);

// low, high = low + high root, low - high root.
template <Multiplication kMultiply = MultiplyBy>
inline void Forward(Vector& low, Vector& high, const Root& root) {
  const Vector product = kMultiply(high, root);
  high = _mm256_sub_pd(low, product);
  low = _mm256_add_pd(low, product);
}
// low, high = low + high, (low - high) root.
inline void Inverse(Vector& low, Vector& high, const Root& root) {
  const Vector difference = _mm256_sub_pd(low, high);
  low = _mm256_add_pd(low, high);
  high = MultiplyBy(difference, root);
}

// Replaces 4 quarter values; update(x0, x1, x2, x3) gets vectors that are a quarter apart.
template <typename Update>
inline void UpdateQuarters(double* x, int quarter, Update update) {
  for (int i = 0; i < quarter; i += kLanes) {
    Vector x0 = Load(x + i), x1 = Load(x + quarter + i);
    Vector x2 = Load(x + 2 * quarter + i), x3 = Load(x + 3 * quarter + i);
    update(x0, x1, x2, x3);
    Store(x + i, x0);
    Store(x + quarter + i, x1);
    Store(x + 2 * quarter + i, x2);
    Store(x + 3 * quarter + i, x3);
  }
}

// Two levels of the forward transform, from groups of 4 quarter values. kMultiply: in the first.
template <Multiplication kMultiply = MultiplyBy>
inline void ForwardPass(double* values, int groups, int quarter) {
  const RootTable<kDegree>& roots = GetTables().forward;
  for (int group = 0; group < groups; ++group) {
    const int at = groups + group;  // of the level, and 2 at and 2 at + 1 of the next one
    const Root root = roots.InAllLanes(at);
    const Root root0 = roots.InAllLanes(2 * at), root1 = roots.InAllLanes(2 * at + 1);
    UpdateQuarters(values + 4 * group * quarter, quarter,
                   [&](Vector& x0, Vector& x1, Vector& x2, Vector& x3) {
                     Forward<kMultiply>(x0, x2, root);
                     Forward<kMultiply>(x1, x3, root);
                     Forward(x0, x1, root0);
                     Forward(x2, x3, root1);
                   });
  }
}

// The last three levels, on 16 values each; take(position, vector) gets the results.
template <typename Take>
inline void LastForwardPass(const double* values, Take take) {
  const Tables& t = GetTables();
  for (int group = 0; group < kDegree / kGroup; ++group) {
    const double* x = values + kGroup * group;
    Vector x0 = Load(x), x1 = Load(x + 4), x2 = Load(x + 8), x3 = Load(x + 12);
    const int third = kDegree / 8 + 2 * group;
    Forward(x0, x1, t.forward.InAllLanes(third));
    Forward(x2, x3, t.forward.InAllLanes(third + 1));
    Transpose(x0, x1, x2, x3);
    const Root root = t.forward.FourFrom(kDegree / 4 + 4 * group);
    Forward(x0, x2, root);
    Forward(x1, x3, root);
    Forward(x0, x1, t.last.FourFrom(8 * group));
    Forward(x2, x3, t.last.FourFrom(8 * group + 4));
    take(kGroup * group, x0);
    take(kGroup * group + 4, x1);
    take(kGroup * group + 8, x2);
    take(kGroup * group + 12, x3);
  }
}

template <Multiplication kMultiply = MultiplyBy>
inline void FirstLevels(double* values) {
  ForwardPass<kMultiply>(values, 1, kDegree / 4);
  ForwardPass(values, 4, kDegree / 16);
  ForwardPass(values, 16, kDegree / 64);
  ForwardPass(values, 64, kDegree / 256);
}

void TransformWords(Word* words) {
  double* values = Values(words);
  FirstLevels(values);
  LastForwardPass(values, [&](int at, Vector value) { Store(values + at, Reduce(value)); });
}

inline void InversePass(double* values, int groups, int quarter) {
  const RootTable<kDegree>& roots = GetTables().inverse;
  for (int group = 0; group < groups; ++group) {
    const int at = groups + group;  // of the level, and 2 at and 2 at + 1 of the one before
    const Root root = roots.InAllLanes(at);
    const Root root0 = roots.InAllLanes(2 * at), root1 = roots.InAllLanes(2 * at + 1);
    UpdateQuarters(values + 4 * group * quarter, quarter,
                   [&](Vector& x0, Vector& x1, Vector& x2, Vector& x3) {
                     Inverse(x0, x1, root0);
                     Inverse(x2, x3, root1);
                     Inverse(x0, x2, root);
                     Inverse(x1, x3, root);
                   });
  }
}

// The first three levels of the inverse transform; get(position) loads a vector.
template <typename Get>
inline void FirstInversePass(double* values, Get get) {
  const Tables& t = GetTables();
  for (int group = 0; group < kDegree / kGroup; ++group) {
    double* x = values + kGroup * group;
    Vector x0 = get(kGroup * group), x1 = get(kGroup * group + 4);
    Vector x2 = get(kGroup * group + 8), x3 = get(kGroup * group + 12);
    Inverse(x0, x1, t.first.FourFrom(8 * group));
    Inverse(x2, x3, t.first.FourFrom(8 * group + 4));
    const Root root = t.inverse.FourFrom(kDegree / 4 + 4 * group);
    Inverse(x0, x2, root);
    Inverse(x1, x3, root);
    Transpose(x0, x1, x2, x3);
    const int third = kDegree / 8 + 2 * group;
    Inverse(x0, x1, t.inverse.InAllLanes(third));
    Inverse(x2, x3, t.inverse.InAllLanes(third + 1));
    Store(x, x0);
    Store(x + 4, x1);
    Store(x + 8, x2);
    Store(x + 12, x3);
  }
}

// The last two levels with the factor 1 / N; take(position, centred vector) gets the results.
template <typename Take>
inline void LastInversePass(const double* x, Take take) {
  const Tables& t = GetTables();
  constexpr int kQuarter = kDegree / 4;
  const Root root0 = t.inverse.InAllLanes(2), root1 = t.inverse.InAllLanes(3);
  const Root scale = t.scale.InAllLanes(0), root = t.scaled_root.InAllLanes(0);
  for (int i = 0; i < kQuarter; i += kLanes) {
    Vector x0 = Load(x + i), x1 = Load(x + kQuarter + i);
    Vector x2 = Load(x + 2 * kQuarter + i), x3 = Load(x + 3 * kQuarter + i);
    Inverse(x0, x1, root0);
    Inverse(x2, x3, root1);
    take(i, CentreOnce(MultiplyBy(_mm256_add_pd(x0, x2), scale)));
    take(kQuarter + i, CentreOnce(MultiplyBy(_mm256_add_pd(x1, x3), scale)));
    take(2 * kQuarter + i, CentreOnce(MultiplyBy(_mm256_sub_pd(x0, x2), root)));
    take(3 * kQuarter + i, CentreOnce(MultiplyBy(_mm256_sub_pd(x1, x3), root)));
  }
}

inline void MiddleInverseLevels(double* values) {
  InversePass(values, 64, kDegree / 256);
  InversePass(values, 16, kDegree / 64);
  InversePass(values, 4, kDegree / 16);
}

void InverseTransformWords(Word* words, int64_t* values) {
  double* x = Values(words);
  FirstInversePass(x, [&](int at) { return Reduce(Load(x + at)); });
  MiddleInverseLevels(x);
  LastInversePass(x, [&](int at, Vector value) { Store(x + at, value); });
  for (int i = 0; i < kDegree; ++i) values[i] = static_cast<int64_t>(x[i]);
}

void LoadWords(const int64_t* values, Word* words) {
  for (int i = 0; i < kDegree; ++i) Values(words)[i] = static_cast<double>(values[i]);
}

inline Vector LoadRow(const int16_t* row) {
  return _mm256_cvtepi32_pd(
      _mm_cvtepi16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(row))));
}

inline const int16_t* RowOf(const LeafPair& leaves, int row) {
  return leaves.rows + ReverseBits(row) * leaves.dimensions + leaves.chunk * leaves.delta;
}

// sum, difference = even + odd, even - odd.
inline void StoreBoth(double* sum, double* difference, Vector even, Vector odd) {
  Store(sum, _mm256_add_pd(even, odd));
  Store(difference, _mm256_sub_pd(even, odd));
}

// The second half of a row of `odd` is in the next row's place; that of the last one returns to the
// first place with the other sign, since X^N = -1.
inline void LoadWholeLeaves(const LeafPair& leaves, double* sum, double* difference) {
  const int half = leaves.delta / 2;
  const int16_t* before = RowOf(leaves, kDegree - leaves.delta + leaves.odd) + half;
  Vector sign = All(-1.0);
  for (int slot = 0; slot < kDegree; slot += leaves.delta) {
    const int16_t* even = RowOf(leaves, slot + leaves.even);
    const int16_t* odd = RowOf(leaves, slot + leaves.odd);
    for (int i = 0; i < half; i += kLanes) {
      const int at = slot + i;
      StoreBoth(sum + at, difference + at, LoadRow(even + i),
                _mm256_mul_pd(sign, LoadRow(before + i)));
      StoreBoth(sum + at + half, difference + at + half, LoadRow(even + half + i),
                LoadRow(odd + i));
    }
    before = odd + half;
    sign = All(1.0);
  }
}

void TransformLeaves(const LeafPair& leaves, Word* transforms) {
  double *sum = Values(transforms), *difference = sum + kArrayStride;
  if (leaves.dimensions - leaves.chunk * leaves.delta >= leaves.delta) {
    LoadWholeLeaves(leaves, sum, difference);
  } else {
    LoadLeaves(leaves, sum, difference);
  }
  for (double* values : {sum, difference}) {
    FirstLevels(values);
    LastForwardPass(values, [&](int at, Vector value) { Store(values + at, value); });
  }
}

// Sums of products x y. Adding kCoarse rounds a sum to multiples of 2^36, so that high parts add up
// exactly; what rounding leaves of each product is exact, too, and at most 2^35. |x| <= 2^44 and
// |y| <= 2^40 leave room for kProductsOfSum products.
constexpr double kCoarse = 1.5 * (uint64_t{1} << 44) * (uint64_t{1} << 44);
static_assert(kProductsOfSum <= 8 && kDigits <= 8);

inline void AddProduct(Vector x, Vector y, Vector& high, Vector& low) {
  const Vector sum = _mm256_fmadd_pd(x, y, high);
  low = _mm256_add_pd(low, _mm256_fmsub_pd(x, y, _mm256_sub_pd(sum, high)));
  high = sum;
}
// At most q / 2 and low in absolute value.
inline Vector FinishSum(Vector high, Vector low) {
  return _mm256_add_pd(Reduce(_mm256_sub_pd(high, All(kCoarse))), low);
}

template <int count>
void AddProductsOf(const double* leaves, const double* factors, bool first, const Ciphertext& sum,
                   const Ciphertext& difference) {
  double *sum_a = Values(sum.a), *sum_b = Values(sum.b);
  double *difference_a = Values(difference.a), *difference_b = Values(difference.b);
  const auto start = [first](const double* x) { return first ? _mm256_setzero_pd() : Load(x); };
  for (int i = 0; i < kDegree; i += kLanes) {
    Vector coarse0 = All(kCoarse), coarse1 = coarse0, coarse2 = coarse0, coarse3 = coarse0;
    Vector fine0 = start(sum_a + i), fine1 = start(sum_b + i);
    Vector fine2 = start(difference_a + i), fine3 = start(difference_b + i);
#pragma GCC unroll 4
    for (int product = 0; product < count; ++product) {
      const int at = 2 * product * kArrayStride + i;
      const Vector a = Load(factors + at), b = Load(factors + at + kArrayStride);
      const Vector x = Load(leaves + at), y = Load(leaves + at + kArrayStride);
      AddProduct(x, a, coarse0, fine0);
      AddProduct(x, b, coarse1, fine1);
      AddProduct(y, a, coarse2, fine2);
      AddProduct(y, b, coarse3, fine3);
    }
    Store(sum_a + i, FinishSum(coarse0, fine0));
    Store(sum_b + i, FinishSum(coarse1, fine1));
    Store(difference_a + i, FinishSum(coarse2, fine2));
    Store(difference_b + i, FinishSum(coarse3, fine3));
  }
}

void AddProducts(const Word* leaves, const Word* factors, int count, bool first,
                 const Ciphertext& sum, const Ciphertext& difference) {
  static_assert(kProductsOfSum == 4);
  using Function = decltype(&AddProductsOf<1>);
  static constexpr Function kFunctions[] = {AddProductsOf<1>, AddProductsOf<2>, AddProductsOf<3>,
                                            AddProductsOf<4>};
  kFunctions[count - 1](Values(leaves), Values(factors), first, sum, difference);
}

void ReduceBoth(const Ciphertext& values) {
  double *a = Values(values.a), *b = Values(values.b);
  for (int i = 0; i < kDegree; i += kLanes) {
    Store(a + i, Reduce(Load(a + i)));
    Store(b + i, Reduce(Load(b + i)));
  }
}

void AddAndSubtract(const Word* monomial, const Ciphertext& odd, const Ciphertext& even,
                    const Ciphertext& difference) {
  const double *m = Values(monomial), *oa = Values(odd.a), *ob = Values(odd.b);
  double *ea = Values(even.a), *eb = Values(even.b);
  double *da = Values(difference.a), *db = Values(difference.b);
  for (int i = 0; i < kDegree; i += kLanes) {
    const Vector factor = Load(m + i);
    const Vector a = Multiply(Load(oa + i), factor), b = Multiply(Load(ob + i), factor);
    const Vector even_a = Load(ea + i), even_b = Load(eb + i);
    Store(da + i, _mm256_sub_pd(even_a, a));
    Store(db + i, _mm256_sub_pd(even_b, b));
    Store(ea + i, _mm256_add_pd(even_a, a));
    Store(eb + i, _mm256_add_pd(even_b, b));
  }
}

inline Vector Gather(const double* values, const uint16_t* source) {
  return _mm256_set_pd(values[source[3]], values[source[2]], values[source[1]], values[source[0]]);
}

void AddSwitched(const uint16_t* source, const Ciphertext& difference, const Ciphertext* keys,
                 Word* const* work, const Ciphertext& sum) {
  const double *da = Values(difference.a), *db = Values(difference.b);
  double *low = Values(work[0]), *high = Values(work[1]);
  double *a = Values(sum.a), *b = Values(sum.b);
  FirstInversePass(low, [&](int at) { return Reduce(Gather(da, source + at)); });
  MiddleInverseLevels(low);
  LastInversePass(low, [&](int at, Vector value) {
    const Vector half = All(0.5);
    const Vector kept =
        _mm256_floor_pd(_mm256_fmadd_pd(value, All(1.0 / (1 << kDroppedBits)), half));
    const Vector upper = _mm256_floor_pd(_mm256_fmadd_pd(kept, All(1.0 / (1 << kDigitBits)), half));
    Store(high + at, upper);
    Store(low + at, _mm256_fnmadd_pd(upper, All(static_cast<double>(1 << kDigitBits)), kept));
  });
  FirstLevels<MultiplyDigitBy>(low);
  FirstLevels<MultiplyDigitBy>(high);
  LastForwardPass(low, [&](int at, Vector value) { Store(low + at, value); });
  const double *a0 = Values(keys[0].a), *b0 = Values(keys[0].b);
  const double *a1 = Values(keys[1].a), *b1 = Values(keys[1].b);
  const auto add_both = [](Vector x0, Vector y0, Vector x1, Vector y1) {
    Vector coarse = All(kCoarse), fine = _mm256_setzero_pd();
    AddProduct(x0, y0, coarse, fine);
    AddProduct(x1, y1, coarse, fine);
    return FinishSum(coarse, fine);
  };
  LastForwardPass(high, [&](int at, Vector value) {
    const Vector other = Load(low + at);
    Store(a + at,
          _mm256_sub_pd(Load(a + at), add_both(other, Load(a0 + at), value, Load(a1 + at))));
    const Vector b_sum = _mm256_add_pd(Load(b + at), Gather(db, source + at));
    Store(b + at, _mm256_sub_pd(b_sum, add_both(other, Load(b0 + at), value, Load(b1 + at))));
  });
}

}  // namespace

const Kernel* Avx2Kernel() {
  static const Kernel kernel = {GetTables().order,     LoadWords,      TransformWords,
                                InverseTransformWords, ReduceBoth,     TransformLeaves,
                                AddProducts,           AddAndSubtract, AddSwitched};
  return &kernel;
}

}  // namespace privatemail::lattice

#else

namespace privatemail::lattice {
const Kernel* Avx2Kernel() { return nullptr; }
}  // namespace privatemail::lattice

#endif
