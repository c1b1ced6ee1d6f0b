#include "client/privacy/mechanisms/cell_mechanism.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/multiprecision/cpp_dec_float.hpp>
#include <cmath>
#include <map>
#include <numeric>

#include "client/privacy/sampling/exp_interval.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail::client::cell_mechanism_test {
namespace {

// All sets of `ask` cells.
std::vector<std::vector<int64_t>> AllSets(int64_t cells, int64_t ask) {
  std::vector<std::vector<int64_t>> sets;
  for (int64_t mask = 0; mask < (int64_t{1} << cells); ++mask) {
    std::vector<int64_t> set;
    for (int64_t cell = 0; cell < cells; ++cell) {
      if ((mask >> cell) & 1) set.push_back(cell);
    }
    if (static_cast<int64_t>(set.size()) == ask) sets.push_back(set);
  }
  return sets;
}

int64_t Overlap(const std::vector<int64_t>& set, const std::vector<int64_t>& best) {
  int64_t shared = 0;
  for (const int64_t cell : set) shared += std::count(best.begin(), best.end(), cell);
  return shared;
}

// The formula of PRIVACY.md section 5 over all sets, one by one.
std::vector<double> LawOf(const CellChoice& c, const std::vector<std::vector<int64_t>>& sets,
                          const std::vector<int64_t>& best) {
  const double r =
      static_cast<double>(std::min({c.focus, c.ask, c.cells - c.focus, c.cells - c.ask}));
  std::vector<double> law;
  double total = 0;
  for (const auto& set : sets) {
    law.push_back(std::exp(c.epsilon * static_cast<double>(Overlap(set, best)) / r));
    total += law.back();
  }
  for (double& p : law) p /= total;
  return law;
}

const CellChoice kSmall[] = {{2, 1, 1, 1}, {5, 2, 1, .5}, {6, 3, 3, 2},  {7, 3, 2, .5},
                             {7, 5, 4, 3}, {8, 6, 7, 1},  {7, 1, 6, 20}, {6, 2, 3, 1e-9}};

TEST(CellMechanism, SetFrequenciesMatchFormula) {
  constexpr int kDraws = 40'000;
  for (const CellChoice& choice : kSmall) {
    SCOPED_TRACE(testing::Message() << choice.cells << " " << choice.ask << " " << choice.focus);
    ASSERT_OK_AND_ASSIGN(const CellMechanism mechanism, CellMechanism::Create(choice));
    const auto sets = AllSets(choice.cells, choice.ask);
    std::vector<int64_t> best;  // the last cells, in descending order
    for (int64_t i = 0; i < choice.focus; ++i) best.push_back(choice.cells - 1 - i);
    const std::vector<double> law = LawOf(choice, sets, best);
    SeededBits bits(7);
    std::map<std::vector<int64_t>, double> counts;
    for (int draw = 0; draw < kDraws; ++draw) {
      ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> set, mechanism.Choose(best, bits));
      ++counts[set];
    }
    // Sets that hardly ever come are counted together.
    double statistic = 0, rare_expected = 0, rare = 0;
    int cells = 0;
    for (size_t i = 0; i < sets.size(); ++i) {
      const double expected = kDraws * law[i];
      const double seen = counts[sets[i]];
      if (expected < 10) {
        rare_expected += expected;
        rare += seen;
        continue;
      }
      statistic += std::pow(seen - expected, 2) / expected;
      ++cells;
    }
    EXPECT_LE(rare, rare_expected + 8 * std::sqrt(rare_expected) + 8);
    EXPECT_EQ(counts.size(), std::min(counts.size(), sets.size())) << "another set came";
    if (cells < 2) continue;
    const boost::math::chi_squared law_of_statistic(cells - 1);
    EXPECT_LT(statistic, quantile(complement(law_of_statistic, 1e-8)));
  }
}

// By the sum over all sets, and the closed form for one cell of K.
TEST(CellMechanism, BestCellProbabilityIsThatOfAllSetsThatHoldIt) {
  for (const CellChoice& choice : kSmall) {
    ASSERT_OK_AND_ASSIGN(const CellMechanism mechanism, CellMechanism::Create(choice));
    const auto sets = AllSets(choice.cells, choice.ask);
    std::vector<int64_t> best(static_cast<size_t>(choice.focus));
    std::iota(best.begin(), best.end(), 0);
    const std::vector<double> law = LawOf(choice, sets, best);
    double expected = 0;
    for (size_t i = 0; i < sets.size(); ++i)
      expected += static_cast<double>(Overlap(sets[i], {0})) * law[i];
    EXPECT_NEAR(mechanism.BestCellProbability(), expected, 1e-12);
  }
  ASSERT_OK_AND_ASSIGN(const CellMechanism one,
                       CellMechanism::Create({.cells = 40, .ask = 1, .focus = 1, .epsilon = 2}));
  EXPECT_NEAR(one.BestCellProbability(), std::exp(2) / (std::exp(2) + 39), 1e-12);
}

TEST(CellMechanism, LargestLossIsEpsilon) {
  for (const CellChoice& choice : kSmall) {
    ASSERT_OK_AND_ASSIGN(const CellMechanism mechanism, CellMechanism::Create(choice));
    const std::vector<double> overlaps = mechanism.OverlapProbabilities();
    const auto sets = AllSets(choice.cells, choice.ask);
    std::vector<double> of_overlap(overlaps.size(), 0);  // how many sets have it
    std::vector<int64_t> best;
    for (int64_t i = 0; i < choice.focus; ++i) best.push_back(i);
    for (const auto& set : sets) ++of_overlap[static_cast<size_t>(Overlap(set, best))];
    double least = 1, most = 0;
    for (size_t j = 0; j < overlaps.size(); ++j) {
      if (of_overlap[j] == 0) {
        EXPECT_EQ(overlaps[j], 0);
        continue;
      }
      least = std::min(least, overlaps[j] / of_overlap[j]);
      most = std::max(most, overlaps[j] / of_overlap[j]);
    }
    EXPECT_NEAR(std::log(most / least), choice.epsilon, 1e-12 * (1 + choice.epsilon));
    EXPECT_EQ(mechanism.guarantee().epsilon, choice.epsilon);
    EXPECT_TRUE(mechanism.guarantee().proven);
  }
}

TEST(CellMechanism, ExtremeEpsilonAndManyCellsWork) {
  for (const double epsilon : {1e-9, 1.0, 700.0, 1e6}) {
    ASSERT_OK_AND_ASSIGN(const CellMechanism mechanism,
                         CellMechanism::Create({1000, 100, 8, epsilon}));
    SeededBits bits(3);
    const std::vector<int64_t> best = {999, 0, 5, 17, 500, 501, 502, 3};
    double hits = 0;
    for (int draw = 0; draw < 200; ++draw) {
      ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> set, mechanism.Choose(best, bits));
      ASSERT_EQ(set.size(), 100u);
      ASSERT_TRUE(std::adjacent_find(set.begin(), set.end(), std::greater_equal<>()) == set.end());
      hits += static_cast<double>(Overlap(set, best));
    }
    if (epsilon >= 700) {
      EXPECT_EQ(hits, 1600);
    } else {
      EXPECT_LT(hits, 400);  // .8 a draw without a focus
    }
  }
  EXPECT_THAT(CellMechanism::Create({65536, 655, 4, 1}).status(), IsOk());
}

TEST(CellMechanism, BadParametersAreNamed) {
  EXPECT_THAT(CellMechanism::Create({1, 1, 1, 1}), FailsWith(kInvalid, "cells"));
  EXPECT_THAT(CellMechanism::Create({65537, 1, 1, 1}), FailsWith(kInvalid, "cells"));
  EXPECT_THAT(CellMechanism::Create({5, 5, 1, 1}), FailsWith(kInvalid, "ask"));
  EXPECT_THAT(CellMechanism::Create({5, 0, 1, 1}), FailsWith(kInvalid, "ask"));
  EXPECT_THAT(CellMechanism::Create({5, 1, 5, 1}), FailsWith(kInvalid, "focus"));
  EXPECT_THAT(CellMechanism::Create({5, 1, 1, 0}), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(CellMechanism::Create({5, 1, 1, std::nan("")}), FailsWith(kInvalid, "epsilon"));
  ASSERT_OK_AND_ASSIGN(const CellMechanism mechanism, CellMechanism::Create({5, 2, 2, 1}));
  SeededBits bits(1);
  for (const std::vector<int64_t>& best :
       {std::vector<int64_t>{}, {1}, {1, 1}, {1, 5}, {-1, 2}, {0, 1, 2}}) {
    EXPECT_THAT(mechanism.Choose(best, bits), FailsWith(kInvalid, "best must be 2 different"));
  }
}

TEST(CellMechanism, FailingBitSourceReturnsItsError) {
  ASSERT_OK_AND_ASSIGN(const CellMechanism mechanism, CellMechanism::Create({5, 2, 2, 1}));
  for (const int calls : {0, 1}) {
    FailingBits bits(calls);
    EXPECT_THAT(mechanism.Choose({0, 1}, bits), FailsWith(kUnavailable, "bits"));
  }
}

// A number of 64 bits may lie on a border, and so may one of 192: 0 bits after them leave it open.
TEST(CellMechanism, UndecidedNumberDrawsMoreBits) {
  // Two cells: the border is at 1 / (1 + e^-1)'s complement.
  using Decimal = boost::multiprecision::cpp_dec_float_100;
  const Decimal border = exp(Decimal(-1)) / (1 + exp(Decimal(-1)));
  const BigInt digits(border * pow(Decimal(2), 192));
  ASSERT_OK_AND_ASSIGN(const CellMechanism mechanism, CellMechanism::Create({2, 1, 1, 1}));
  for (const auto& [open, next] : {std::pair(1, 0), {1, 255}, {3, 0}, {3, 255}}) {
    // The border's own first words, then all ones or all zeros.
    class Script final : public BitSource {
     public:
      Script(BigInt digits, int open, int next)
          : digits_(std::move(digits)), open_(open), next_(static_cast<uint8_t>(next)) {}
      absl::Status Fill(absl::Span<uint8_t> bytes) override {
        for (size_t i = 0; i < bytes.size(); ++i) {
          const BigInt shifted =
              digits_ >> (184 - 64 * std::min(calls_, 2) - 8 * static_cast<int>(i));
          bytes[i] = calls_ < open_ ? static_cast<uint8_t>(shifted & 255) : next_;
        }
        if (++calls_ > 5) return absl::InternalError("the number stays undecided");
        return absl::OkStatus();
      }
      int calls_ = 0;

     private:
      BigInt digits_;
      int open_;
      uint8_t next_;
    } bits(digits, open, next);
    ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> set, mechanism.Choose({1}, bits));
    EXPECT_EQ(set, std::vector<int64_t>{next == 0 ? 0 : 1});
    EXPECT_EQ(bits.calls_, open + 1);  // one of one needs no more
  }
}

TEST(ExpInterval, ContainsValueAndIsNarrow) {
  using Decimal = boost::multiprecision::number<boost::multiprecision::cpp_dec_float<400>>;
  for (const double x : {0.0, 0x1p-64, 1e-9, .1, .5, 1.0, 3.75, 100.0, 700.0, 1e6}) {
    for (const auto& [rank, steps] : {std::pair(0, 1), std::pair(1, 1), std::pair(2, 3)}) {
      for (const unsigned bits : {64u, 200u, 1000u}) {
        const FixedInterval found = ExpOfMinus(x, rank, steps, bits);
        const Decimal exact = exp(-Decimal(x) * rank / steps) * pow(Decimal(2), bits);
        EXPECT_LE(Decimal(found.low), exact) << x;
        EXPECT_GE(Decimal(found.high), exact) << x;
        // A unit or two a term, and twice that for every halving.
        EXPECT_LE(found.high - found.low, BigInt(600) * static_cast<int64_t>(x + 2)) << x;
      }
    }
  }
}

// f e^epsilon / (1 + f (e^epsilon - 1)).
TEST(CellCeiling, IsTheShareWithoutPrivacyLossAndOneWithAll) {
  EXPECT_NEAR(CellCeiling(0, .1), .1, 1e-16);
  EXPECT_NEAR(CellCeiling(std::log(9), .1), .5, 1e-15);
  EXPECT_EQ(CellCeiling(800, .1), 1);
}

}  // namespace
}  // namespace privatemail::client::cell_mechanism_test
