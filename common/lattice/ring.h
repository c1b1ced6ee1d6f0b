// The ring Z_q[X] / (X^2048 + 1) of the scheme `encrypted`: its constants and plain arithmetic.
//
// Used by both sides. This folder knows no secret, uses the standard library only and draws
// nothing: callers pass random bytes and digests in. Everything here is exact integer arithmetic
// modulo q, so that every processor computes the same bits. Mathematics: client/privacy/PRIVACY.md,
// section 9.
#ifndef PRIVATEMAIL_COMMON_LATTICE_RING_H_
#define PRIVATEMAIL_COMMON_LATTICE_RING_H_

#include <cstdint>

namespace privatemail::lattice {

inline constexpr int kLogDegree = 11;
inline constexpr int kDegree = 1 << kLogDegree;  // N, and the number of rows of a block
inline constexpr int kModulusBits = 41;
// q = 2^41 - 2^12 + 1, the largest prime below 2^41 that is 1 modulo 2 N.
inline constexpr int64_t kModulus = 2'199'023'251'457;

// A polynomial is an array of kDegree integers, the coefficients in ascending order of powers. It
// is centred if each is at most (q - 1) / 2 in absolute value.

// The representative of `value` modulo q that is centred. |value| < 2^62.
int64_t Centre(int64_t value);

// Computes, in place, the values at psi^(2 r(i) + 1) for i = 0 .. kDegree - 1, where r reverses the
// kLogDegree bits of i and psi = 3^((q - 1) / (2 N)). Takes and returns centred values. The time
// does not depend on the values.
void Transform(int64_t* values);
void InverseTransform(int64_t* values);

// product[i] = x[i] y[i] modulo q, centred. `product` may be x or y.
void MultiplyPointwise(const int64_t* x, const int64_t* y, int64_t* product);

}  // namespace privatemail::lattice

#endif  // PRIVATEMAIL_COMMON_LATTICE_RING_H_
