// Exact samplers over the integers: the only place where the project draws noise.
//
// Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", 2020, algorithms 1 to
// 3, over fixed-width integers: every decision compares integers, none passes through floating
// point, so the law of what comes out is the law that is claimed, to the last bit.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_EXACT_SAMPLING_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_EXACT_SAMPLING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "privatemail/bit_source.h"

namespace privatemail::client {

// Largest standard deviation of a discrete Gaussian: 2 stddev^2 must fit 64 bits.
inline constexpr uint64_t kMaxDiscreteStddev = 3037000499;
// Largest scale of a discrete Laplace: a magnitude of 63 bits then has probability below e^-2^21.
inline constexpr uint64_t kMaxDiscreteScale = uint64_t{1} << 42;

// `count` independent draws from the discrete Gaussian: Pr[x] proportional to exp(-x^2 / (2
// stddev^2)) over all integers. stddev: 1 .. kMaxDiscreteStddev. Expected cost about eighteen
// 64-bit words a draw, a Laplace a dozen; it grows with the magnitude drawn, and so does the time.
// INVALID_ARGUMENT: stddev out of range. Otherwise the error of `bits`. Bits are read
// in blocks that live no longer than the call, so nothing survives a fork.
absl::StatusOr<std::vector<int64_t>> SampleDiscreteGaussian(size_t count, uint64_t stddev,
                                                            BitSource& bits);

// `count` independent draws from the discrete Laplace: Pr[x] proportional to exp(-|x| / scale) over
// all integers. scale: 1 .. kMaxDiscreteScale. Errors as above.
absl::StatusOr<std::vector<int64_t>> SampleDiscreteLaplace(size_t count, uint64_t scale,
                                                           BitSource& bits);

// Where a truncated draw may fall and where it is heaviest, in grid steps.
struct TruncatedCentre {
  int64_t low = 0;
  int64_t high = 0;
  int64_t centre = 0;
};

// One draw for each centre from the discrete Gaussian around it, given that it falls between low
// and high: Pr[x] proportional to exp(-(x - centre)^2 / (2 stddev^2)) over low .. high. At least
// every fifth proposal is accepted on average, whatever the centre; how many proposals a draw takes
// does depend on it. INVALID_ARGUMENT: stddev out of range, low <= centre <= high violated, or a
// bound beyond 2^62. Otherwise the error of `bits`.
absl::StatusOr<std::vector<int64_t>> SampleTruncatedGaussian(
    const std::vector<TruncatedCentre>& centres, uint64_t stddev, BitSource& bits);

// One exactly uniform integer in [0, bound) for each bound. bounds: all >= 1, else
// INVALID_ARGUMENT.
absl::StatusOr<std::vector<uint64_t>> SampleUniform(const std::vector<uint64_t>& bounds,
                                                    BitSource& bits);

// The exponential mechanism: an index, Pr[i] proportional to exp(-losses[i] / scale). Proposes
// uniformly and accepts with that probability over the likeliest's, so it takes no more proposals
// on average than there are losses; how many does depend on them. losses: 1 to 2^32 of them; scale:
// 1 .. kMaxDiscreteScale, else INVALID_ARGUMENT. Otherwise the error of `bits`.
absl::StatusOr<int64_t> SampleExponentialMechanism(const std::vector<uint64_t>& losses,
                                                   uint64_t scale, BitSource& bits);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_EXACT_SAMPLING_H_
