#include "client/privacy/sampling/exact_sampling.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

__extension__ typedef unsigned __int128 uint128;

// Thrown when a source fails inside a rejection loop: no loop continues with a word that was never
// drawn. The public functions convert it to a status.
struct BitSourceError : std::exception {
  explicit BitSourceError(absl::Status why) : status(std::move(why)) {}
  absl::Status status;
};

// 64-bit words from a source for so many draws, read in blocks. Local to one call and wiped at its
// end.
class WordStream {
 public:
  WordStream(size_t draws, BitSource& bits)
      : bits_(bits), block_words_(std::min(draws * kWordsPerDraw, block_.size())) {}
  WordStream(const WordStream&) = delete;
  WordStream& operator=(const WordStream&) = delete;
  ~WordStream() { OPENSSL_cleanse(block_.data(), BlockBytes()); }

  uint64_t Next() {
    if (used_ == block_words_) {
      const absl::Status status =
          bits_.Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(block_.data()), BlockBytes()));
      if (!status.ok()) throw BitSourceError(status);
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
  // About what a discrete Gaussian takes.
  static constexpr size_t kWordsPerDraw = 32;

  size_t BlockBytes() const { return block_words_ * sizeof(uint64_t); }

  BitSource& bits_;
  std::array<uint64_t, 256> block_;
  const size_t block_words_;
  size_t used_ = block_words_;
  uint64_t spare_bits_ = 0;
  int bits_left_ = 0;
};

// True with probability exactly numerator / denominator; numerator <= denominator, denominator
// >= 1. Compares a uniform real U, drawn 64 bits at a time, with the quotient: after a word u, U
// is in [u, u + 1) / 2^64, which almost always decides; if not, the next word is compared with the
// remainder.
bool Bernoulli(uint64_t numerator, uint64_t denominator, WordStream& words) {
  while (true) {
    const uint128 product = static_cast<uint128>(words.Next()) * denominator;
    const uint128 threshold = static_cast<uint128>(numerator) << 64;
    if (product >= threshold) return false;
    if (threshold - product >= denominator) return true;
    numerator = static_cast<uint64_t>(threshold - product);
  }
}

// Exactly uniform in [0, bound), by rejection: masking the bits above the highest set bit of
// bound - 1 accepts more than half of the words.
uint64_t UniformBelow(uint64_t bound, WordStream& words) {
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
bool BernoulliExpFraction(uint64_t numerator, uint64_t denominator, WordStream& words) {
  uint64_t k = 1;
  while (Bernoulli(numerator, denominator, words) && (k == 1 || Bernoulli(1, k, words))) ++k;
  return k % 2 == 1;
}

// True with probability exactly exp(-numerator / denominator) for any quotient: exp(-1) for every
// whole unit, then the fraction.
bool BernoulliExp(uint128 numerator, uint64_t denominator, WordStream& words) {
  while (numerator >= denominator) {
    if (!BernoulliExpFraction(1, 1, words)) return false;
    numerator -= denominator;
  }
  return BernoulliExpFraction(static_cast<uint64_t>(numerator), denominator, words);
}

// Pr[x] proportional to exp(-|x| / scale) over the integers (algorithm 2). The magnitude exceeds 62
// bits with probability below exp(-2^20), since scale has at most 43.
int64_t DiscreteLaplace(uint64_t scale, WordStream& words) {
  while (true) {
    const uint64_t remainder = UniformBelow(scale, words);
    if (!BernoulliExpFraction(remainder, scale, words)) continue;
    uint64_t whole = 0;
    while (BernoulliExpFraction(1, 1, words)) ++whole;
    const auto magnitude = static_cast<int64_t>(remainder + scale * whole);
    const bool negative = words.NextBit();
    if (negative && magnitude == 0) continue;  // else zero would count twice
    return negative ? -magnitude : magnitude;
  }
}

// True with probability exactly exp(-distance^2 / (2 stddev^2)).
bool BernoulliGaussian(uint64_t distance, uint64_t stddev, WordStream& words) {
  return BernoulliExp(static_cast<uint128>(distance) * distance, 2 * stddev * stddev, words);
}

// Algorithm 3 with the Laplace scale t = stddev: accept with probability exp(-(|y| - stddev)^2 / (2
// stddev^2)).
int64_t DiscreteGaussian(uint64_t stddev, WordStream& words) {
  while (true) {
    const int64_t y = DiscreteLaplace(stddev, words);
    const auto magnitude = static_cast<uint64_t>(std::abs(y));
    const uint64_t distance = magnitude > stddev ? magnitude - stddev : stddev - magnitude;
    if (BernoulliGaussian(distance, stddev, words)) return y;
  }
}

// Rejection sampling. Proposals are uniform over a box of up to four standard deviations, else from
// the Gaussian around the centre, half of which is on the side where the box reaches two or more.
int64_t TruncatedGaussian(const TruncatedCentre& c, uint64_t stddev, WordStream& words) {
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

// `count` values of `draw`, or the error of the source.
template <typename Draw>
auto DrawMany(size_t count, BitSource& bits, const Draw& draw)
    -> absl::StatusOr<std::vector<decltype(draw(size_t{}, std::declval<WordStream&>()))>> {
  std::vector<decltype(draw(size_t{}, std::declval<WordStream&>()))> draws(count);
  WordStream words(count, bits);
  try {
    for (size_t i = 0; i < count; ++i) draws[i] = draw(i, words);
  } catch (const BitSourceError& failure) {
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

absl::Status SecureBits::Fill(absl::Span<uint8_t> bytes) {
  // Unlike RAND_priv_bytes, it takes a size_t: no narrowing.
  if (RAND_priv_bytes_ex(nullptr, bytes.data(), bytes.size(), /*strength=*/0) != 1) {
    char reason[256];
    ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
    return absl::UnavailableError(absl::StrCat("no secure random bits: ", reason));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> SampleDiscreteGaussian(size_t count, uint64_t stddev,
                                                            BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckScale("stddev of the discrete Gaussian", stddev, kMaxDiscreteStddev));
  return DrawMany(count, bits,
                  [stddev](size_t, WordStream& words) { return DiscreteGaussian(stddev, words); });
}

absl::StatusOr<std::vector<int64_t>> SampleDiscreteLaplace(size_t count, uint64_t scale,
                                                           BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckScale("scale of the discrete Laplace", scale, kMaxDiscreteScale));
  return DrawMany(count, bits,
                  [scale](size_t, WordStream& words) { return DiscreteLaplace(scale, words); });
}

absl::StatusOr<std::vector<int64_t>> SampleTruncatedGaussian(
    const std::vector<TruncatedCentre>& centres, uint64_t stddev, BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckScale("stddev of the truncated Gaussian", stddev, kMaxDiscreteStddev));
  constexpr int64_t kMaxBound = int64_t{1} << 62;
  for (const TruncatedCentre& c : centres) {
    if (c.low < -kMaxBound || c.high > kMaxBound || c.low > c.centre || c.centre > c.high) {
      return absl::InvalidArgumentError(
          absl::StrCat("centre of a truncated Gaussian must lie between its bounds and these "
                       "within 2^62, but is ",
                       c.centre, " in [", c.low, ", ", c.high, "]"));
    }
  }
  return DrawMany(centres.size(), bits, [&centres, stddev](size_t i, WordStream& words) {
    return TruncatedGaussian(centres[i], stddev, words);
  });
}

absl::StatusOr<std::vector<uint64_t>> SampleUniform(const std::vector<uint64_t>& bounds,
                                                    BitSource& bits) {
  for (const uint64_t bound : bounds) {
    if (bound < 1)
      return absl::InvalidArgumentError("bound of a uniform draw must be at least 1, but is 0");
  }
  return DrawMany(bounds.size(), bits, [&bounds](size_t i, WordStream& words) {
    return UniformBelow(bounds[i], words);
  });
}

}  // namespace privatemail::client
