// Exact samplers over the integers: the only place where the project draws noise.
//
// Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", 2020, algorithms 1 to
// 3, over fixed-width integers: every decision compares integers, none passes through floating
// point, so the law of what comes out is the law that is claimed, to the last bit.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_EXACT_SAMPLING_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_EXACT_SAMPLING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/privacy/bit_source.h"

namespace privatemail {

// Largest standard deviation that SampleDiscreteGaussian accepts: 2 stddev^2 must fit 64 bits.
inline constexpr uint64_t kMaxDiscreteStddev = 3037000499;

// `count` independent draws from the discrete Gaussian: Pr[x] proportional to exp(-x^2 / (2
// stddev^2)) over all integers. stddev: 1 .. kMaxDiscreteStddev. Expected cost about a dozen 64-bit
// words a draw. INVALID_ARGUMENT: stddev out of range. Otherwise the error of `bits`. Bits are read
// in blocks that live no longer than the call, so nothing survives a fork.
absl::StatusOr<std::vector<int64_t>> SampleDiscreteGaussian(size_t count, uint64_t stddev,
                                                            BitSource& bits);

// One exactly uniform integer in [0, bound) for each bound. bounds: all >= 1, else
// INVALID_ARGUMENT.
absl::StatusOr<std::vector<uint64_t>> SampleUniform(const std::vector<uint64_t>& bounds,
                                                    BitSource& bits);

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_EXACT_SAMPLING_H_
