#include "client/privacy/sampling/exact_sampling.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

__extension__ typedef unsigned __int128 uint128;

// A source that fails in the middle of a rejection loop ends the whole call. It unwinds by
// exception so that no loop can go on with a word that was never drawn; the public functions turn
// it into a status.
struct OutOfBits : std::exception {
  explicit OutOfBits(absl::Status why) : status(std::move(why)) {}
  absl::Status status;
};

// 64-bit words out of a source, in blocks. Lives on the stack of one call and is wiped after it.
class Words {
 public:
  explicit Words(BitSource& bits) : bits_(bits) {}
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  ~Words() { OPENSSL_cleanse(block_.data(), sizeof(block_)); }

  uint64_t Next() {
    if (used_ == block_.size()) {
      const absl::Status status =
          bits_.Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(block_.data()), sizeof(block_)));
      if (!status.ok()) throw OutOfBits(status);
      used_ = 0;
    }
    return block_[used_++];
  }

  bool NextBit() {
    if (bits_left_ == 0) {
      spare_bits_ = Next();
      bits_left_ = 64;
    }
    return (spare_bits_ >> --bits_left_) & 1;
  }

 private:
  BitSource& bits_;
  std::array<uint64_t, 256> block_;
  size_t used_ = 256;
  uint64_t spare_bits_ = 0;
  int bits_left_ = 0;
};

// True with probability exactly numerator / denominator; numerator <= denominator, denominator
// >= 1. Compares a uniform real U, drawn 64 bits at a time, with the quotient: after a word u, U
// lies in [u, u + 1) / 2^64, which almost always decides; if not, the digits that follow face what
// is left.
bool Bernoulli(uint64_t numerator, uint64_t denominator, Words& words) {
  while (true) {
    const uint128 product = static_cast<uint128>(words.Next()) * denominator;
    const uint128 threshold = static_cast<uint128>(numerator) << 64;
    if (product >= threshold) return false;
    if (threshold - product >= denominator) return true;
    numerator = static_cast<uint64_t>(threshold - product);
  }
}

// Exactly uniform in [0, bound): the bits above the highest set bit of bound - 1 are masked away,
// which leaves each try a chance of more than one half.
uint64_t UniformBelow(uint64_t bound, Words& words) {
  if (bound == 1) return 0;
  const uint64_t mask = ~uint64_t{0} >> __builtin_clzll(bound - 1);
  while (true) {
    const uint64_t value = words.Next() & mask;
    if (value < bound) return value;
  }
}

// True with probability exactly exp(-numerator / denominator) for a quotient of at most 1
// (algorithm 1): the first k with a failed Bernoulli(quotient / k) is odd with that probability.
// Bernoulli(quotient / k) is two draws, so that no product of denominators can overflow.
bool BernoulliExpFraction(uint64_t numerator, uint64_t denominator, Words& words) {
  uint64_t k = 1;
  while (Bernoulli(numerator, denominator, words) && (k == 1 || Bernoulli(1, k, words))) ++k;
  return k % 2 == 1;
}

// The same for any quotient: exp(-1) once for every whole unit, then the fraction.
bool BernoulliExp(uint128 numerator, uint64_t denominator, Words& words) {
  while (numerator >= denominator) {
    if (!BernoulliExpFraction(1, 1, words)) return false;
    numerator -= denominator;
  }
  return BernoulliExpFraction(static_cast<uint64_t>(numerator), denominator, words);
}

struct SignedMagnitude {
  uint64_t magnitude;
  bool negative;
};

// Pr[x] proportional to exp(-|x| / scale) over the integers (algorithm 2). The magnitude exceeds 62
// bits with probability below exp(-2^20), since scale has at most 43.
SignedMagnitude DiscreteLaplace(uint64_t scale, Words& words) {
  while (true) {
    const uint64_t remainder = UniformBelow(scale, words);
    if (!BernoulliExpFraction(remainder, scale, words)) continue;
    uint64_t whole = 0;
    while (BernoulliExpFraction(1, 1, words)) ++whole;
    const uint64_t magnitude = remainder + scale * whole;
    const bool negative = words.NextBit();
    if (negative && magnitude == 0) continue;  // zero would count twice
    return {magnitude, negative};
  }
}

// True with probability exactly exp(-distance^2 / (2 stddev^2)).
bool BernoulliGaussian(uint64_t distance, uint64_t stddev, Words& words) {
  return BernoulliExp(static_cast<uint128>(distance) * distance, 2 * stddev * stddev, words);
}

// Algorithm 3 with the Laplace scale t = stddev: accept with probability exp(-(|y| - stddev)^2 / (2
// stddev^2)).
int64_t DiscreteGaussian(uint64_t stddev, Words& words) {
  while (true) {
    const SignedMagnitude y = DiscreteLaplace(stddev, words);
    const uint64_t distance = y.magnitude > stddev ? y.magnitude - stddev : stddev - y.magnitude;
    if (BernoulliGaussian(distance, stddev, words)) {
      const auto value = static_cast<int64_t>(y.magnitude);
      return y.negative ? -value : value;
    }
  }
}

// A box of up to four deviations is proposed from uniformly, else from the Gaussian around the
// centre, half of which falls to the side on which the box reaches two deviations or more.
int64_t TruncatedGaussian(const TruncatedCentre& c, uint64_t stddev, Words& words) {
  const uint64_t width = static_cast<uint64_t>(c.high) - static_cast<uint64_t>(c.low);
  while (true) {
    if (width <= 4 * stddev) {
      const auto x =
          static_cast<int64_t>(static_cast<uint64_t>(c.low) + UniformBelow(width + 1, words));
      const uint64_t distance =
          x > c.centre ? static_cast<uint64_t>(x - c.centre) : static_cast<uint64_t>(c.centre - x);
      if (BernoulliGaussian(distance, stddev, words)) return x;
    } else {
      const int64_t x = c.centre + DiscreteGaussian(stddev, words);
      if (c.low <= x && x <= c.high) return x;
    }
  }
}

// `count` values of `draw`, or why the bits ran out.
template <typename Draw>
auto Repeat(size_t count, BitSource& bits, const Draw& draw)
    -> absl::StatusOr<std::vector<decltype(draw(size_t{}, std::declval<Words&>()))>> {
  std::vector<decltype(draw(size_t{}, std::declval<Words&>()))> draws(count);
  Words words(bits);
  try {
    for (size_t i = 0; i < count; ++i) draws[i] = draw(i, words);
  } catch (const OutOfBits& failure) {
    return failure.status;
  }
  return draws;
}

absl::Status CheckScale(const char* what, uint64_t scale, uint64_t largest) {
  if (scale >= 1 && scale <= largest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " must be between 1 and ", largest, ", but is ", scale));
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> SampleDiscreteGaussian(size_t count, uint64_t stddev,
                                                            BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckScale("stddev of the discrete Gaussian", stddev, kMaxDiscreteStddev));
  return Repeat(count, bits,
                [stddev](size_t, Words& words) { return DiscreteGaussian(stddev, words); });
}

absl::StatusOr<std::vector<int64_t>> SampleDiscreteLaplace(size_t count, uint64_t scale,
                                                           BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckScale("scale of the discrete Laplace", scale, kMaxDiscreteScale));
  return Repeat(count, bits, [scale](size_t, Words& words) {
    const SignedMagnitude draw = DiscreteLaplace(scale, words);
    const auto magnitude = static_cast<int64_t>(draw.magnitude);
    return draw.negative ? -magnitude : magnitude;
  });
}

absl::StatusOr<std::vector<int64_t>> SampleTruncatedGaussian(
    const std::vector<TruncatedCentre>& centres, uint64_t stddev, BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckScale("stddev of the truncated Gaussian", stddev, kMaxDiscreteStddev));
  constexpr int64_t kFarthest = int64_t{1} << 62;
  for (const TruncatedCentre& c : centres) {
    if (c.low < -kFarthest || c.high > kFarthest || c.low > c.centre || c.centre > c.high) {
      return absl::InvalidArgumentError(
          absl::StrCat("centre of a truncated Gaussian must lie between its bounds and these "
                       "within 2^62, but is ",
                       c.centre, " in [", c.low, ", ", c.high, "]"));
    }
  }
  return Repeat(centres.size(), bits, [&centres, stddev](size_t i, Words& words) {
    return TruncatedGaussian(centres[i], stddev, words);
  });
}

absl::StatusOr<std::vector<uint64_t>> SampleUniform(const std::vector<uint64_t>& bounds,
                                                    BitSource& bits) {
  for (const uint64_t bound : bounds) {
    if (bound < 1)
      return absl::InvalidArgumentError("bound of a uniform draw must be at least 1, but is 0");
  }
  return Repeat(bounds.size(), bits,
                [&bounds](size_t i, Words& words) { return UniformBelow(bounds[i], words); });
}

absl::StatusOr<int64_t> SampleExponentialMechanism(const std::vector<uint64_t>& losses,
                                                   uint64_t scale, BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckScale("scale of the exponential mechanism", scale, kMaxDiscreteScale));
  PM_RETURN_IF_ERROR(CheckScale("number of losses", losses.size(), uint64_t{1} << 32));
  const uint64_t least = *std::min_element(losses.begin(), losses.end());
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> draws, Repeat(1, bits, [&](size_t, Words& words) {
                        while (true) {
                          const uint64_t i = UniformBelow(losses.size(), words);
                          if (BernoulliExp(losses[i] - least, scale, words)) {
                            return static_cast<int64_t>(i);
                          }
                        }
                      }));
  return draws.front();
}

}  // namespace privatemail::client
