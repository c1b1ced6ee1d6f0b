// What the audit makes of attacks whose counts are given. The expected values are Clopper and
// Pearson's, out of exact fractions.
#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "client/audit/audit.h"
#include "tests/testing/matchers.h"

namespace privatemail::client::audit {
namespace {

constexpr int64_t kReleases = 100;
const Guarantee kClaim{.epsilon = 1, .neighbours = "of the test", .source = "test"};

// Hits so often, of however many releases and however they are shared out.
Attack HitsOf(std::string what, int64_t one, int64_t other) {
  struct Left {
    std::mutex mutex;
    std::array<int64_t, 2> hits;
  };
  const auto left = std::make_shared<Left>();
  left->hits = {one, other};
  return {.what = std::move(what),
          .hits = [left](Neighbour neighbour, int64_t releases) -> absl::StatusOr<int64_t> {
            const std::lock_guard lock(left->mutex);
            int64_t& of_this = left->hits[neighbour == Neighbour::kOne ? 0 : 1];
            const int64_t hits = std::min(of_this, releases);
            of_this -= hits;
            return hits;
          }};
}

Result ResultOf(std::vector<Attack> attacks) {
  const Subject subject{.mechanism = "test", .claim = kClaim, .attacks = std::move(attacks)};
  return *RunAudit(subject, {.releases = kReleases, .confidence = .95});
}

// Among k attacks one is the likelier to get too far by chance: each has a k-th of the risk.
TEST(RunAudit, SharesTheRiskAmongItsAttacks) {
  std::vector<Attack> useless;
  for (const double expected : {1.0372628075841552, 0.9450714686899422}) {
    std::vector<Attack> attacks = useless;
    attacks.push_back(HitsOf("useful", 60, 10));
    EXPECT_NEAR(ResultOf(attacks).epsilon_lower, expected, 1e-9);
    useless.push_back(HitsOf("useless", 0, 0));
  }
  EXPECT_NEAR(ResultOf({HitsOf("useful", 60, 10), useless[0], useless[0], useless[0], useless[0]})
                  .epsilon_lower,
              0.8371625556959607, 1e-9);
}

TEST(RunAudit, ReportsTheAttackThatGotFurthest) {
  for (const bool first : {true, false}) {
    std::vector<Attack> attacks = {HitsOf("weak", 40, 20), HitsOf("strong", 90, 5)};
    if (first) std::reverse(attacks.begin(), attacks.end());
    const Result result = ResultOf(attacks);
    EXPECT_EQ(result.attacked, "strong");
    EXPECT_TRUE(result.Exceeded());
  }
}

TEST(RunAudit, TakesNoMoreReleasesThanAnAttackAllows) {
  Attack slow = HitsOf("slow", kReleases, 0);
  slow.most_releases = 20;
  const Result result = ResultOf({slow});
  EXPECT_EQ(result.releases, 20);
  EXPECT_LT(result.epsilon_lower, ResultOf({HitsOf("fast", kReleases, 0)}).epsilon_lower);
}

TEST(RunAudit, FailsWithARelease) {
  const Attack failing{.what = "fails", .hits = [](Neighbour, int64_t) -> absl::StatusOr<int64_t> {
                         return absl::UnavailableError("no bits");
                       }};
  EXPECT_THAT(RunAudit({.mechanism = "test", .claim = kClaim, .attacks = {failing}}, {}),
              FailsWith(absl::StatusCode::kUnavailable, "no bits"));
}

}  // namespace
}  // namespace privatemail::client::audit
