#include "client/evaluation/cell_law.h"

#include <bit>
#include <cmath>
#include <numeric>

#include "client/seeded_bits/seeded_bits.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

// By counting: the share of all sets of `ask` cells that have one of `ranks`, each set weighted by
// exp(epsilon |S and T| / r), T being the first `focus` ranks.
double CountedAnyAsked(const CellChoice& choice, const std::vector<int64_t>& ranks) {
  const auto [k, w, t, epsilon] = choice;
  const auto r = static_cast<double>(std::min({t, w, k - t, k - w}));
  unsigned wanted = 0;
  for (const int64_t rank : ranks) wanted |= 1U << rank;
  double all = 0, with = 0;
  for (unsigned set = 0; set < 1U << k; ++set) {
    if (std::popcount(set) != w) continue;
    const int overlap = std::popcount(set & ((1U << t) - 1));
    const double weight = std::exp(epsilon * overlap / r);
    all += weight;
    if ((set & wanted) != 0) with += weight;
  }
  return with / all;
}

TEST(CellLaw, ForeseesWhatIsAskedForAsCountingDoes) {
  for (const double epsilon : {.3, 2.}) {
    for (int64_t k = 2; k <= 7; ++k) {
      for (int64_t w = 1; w < k; ++w) {
        for (int64_t t = 1; t < k; ++t) {
          const CellChoice choice{.cells = k, .ask = w, .focus = t, .epsilon = epsilon};
          ASSERT_OK_AND_ASSIGN(const CellLaw law, CellLaw::Step(choice));
          const std::vector<std::vector<int64_t>> some = {{}, {0}, {k - 1}, {0, k - 1}, {k / 2, 0}};
          for (std::vector<int64_t> ranks : some) {
            if (ranks.size() == 2 && ranks[0] == ranks[1]) ranks.pop_back();
            EXPECT_NEAR(law.AnyAsked(ranks), CountedAnyAsked(choice, ranks), 1e-9)
                << k << " " << w << " " << t;
          }
        }
      }
    }
  }
}

TEST(CellLaw, GradedIsDrawnAsItsClosedForm) {
  constexpr int64_t kCells = 5;
  constexpr int kDraws = 40'000;
  constexpr double kEpsilon = 3;
  ASSERT_OK_AND_ASSIGN(const CellLaw law, CellLaw::Graded(kCells, kEpsilon));
  const std::vector<int64_t> ranked = {3, 1, 4, 0, 2};
  SeededBits bits(7);
  std::vector<double> drawn(kCells);
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> asked, law.Draw(ranked, bits));
    ASSERT_EQ(asked.size(), 1u);
    drawn.at(static_cast<size_t>(asked[0])) += 1. / kDraws;
  }
  double sum = 0;
  for (int rank = 0; rank < kCells; ++rank) sum += std::exp(-kEpsilon * rank / 4);
  for (size_t rank = 0; rank < kCells; ++rank) {
    const double expected = std::exp(-kEpsilon * static_cast<double>(rank) / 4) / sum;
    EXPECT_NEAR(drawn[static_cast<size_t>(ranked[rank])], expected, 5 * .5 / std::sqrt(kDraws));
    EXPECT_NEAR(law.AnyAsked({static_cast<int64_t>(rank)}), expected, 1e-12);
  }
  EXPECT_NEAR(law.AnyAsked({0}) / law.AnyAsked({kCells - 1}), std::exp(kEpsilon), 1e-9);
}

TEST(CellLaw, GradedNeverFindsMoreThanTheBestStep) {
  constexpr int64_t kCells = 12;
  for (const double epsilon : {.5, 2., 6.}) {
    for (const double fall : {.3, .7, .9, .99}) {
      const auto found = [&](const CellLaw& law) {
        double sum = 0;
        for (int64_t rank = 0; rank < kCells; ++rank) {
          sum += law.AnyAsked({rank}) * std::pow(fall, static_cast<double>(rank));
        }
        return sum;
      };
      double best = 0;
      for (int64_t focus = 1; focus < kCells; ++focus) {
        best = std::max(
            best,
            found(*CellLaw::Step({.cells = kCells, .ask = 1, .focus = focus, .epsilon = epsilon})));
      }
      EXPECT_GT(best, found(*CellLaw::Graded(kCells, epsilon)));
    }
  }
}

TEST(CellLaw, NamesWhatIsOutOfRange) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(CellLaw::Graded(1, 1), FailsWith(kInvalid, "cells"));
  EXPECT_THAT(CellLaw::Graded(3, -1), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(CellLaw::Step({.cells = 4, .ask = 4, .focus = 1, .epsilon = 1}),
              FailsWith(kInvalid, "ask"));
}

}  // namespace
}  // namespace privatemail::client
