#include "common/lattice/ring.h"

#include "common/lattice/modular.h"

namespace privatemail::lattice {
namespace {

constexpr int64_t kGenerator = 3;  // psi = kGenerator^((q - 1) / (2 N)) has psi^N = -1

Roots ComputeRoots() {
  const int64_t psi = PowerModulo(kGenerator, (kModulus - 1) / (2 * kDegree));
  const int64_t psi_inverse = PowerModulo(psi, kModulus - 2);
  Roots roots;
  int64_t forward = 1, inverse = 1;
  for (int power = 0; power < kDegree; ++power) {
    const int i = ReverseBits(power);
    roots.forward[i] = Centre(forward);
    roots.inverse[i] = Centre(inverse);
    roots.forward_share[i] = static_cast<double>(roots.forward[i]) / kModulus;
    roots.inverse_share[i] = static_cast<double>(roots.inverse[i]) / kModulus;
    forward = MultiplyModulo(forward, psi);
    inverse = MultiplyModulo(inverse, psi_inverse);
  }
  roots.degree_inverse = Centre(PowerModulo(kDegree, kModulus - 2));
  return roots;
}

}  // namespace

const Roots& GetRoots() {
  static const Roots roots = ComputeRoots();
  return roots;
}

int64_t Centre(int64_t value) { return CentreOnce(value % kModulus); }

// Cooley and Tukey's butterflies. Sums are not reduced: each of the 11 levels adds less than 2 q.
void Transform(int64_t* values) {
  const Roots& roots = GetRoots();
  for (int groups = 1, half = kDegree / 2; groups < kDegree; groups *= 2, half /= 2) {
    for (int group = 0; group < groups; ++group) {
      const int64_t root = roots.forward[groups + group];
      const double share = roots.forward_share[groups + group];
      int64_t* low = values + 2 * group * half;
      int64_t* high = low + half;
      for (int i = 0; i < half; ++i) {
        const int64_t product = MultiplyBy(high[i], root, share);
        high[i] = low[i] - product;
        low[i] += product;
      }
    }
  }
  for (int i = 0; i < kDegree; ++i) values[i] = Centre(values[i]);
}

// Gentleman and Sande's butterflies. Sums are not reduced: they stay below 2^53.
void InverseTransform(int64_t* values) {
  const Roots& roots = GetRoots();
  for (int groups = kDegree / 2, half = 1; groups >= 1; groups /= 2, half *= 2) {
    for (int group = 0; group < groups; ++group) {
      const int64_t root = roots.inverse[groups + group];
      const double share = roots.inverse_share[groups + group];
      int64_t* low = values + 2 * group * half;
      int64_t* high = low + half;
      for (int i = 0; i < half; ++i) {
        const int64_t difference = low[i] - high[i];
        low[i] += high[i];
        high[i] = MultiplyBy(difference, root, share);
      }
    }
  }
  for (int i = 0; i < kDegree; ++i) values[i] = Centre(Multiply(values[i], roots.degree_inverse));
}

void MultiplyPointwise(const int64_t* x, const int64_t* y, int64_t* product) {
  for (int i = 0; i < kDegree; ++i) product[i] = Centre(Multiply(x[i], y[i]));
}

}  // namespace privatemail::lattice
