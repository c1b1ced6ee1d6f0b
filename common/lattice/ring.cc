#include "common/lattice/ring.h"

#include "common/lattice/modular.h"

namespace privatemail::lattice {
namespace {

constexpr int kFoldingQuarter = 16;
constexpr int64_t kGenerator = 3;  // psi = kGenerator^((q - 1) / (2 N)) has psi^N = -1

Factor FactorOf(int64_t value) {
  const int64_t centred = Centre(value);
  return {centred, ShareOf(centred)};
}

Roots ComputeRoots() {
  const int64_t psi = PowerModulo(kGenerator, (kModulus - 1) / (2 * kDegree));
  const int64_t psi_inverse = PowerModulo(psi, kModulus - 2);
  Roots roots;
  int64_t forward = 1, inverse = 1;
  for (int power = 0; power < kDegree; ++power) {
    roots.forward[ReverseBits(power)] = FactorOf(forward);
    roots.inverse[ReverseBits(power)] = FactorOf(inverse);
    forward = Multiply(forward, psi);
    inverse = Multiply(inverse, psi_inverse);
  }
  roots.scale = FactorOf(PowerModulo(kDegree, kModulus - 2));
  roots.scaled_root = FactorOf(Multiply(roots.inverse[1].value, roots.scale.value));
  roots.modulus = kModulus;
  return roots;
}

}  // namespace

const Roots& GetRoots() {
  static const Roots roots = ComputeRoots();
  return roots;
}

int64_t Centre(int64_t value) { return CentreInline(value); }

// Cooley and Tukey's butterflies, two levels at a time after the first. Sums are not reduced: each
// of the 11 levels adds less than 2^42.
void TransformUnreduced(int64_t* values) {
  const Roots& roots = GetRoots();
  const int64_t q = roots.modulus;
  for (int i = 0; i < kDegree / 2; ++i) {
    const int64_t product = MultiplyBy(values[i + kDegree / 2], roots.forward[1], q);
    values[i + kDegree / 2] = values[i] - product;
    values[i] += product;
  }
  for (int groups = 2, quarter = kDegree / 8; quarter >= 1; groups *= 4, quarter /= 4) {
    for (int group = 0; group < groups; ++group) {
      const int at = groups + group;  // of the level, and 2 at and 2 at + 1 of the one beside it
      const Factor root = roots.forward[at];
      const Factor root0 = roots.forward[2 * at], root1 = roots.forward[2 * at + 1];
      int64_t* x = values + 4 * group * quarter;
      for (int i = 0; i < quarter; ++i) {
        const int64_t product2 = MultiplyBy(x[i + 2 * quarter], root, q);
        const int64_t product3 = MultiplyBy(x[i + 3 * quarter], root, q);
        const int64_t product1 = MultiplyBy(x[i + quarter] + product3, root0, q);
        const int64_t last = MultiplyBy(x[i + quarter] - product3, root1, q);
        const int64_t sum = x[i] + product2, difference = x[i] - product2;
        x[i] = sum + product1;
        x[i + quarter] = sum - product1;
        x[i + 2 * quarter] = difference + last;
        x[i + 3 * quarter] = difference - last;
      }
    }
  }
}

void Transform(int64_t* values) {
  TransformUnreduced(values);
  for (int i = 0; i < kDegree; ++i) values[i] = CentreInline(values[i]);
}

// Gentleman and Sande's butterflies, two levels at a time before the last. Sums are folded once in
// between, so that they stay below 2^48.
void InverseTransform(int64_t* values) {
  const Roots& roots = GetRoots();
  const int64_t q = roots.modulus;
  for (int groups = kDegree / 4, quarter = 1; groups >= 2; groups /= 4, quarter *= 4) {
    for (int group = 0; group < groups; ++group) {
      const int at = groups + group;  // of the level, and 2 at and 2 at + 1 of the one beside it
      const Factor root = roots.inverse[at];
      const Factor root0 = roots.inverse[2 * at], root1 = roots.inverse[2 * at + 1];
      int64_t* x = values + 4 * group * quarter;
      for (int i = 0; i < quarter; ++i) {
        const int64_t sum0 = x[i] + x[i + quarter], sum1 = x[i + 2 * quarter] + x[i + 3 * quarter];
        const int64_t product0 = MultiplyBy(x[i] - x[i + quarter], root0, q);
        const int64_t product1 = MultiplyBy(x[i + 2 * quarter] - x[i + 3 * quarter], root1, q);
        x[i] = quarter == kFoldingQuarter ? Fold(sum0 + sum1) : sum0 + sum1;
        x[i + quarter] = product0 + product1;
        x[i + 2 * quarter] = MultiplyBy(sum0 - sum1, root, q);
        x[i + 3 * quarter] = MultiplyBy(product0 - product1, root, q);
      }
    }
  }
  for (int i = 0; i < kDegree / 2; ++i) {
    const int64_t sum = values[i] + values[i + kDegree / 2];
    const int64_t difference = values[i] - values[i + kDegree / 2];
    values[i] = CentreInline(MultiplyBy(sum, roots.scale, q));
    values[i + kDegree / 2] = CentreInline(MultiplyBy(difference, roots.scaled_root, q));
  }
}

void MultiplyPointwise(const int64_t* x, const int64_t* y, int64_t* product) {
  for (int i = 0; i < kDegree; ++i) product[i] = CentreInline(Multiply(x[i], y[i]));
}

}  // namespace privatemail::lattice
