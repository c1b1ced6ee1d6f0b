#include "common/lattice/ring.h"

#include "common/lattice/modular.h"

namespace privatemail::lattice {
namespace {

constexpr int kFoldingQuarter = 16;
constexpr int64_t kGenerator = 3;  // psi = kGenerator^((q - 1) / (2 N)) has psi^N = -1

Roots ComputeRoots() {
  const int64_t psi = PowerModulo(kGenerator, (kModulus - 1) / (2 * kDegree));
  const int64_t psi_inverse = PowerModulo(psi, kModulus - 2);
  Roots roots;
  int64_t forward = 1, inverse = 1;
  for (int power = 0; power < kDegree; ++power) {
    roots.forward[ReverseBits(power)] = forward;
    roots.inverse[ReverseBits(power)] = inverse;
    forward = Centre(Multiply(forward, psi));
    inverse = Centre(Multiply(inverse, psi_inverse));
  }
  for (int i = 0; i < kDegree; ++i) {
    roots.forward_share[i] = ShareOf(roots.forward[i]);
    roots.inverse_share[i] = ShareOf(roots.inverse[i]);
  }
  roots.degree_inverse = PowerModulo(kDegree, kModulus - 2);
  return roots;
}

}  // namespace

const Roots& GetRoots() {
  static const Roots roots = ComputeRoots();
  return roots;
}

int64_t Centre(int64_t value) { return CentreOnce(Fold(value)); }

// Cooley and Tukey's butterflies, two levels at a time after the first. Sums are not reduced: each
// of the 11 levels adds less than 2^42.
void TransformUnreduced(int64_t* values) {
  const Roots& roots = GetRoots();
  for (int i = 0; i < kDegree / 2; ++i) {
    const int64_t product =
        MultiplyBy(values[i + kDegree / 2], roots.forward[1], roots.forward_share[1]);
    values[i + kDegree / 2] = values[i] - product;
    values[i] += product;
  }
  for (int groups = 2, quarter = kDegree / 8; quarter >= 1; groups *= 4, quarter /= 4) {
    for (int group = 0; group < groups; ++group) {
      const int at = groups + group;  // of the level, and 2 at and 2 at + 1 of the one beside it
      const int64_t root = roots.forward[at], share = roots.forward_share[at];
      const int64_t root0 = roots.forward[2 * at], share0 = roots.forward_share[2 * at];
      const int64_t root1 = roots.forward[2 * at + 1], share1 = roots.forward_share[2 * at + 1];
      int64_t* x = values + 4 * group * quarter;
      for (int i = 0; i < quarter; ++i) {
        const int64_t product2 = MultiplyBy(x[i + 2 * quarter], root, share);
        const int64_t product3 = MultiplyBy(x[i + 3 * quarter], root, share);
        const int64_t product1 = MultiplyBy(x[i + quarter] + product3, root0, share0);
        const int64_t last = MultiplyBy(x[i + quarter] - product3, root1, share1);
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
  for (int i = 0; i < kDegree; ++i) values[i] = Centre(values[i]);
}

// Gentleman and Sande's butterflies, two levels at a time before the last. Sums are folded once in
// between, so that they stay below 2^48.
void InverseTransform(int64_t* values) {
  const Roots& roots = GetRoots();
  for (int groups = kDegree / 4, quarter = 1; groups >= 2; groups /= 4, quarter *= 4) {
    for (int group = 0; group < groups; ++group) {
      const int at = groups + group;  // of the level, and 2 at and 2 at + 1 of the one beside it
      const int64_t root = roots.inverse[at], share = roots.inverse_share[at];
      const int64_t root0 = roots.inverse[2 * at], share0 = roots.inverse_share[2 * at];
      const int64_t root1 = roots.inverse[2 * at + 1], share1 = roots.inverse_share[2 * at + 1];
      int64_t* x = values + 4 * group * quarter;
      for (int i = 0; i < quarter; ++i) {
        const int64_t sum0 = x[i] + x[i + quarter], sum1 = x[i + 2 * quarter] + x[i + 3 * quarter];
        const int64_t product0 = MultiplyBy(x[i] - x[i + quarter], root0, share0);
        const int64_t product1 = MultiplyBy(x[i + 2 * quarter] - x[i + 3 * quarter], root1, share1);
        x[i] = quarter == kFoldingQuarter ? Fold(sum0 + sum1) : sum0 + sum1;
        x[i + quarter] = product0 + product1;
        x[i + 2 * quarter] = MultiplyBy(sum0 - sum1, root, share);
        x[i + 3 * quarter] = MultiplyBy(product0 - product1, root, share);
      }
    }
  }
  const int64_t scale = roots.degree_inverse, scale_share = ShareOf(scale);
  const int64_t root = Centre(Multiply(roots.inverse[1], scale)), share = ShareOf(root);
  for (int i = 0; i < kDegree / 2; ++i) {
    const int64_t sum = values[i] + values[i + kDegree / 2];
    const int64_t difference = values[i] - values[i + kDegree / 2];
    values[i] = Centre(MultiplyBy(sum, scale, scale_share));
    values[i + kDegree / 2] = Centre(MultiplyBy(difference, root, share));
  }
}

void MultiplyPointwise(const int64_t* x, const int64_t* y, int64_t* product) {
  for (int i = 0; i < kDegree; ++i) product[i] = Centre(Multiply(x[i], y[i]));
}

}  // namespace privatemail::lattice
