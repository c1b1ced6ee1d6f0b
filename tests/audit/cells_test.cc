// What the audit says of the choice of cells, as it is and with mistakes built in. False alarms:
// below 1e-6 a subject.
#include <algorithm>

#include "client/audit/cell_attack.h"
#include "tests/testing/matchers.h"

namespace privatemail::audit {
namespace {

constexpr double kEpsilon = 2;
constexpr int64_t kReleases = 100'000;

TEST(AuditedCells, CostWhatTheyClaimAndHardlyLess) {
  ASSERT_OK_AND_ASSIGN(const Subject subject, AttackCells(kEpsilon));
  EXPECT_TRUE(subject.claim.proven);
  EXPECT_EQ(subject.claim.delta, 0);
  for (const Attack& attack : subject.attacks) {
    SCOPED_TRACE(attack.what);
    Subject one = subject;
    one.attacks = {attack};
    ASSERT_OK_AND_ASSIGN(const Result result, RunAudit(one, {.releases = kReleases}));
    EXPECT_LE(result.epsilon_lower, kEpsilon);
    EXPECT_GE(result.epsilon_lower, .8 * kEpsilon);
  }
  EXPECT_THAT(AttackCells(-1), FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
}

void ExpectCaught(const ChooseFn& choose) {
  ASSERT_OK_AND_ASSIGN(const Subject subject, AttackCells(kEpsilon, choose));
  ASSERT_OK_AND_ASSIGN(const Result result, RunAudit(subject, {.releases = kReleases}));
  EXPECT_EQ(ExitCode({result}), 1) << result.epsilon_lower << " by " << result.attacked;
}

TEST(AuditedCells, AskingAlwaysForTheBestCellIsCaught) {
  ExpectCaught([](const CellMechanism& mechanism, const std::vector<int64_t>& best,
                  BitSource& bits) -> absl::StatusOr<std::vector<int64_t>> {
    auto cells = mechanism.Choose(best, bits);
    if (cells.ok() && std::count(cells->begin(), cells->end(), best[0]) == 0) {
      cells->front() = best[0];
    }
    return cells;
  });
}

TEST(AuditedCells, ATenthMoreEpsilonThanWasClaimedIsCaught) {
  ExpectCaught([](const CellMechanism& mechanism, const std::vector<int64_t>& best,
                  BitSource& bits) -> absl::StatusOr<std::vector<int64_t>> {
    CellChoice choice = mechanism.choice();
    choice.epsilon *= 1.1;
    return CellMechanism::Create(choice)->Choose(best, bits);
  });
}

}  // namespace
}  // namespace privatemail::audit
