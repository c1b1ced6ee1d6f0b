// Exact samplers over the integers: the project's only source of noise.
//
// Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", 2020, algorithms 1 to
// 3, over fixed-width integers: every decision compares integers, none passes through floating
// point, so the distribution of the output is exactly the claimed one.
//
// Errors of all samplers: INVALID_ARGUMENT for an argument out of range, else the error of `bits`.
// Bits are read in blocks that do not outlive the call, so a fork shares none.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_EXACT_SAMPLING_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_EXACT_SAMPLING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/privacy/sampling/bit_source.h"

namespace privatemail::client {

// Largest standard deviation of a discrete Gaussian: 2 stddev^2 must fit 64 bits.
inline constexpr uint64_t kMaxDiscreteStddev = 3037000499;
// Largest scale of a discrete Laplace: a magnitude of 63 bits then has probability below e^-2^21.
inline constexpr uint64_t kMaxDiscreteScale = uint64_t{1} << 42;

// `count` independent draws from the discrete Gaussian: Pr[x] proportional to
// exp(-x^2 / (2 stddev^2)) over all integers. stddev: 1 .. kMaxDiscreteStddev. Expected cost: about
// 18 64-bit words a draw; bits and time grow with the magnitude drawn.
absl::StatusOr<std::vector<int64_t>> SampleDiscreteGaussian(size_t count, uint64_t stddev,
                                                            BitSource& bits);

// `count` independent draws from the discrete Laplace: Pr[x] proportional to exp(-|x| / scale) over
// all integers. scale: 1 .. kMaxDiscreteScale. Expected cost: about 12 64-bit words a draw.
absl::StatusOr<std::vector<int64_t>> SampleDiscreteLaplace(size_t count, uint64_t scale,
                                                           BitSource& bits);

// Range and mode of a truncated draw, in grid steps.
struct TruncatedCentre {
  int64_t low = 0;
  int64_t high = 0;
  int64_t centre = 0;
};

// One draw for each centre from the discrete Gaussian around it, conditioned on [low, high]: Pr[x]
// proportional to exp(-(x - centre)^2 / (2 stddev^2)) over low .. high. At least one proposal in
// five is accepted on average; the number of proposals depends on the centre. INVALID_ARGUMENT also
// if low <= centre <= high does not hold, or a bound is beyond 2^62.
absl::StatusOr<std::vector<int64_t>> SampleTruncatedGaussian(
    const std::vector<TruncatedCentre>& centres, uint64_t stddev, BitSource& bits);

// One exactly uniform integer in [0, bound) for each bound >= 1.
absl::StatusOr<std::vector<uint64_t>> SampleUniform(const std::vector<uint64_t>& bounds,
                                                    BitSource& bits);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_EXACT_SAMPLING_H_
