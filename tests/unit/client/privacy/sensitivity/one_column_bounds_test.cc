// Compares the proven bounds with their formulas in plain loops, in a type of more digits: never
// below them, though they are computed in double, and hardly above. Over narrow and wide kernels
// and light and heavy label graphs, so that every branch of a formula decides somewhere.
#include "tests/golden/one_column_bounds.h"

#include <limits>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/sensitivity/known_anchors_sensitivity.h"
#include "client/privacy/sensitivity/lipschitz.h"
#include "tests/testing/matchers.h"
#include "tests/unit/client/privacy/adversary.h"

namespace privatemail::client::one_column_bounds_test {
namespace {

using one_column::kAnchors;
using one_column::kRows;
using one_column::kSlots;
using Exact = long double;
using Formula = one_column::OneColumnIn<Exact>;
static_assert(std::numeric_limits<Exact>::digits >= 64);

void VisitSettings(absl::FunctionRef<void(const Setting&, const Formula&)> visit) {
  Matrix start(kRows, 1);
  for (int i = 0; i < kRows; ++i) start(i, 0) = one_column::Start(kRows)[static_cast<size_t>(i)];
  for (const double bandwidth : {.6, 1.0, 2.0, 2.5, 6.0, 50.0}) {
    for (const double alpha : {0.0, .003, .02, .1, .6, 30.0}) {
      SCOPED_TRACE(absl::StrCat("bandwidth ", bandwidth, " alpha ", alpha));
      visit(Setting(start, bandwidth, alpha, kSlots, LabelGraphKind::kOneHotKernel),
            Formula(alpha, bandwidth));
    }
  }
}

void ExpectHardlyAbove(double computed, Exact formula, Exact surplus = 1e-11L) {
  EXPECT_GE(computed, formula) << "by a part of " << static_cast<double>(1 - computed / formula);
  EXPECT_LE(computed, formula * (1 + surplus));
}

TEST(OneColumnBounds, ReplaceTargetIsRoundedUp) {
  VisitSettings([](const Setting& setting, const Formula& formula) {
    for (const int changed : {1, 2}) {
      const auto expected = one_column::ReplaceTarget(formula, changed);
      ExpectHardlyAbove(*ReplaceTargetSensitivity(setting.Inputs(), changed, Norm::kL2),
                        expected.l2);
      ExpectHardlyAbove(*ReplaceTargetSensitivity(setting.Inputs(), changed, Norm::kL1),
                        expected.l1);
    }
  });
}

TEST(OneColumnBounds, KnownAnchorsIsRoundedUp) {
  const Matrix anchors = Adversary(3).UnitRows(kAnchors, 5);
  // Its r is enlarged by 1e-12: over the widest kernel r itself is hardly more.
  constexpr Exact kSurplus = 1e-8L;
  int anchors_help = 0;
  VisitSettings([&](const Setting& setting, const Formula& formula) {
    for (const int changed : {1, 2}) {
      const auto known = one_column::KnownAnchors(formula, anchors, changed);
      const auto any = one_column::ReplaceTarget(formula, changed);
      anchors_help += known.l2 < any.l2 && known.l1 < any.l1 ? 1 : 0;
      ExpectHardlyAbove(*KnownAnchorsSensitivity(setting.Inputs(), anchors, changed, Norm::kL2),
                        std::min(known.l2, any.l2), kSurplus);
      ExpectHardlyAbove(*KnownAnchorsSensitivity(setting.Inputs(), anchors, changed, Norm::kL1),
                        std::min(known.l1, any.l1), kSurplus);
    }
  });
  EXPECT_GT(anchors_help, 30) << "it is the other bound that is tested";
}

TEST(OneColumnBounds, LipschitzIsRoundedUp) {
  VisitSettings([](const Setting& setting, const Formula& formula) {
    ASSERT_OK_AND_ASSIGN(const ReleaseLipschitz computed, LipschitzOfRelease(setting.Inputs()));
    const auto expected = one_column::Lipschitz(formula);
    ExpectHardlyAbove(computed.to_l2, expected.l2);
    ExpectHardlyAbove(computed.to_l1, expected.l1);
  });
}

// Two equal columns move along the diagonal: as far in L2, and the root of 2 farther in L1.
TEST(OneColumnBounds, LipschitzToL1GrowsWithTheColumns) {
  VisitSettings([](const Setting& one, const Formula& formula) {
    Setting two = one;
    two.start = (one.start / std::sqrt(2)).replicate(1, 2);
    ASSERT_OK_AND_ASSIGN(const ReleaseLipschitz computed, LipschitzOfRelease(two.Inputs()));
    const auto expected = one_column::Lipschitz(formula);
    EXPECT_NEAR(static_cast<double>(computed.to_l2 / expected.l2), 1, 1e-10);
    EXPECT_NEAR(static_cast<double>(computed.to_l1 / (expected.l1 * std::sqrt(2))), 1, 1e-10);
  });
}

}  // namespace
}  // namespace privatemail::client::one_column_bounds_test
