// Exponentials as closely as one likes, in integers. Not installed.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_EXP_INTERVAL_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_EXP_INTERVAL_H_

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>

namespace privatemail::client {

using BigInt = boost::multiprecision::cpp_int;

// A real number lies between low 2^-bits and high 2^-bits, for a number of bits that both sides
// know.
struct FixedInterval {
  BigInt low;
  BigInt high;
};

// Proven: an interval around exp(-x rank / steps). x: finite, not negative, taken as the rational
// number that it is; rank >= 0; steps >= 1; bits: 1 to 2^20. Nothing passes through floating point,
// and no step rounds but outwards.
//
// y = x rank / steps is halved h times until it is at most 1/2. The terms y^k / k! of exp(-y) then
// fall and alternate in sign, so that a partial sum is off by at most the last term taken. Squaring
// h times undoes the halving.
FixedInterval ExpOfMinus(double x, int64_t rank, int64_t steps, unsigned bits);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_EXP_INTERVAL_H_
