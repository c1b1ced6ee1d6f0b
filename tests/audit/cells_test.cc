// Audit of the choice of cells and of requests, in production and with planted faults. False-alarm
// probability: below 1e-6 per subject.
#include <algorithm>

#include "client/audit/cell_attack.h"
#include "tests/testing/matchers.h"

namespace privatemail::client::audit {
namespace {

constexpr double kEpsilon = 2;
constexpr int64_t kReleases = 100'000;

void ExpectNearlyTheClaimByEveryAttack(const Subject& subject) {
  EXPECT_TRUE(subject.claim.proven);
  EXPECT_EQ(subject.claim.epsilon, kEpsilon);
  EXPECT_EQ(subject.claim.delta, 0);
  for (const Attack& attack : subject.attacks) {
    SCOPED_TRACE(attack.description);
    Subject one = subject;
    one.attacks = {attack};
    ASSERT_OK_AND_ASSIGN(const Result result, RunAudit(one, {.releases = kReleases}));
    EXPECT_LE(result.epsilon_lower, kEpsilon);
    EXPECT_GE(result.epsilon_lower, .8 * kEpsilon);
  }
}

TEST(CellAudit, ChoiceCostsNearlyItsClaim) {
  ASSERT_OK_AND_ASSIGN(const Subject subject, AttackCells(kEpsilon));
  ExpectNearlyTheClaimByEveryAttack(subject);
}

void ExpectDetected(const absl::StatusOr<Subject>& subject) {
  ASSERT_THAT(subject, IsOk());
  ASSERT_OK_AND_ASSIGN(const Result result, RunAudit(*subject, {.releases = kReleases}));
  EXPECT_GT(result.epsilon_lower, kEpsilon) << "by " << result.best_attack;
}

TEST(CellAudit, DetectsBestCellInEveryRequest) {
  ExpectDetected(AttackCells(kEpsilon,
                             [](const CellMechanism& mechanism, const std::vector<int64_t>& best,
                                BitSource& bits) -> absl::StatusOr<std::vector<int64_t>> {
                               auto cells = mechanism.Choose(best, bits);
                               if (cells.ok() &&
                                   std::count(cells->begin(), cells->end(), best[0]) == 0) {
                                 cells->front() = best[0];
                               }
                               return cells;
                             }));
}

TEST(CellAudit, DetectsTenPercentMoreEpsilonInChoice) {
  ExpectDetected(AttackCells(kEpsilon, [](const CellMechanism& mechanism,
                                          const std::vector<int64_t>& best, BitSource& bits) {
    CellChoice choice = mechanism.choice();
    choice.epsilon *= 1.1;
    return CellMechanism::Create(choice)->Choose(best, bits);
  }));
}

TEST(CellAudit, RequestCostsNearlyItsClaim) {
  ASSERT_OK_AND_ASSIGN(const Subject subject, AttackCellRequest(kEpsilon));
  ExpectNearlyTheClaimByEveryAttack(subject);
}

// Draws with more than is charged.
TEST(CellAudit, DetectsTenPercentMoreEpsilonInRequest) {
  ExpectDetected(
      AttackCellRequest(kEpsilon, [](const CellScheme& scheme, const Eigen::RowVectorXf& features,
                                     CellCost cost, BitSource& bits) {
        cost.epsilon *= 1.1;
        return ChooseRequestCells(scheme, features, cost, bits);
      }));
}

}  // namespace
}  // namespace privatemail::client::audit
