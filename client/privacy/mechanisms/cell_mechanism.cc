#include "client/privacy/mechanisms/cell_mechanism.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/guarantee_fields.h"
#include "client/privacy/sampling/exact_sampling.h"
#include "client/privacy/sampling/exp_interval.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {
namespace {

constexpr int64_t kMaxCells = 65536;
constexpr unsigned kWordBits = 64;

BigInt Binomial(int64_t n, int64_t k) {
  BigInt value = 1;
  k = std::min(k, n - k);
  for (int64_t i = 1; i <= k; ++i) value = value * (n - k + i) / i;
  return value;
}

// The first bits of a uniform number in [0, 1): between word 2^-bits and (word + 1) 2^-bits.
struct UniformPrefix {
  BigInt word = 0;
  unsigned bits = 0;

  absl::Status DrawMore(BitSource& source) {
    uint8_t bytes[kWordBits / 8];
    PM_RETURN_IF_ERROR(source.Fill(absl::MakeSpan(bytes)));
    for (const uint8_t byte : bytes) word = (word << 8) + byte;
    bits += kWordBits;
    return absl::OkStatus();
  }
};

// Appends a uniform sample without replacement; numbers: uniform in [0, n), [0, n - 1), ...
void AppendSample(const uint64_t* numbers, int64_t count, std::vector<int64_t> values,
                  std::vector<int64_t>* sample) {
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i) + numbers[i];
    std::swap(values[static_cast<size_t>(i)], values[at]);
    sample->push_back(values[static_cast<size_t>(i)]);
  }
}

void AppendBounds(int64_t size, int64_t count, std::vector<uint64_t>* bounds) {
  for (int64_t i = 0; i < count; ++i) bounds->push_back(static_cast<uint64_t>(size - i));
}

}  // namespace

struct CellMechanism::Law {
  CellChoice choice;
  Guarantee guarantee;
  int64_t least = 0;                     // smallest |S and T|
  int64_t range = 0;                     // r
  std::vector<BigInt> sets;              // number of S with |S and T| = least, least + 1, ...
  std::vector<FixedInterval> cumulated;  // cumulative weights, at BitsFor(kWordBits)

  // Precision for a uniform number of `drawn` bits; the number of sets adds its own length.
  unsigned BitsFor(unsigned drawn) const {
    const BigInt most = *std::max_element(sets.begin(), sets.end());
    return drawn + kWordBits + static_cast<unsigned>(boost::multiprecision::msb(most));
  }

  std::vector<FixedInterval> Cumulated(unsigned bits) const {
    std::vector<FixedInterval> sums;
    FixedInterval sum{0, 0};
    for (int64_t i = 0; i <= range; ++i) {
      const BigInt& count = sets[static_cast<size_t>(i)];
      // Relative to the weight of the largest overlap.
      const FixedInterval weight = ExpOfMinus(choice.epsilon, range - i, range, bits);
      sum = {sum.low + count * weight.low, sum.high + count * weight.high};
      sums.push_back(sum);
    }
    return sums;
  }

  // The overlap that the number selects; none: more bits are needed.
  std::optional<int64_t> Find(const UniformPrefix& u,
                              const std::vector<FixedInterval>& sums) const {
    const FixedInterval& total = sums.back();
    for (size_t i = 0; i + 1 < sums.size(); ++i) {
      if ((u.word + 1) * total.high <= sums[i].low << u.bits) return static_cast<int64_t>(i);
      if (u.word * total.low < sums[i].high << u.bits) return std::nullopt;
    }
    return range;
  }
};

absl::StatusOr<CellMechanism> CellMechanism::Create(const CellChoice& choice) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("cells", choice.cells, 2, kMaxCells));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("ask", choice.ask, 1, choice.cells - 1));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("focus", choice.focus, 1, choice.cells - 1));
  PM_RETURN_IF_ERROR(CheckEpsilon(choice.epsilon));
  auto law = std::make_shared<Law>();
  law->choice = choice;
  const auto [k, w, t, epsilon] = choice;
  law->guarantee = {.epsilon = epsilon,
                    .neighbours = kAnyTargetNeighbours,
                    .proven = true,
                    .source =
                        "cells: choice of a set by its overlap with the best cells "
                        "(PRIVACY.md section 5), sampled exactly"};
  law->least = std::max<int64_t>(0, w + t - k);
  law->range = std::min({t, w, k - t, k - w});
  // C(t, o) C(k - t, w - o) for each overlap o, from the one before: the division is exact.
  law->sets.push_back(Binomial(t, law->least) * Binomial(k - t, w - law->least));
  for (int64_t o = law->least; o < law->least + law->range; ++o) {
    law->sets.push_back(law->sets.back() * ((t - o) * (w - o)) / ((o + 1) * (k - t - w + o + 1)));
  }
  law->cumulated = law->Cumulated(law->BitsFor(kWordBits));
  return CellMechanism(std::move(law));
}

const CellChoice& CellMechanism::choice() const { return law_->choice; }

const Guarantee& CellMechanism::guarantee() const { return law_->guarantee; }

std::vector<double> CellMechanism::OverlapProbabilities() const {
  std::vector<double> probabilities(static_cast<size_t>(law_->choice.focus) + 1, 0);
  const BigInt& total = law_->cumulated.back().low;
  BigInt before = 0;
  for (size_t i = 0; i < law_->cumulated.size(); ++i) {
    const BigInt& sum = law_->cumulated[i].low;
    const boost::multiprecision::cpp_rational share(sum - before, total);
    probabilities[static_cast<size_t>(law_->least) + i] = share.convert_to<double>();
    before = sum;
  }
  return probabilities;
}

absl::StatusOr<std::vector<int64_t>> CellMechanism::Choose(const std::vector<int64_t>& best,
                                                           BitSource& bits) const {
  const CellChoice& choice = law_->choice;
  std::vector<int64_t> sorted = best;
  std::ranges::sort(sorted);
  if (std::ssize(sorted) != choice.focus || sorted.front() < 0 || sorted.back() >= choice.cells ||
      std::ranges::adjacent_find(sorted) != sorted.end()) {
    return InvalidField("best", absl::StrCat("must be ", choice.focus, " different cells of ",
                                             choice.cells, ", but is not"));
  }
  UniformPrefix u;
  PM_RETURN_IF_ERROR(u.DrawMore(bits));
  std::optional<int64_t> found = law_->Find(u, law_->cumulated);
  while (!found.has_value()) {
    PM_RETURN_IF_ERROR(u.DrawMore(bits));
    found = law_->Find(u, law_->Cumulated(law_->BitsFor(u.bits)));
  }
  const int64_t overlap = law_->least + *found;

  std::vector<int64_t> others;
  for (int64_t cell = 0; cell < choice.cells; ++cell) {
    if (!std::ranges::binary_search(sorted, cell)) others.push_back(cell);
  }
  std::vector<uint64_t> bounds;
  AppendBounds(choice.focus, overlap, &bounds);
  AppendBounds(choice.cells - choice.focus, choice.ask - overlap, &bounds);
  PM_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, SampleUniform(bounds, bits));
  std::vector<int64_t> chosen;
  AppendSample(numbers.data(), overlap, best, &chosen);
  AppendSample(numbers.data() + overlap, choice.ask - overlap, std::move(others), &chosen);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

double CellMechanism::BestCellProbability() const {
  const std::vector<double> overlaps = OverlapProbabilities();
  double expected = 0;
  for (size_t j = 0; j < overlaps.size(); ++j) expected += static_cast<double>(j) * overlaps[j];
  return expected / static_cast<double>(choice().focus);
}

double CellCeiling(double epsilon, double share) {
  // Numerator and denominator divided by e^epsilon, which may overflow.
  return share / (share + (1 - share) * std::exp(-epsilon));
}

}  // namespace privatemail::client
