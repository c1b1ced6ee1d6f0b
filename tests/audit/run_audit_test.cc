// RunAudit on attacks with given counts. Expected values: Clopper-Pearson bounds by exact
// fractions.
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "client/audit/audit.h"
#include "tests/testing/matchers.h"

namespace privatemail::client::audit {
namespace {

constexpr int64_t kReleases = 100;
const Guarantee kClaim{.epsilon = 1, .neighbours = "of the test", .source = "test"};

// An attack with a fixed total number of hits, which the order and size of its calls do not change.
Attack AttackWithHits(std::string description, int64_t one, int64_t other) {
  struct Left {
    std::mutex mutex;
    std::array<int64_t, 2> hits;
  };
  const auto left = std::make_shared<Left>();
  left->hits = {one, other};
  return {.description = std::move(description),
          .event = [left](Neighbour neighbour, BitSource&) -> absl::StatusOr<bool> {
            const std::lock_guard lock(left->mutex);
            int64_t& of_this = left->hits[neighbour == Neighbour::kOne ? 0 : 1];
            return of_this > 0 && of_this-- > 0;
          }};
}

Result ResultOf(std::vector<Attack> attacks) {
  const Subject subject{.mechanism = "test", .claim = kClaim, .attacks = std::move(attacks)};
  return *RunAudit(subject, {.releases = kReleases, .confidence = .95});
}

// Counts up to a limit, and then fails.
class CountingBits final : public BitSource {
 public:
  absl::Status Fill(absl::Span<uint8_t> bytes) override {
    if (next_ + bytes.size() > 150'000) return absl::UnavailableError("no more");
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(next_++ % 251);
    return absl::OkStatus();
  }

 private:
  size_t next_ = 0;
};

TEST(ReadAhead, HandsOutEachByteOnce) {
  CountingBits source;
  ReadAhead bits(&source);
  size_t next = 0;
  for (const size_t size : {1, 2048, 0, 70'000, 50'000}) {
    std::vector<uint8_t> bytes(size);
    ASSERT_THAT(bits.Fill(absl::MakeSpan(bytes)), IsOk());
    for (const uint8_t byte : bytes) ASSERT_EQ(byte, next++ % 251);
  }
  std::vector<uint8_t> more(20'000);
  EXPECT_THAT(bits.Fill(absl::MakeSpan(more)), FailsWith(kUnavailable, "no more"));
}

// Union bound: each of k attacks has a k-th of the risk.
TEST(RunAudit, SplitsRiskAmongAttacks) {
  std::vector<Attack> useless;
  for (const double expected : {1.0372628075841552, 0.9450714686899422}) {
    std::vector<Attack> attacks = useless;
    attacks.push_back(AttackWithHits("useful", 60, 10));
    EXPECT_NEAR(ResultOf(attacks).epsilon_lower, expected, 1e-9);
    useless.push_back(AttackWithHits("useless", 0, 0));
  }
  EXPECT_NEAR(
      ResultOf({AttackWithHits("useful", 60, 10), useless[0], useless[0], useless[0], useless[0]})
          .epsilon_lower,
      0.8371625556959607, 1e-9);
}

TEST(RunAudit, ReportsBestAttack) {
  for (const bool first : {true, false}) {
    std::vector<Attack> attacks = {AttackWithHits("weak", 40, 20), AttackWithHits("strong", 90, 5)};
    if (first) std::swap(attacks[0], attacks[1]);
    const Result result = ResultOf(attacks);
    EXPECT_EQ(result.best_attack, "strong");
    EXPECT_GT(result.epsilon_lower, 1);
  }
}

TEST(ExitCode, IsOneIfAnyBoundExceedsItsClaim) {
  const auto result = [](double epsilon_lower) {
    return Result{.mechanism = "test", .claim = kClaim, .epsilon_lower = epsilon_lower};
  };
  EXPECT_EQ(ExitCode({result(0), result(1)}), 0);
  EXPECT_EQ(ExitCode({result(0), result(1.001)}), 1);
  EXPECT_EQ(ExitCode({result(std::nan(""))}), 1);
}

TEST(RunAudit, RespectsMaxReleases) {
  Attack slow = AttackWithHits("slow", kReleases, 0);
  slow.max_releases = 20;
  const Result result = ResultOf({slow});
  EXPECT_EQ(result.releases, 20);
  EXPECT_LT(result.epsilon_lower, ResultOf({AttackWithHits("fast", kReleases, 0)}).epsilon_lower);
}

TEST(RunAudit, MakesEveryRelease) {
  std::atomic<int64_t> made = 0;
  ResultOf({{.description = "counts", .event = [&](Neighbour, BitSource&) { return ++made < 0; }}});
  EXPECT_EQ(made, 2 * kReleases);
}

TEST(RunAudit, FailedReleaseReturnsItsError) {
  const Attack failing{.description = "fails",
                       .event = [](Neighbour, BitSource&) -> absl::StatusOr<bool> {
                         return absl::UnavailableError("no bits");
                       }};
  EXPECT_THAT(RunAudit({.mechanism = "test", .claim = kClaim, .attacks = {failing}}, {}),
              FailsWith(kUnavailable, "no bits"));
}

TEST(RunAudit, InvalidOptionsReturnInvalidArgument) {
  const Subject subject{
      .mechanism = "test", .claim = kClaim, .attacks = {AttackWithHits("any", 1, 1)}};
  EXPECT_THAT(RunAudit(subject, {.releases = 0}), FailsWith(kInvalid, "releases"));
  EXPECT_THAT(RunAudit(subject, {.confidence = 1}), FailsWith(kInvalid, "confidence"));
}

// scipy: beta.ppf(.025, 60, 41) and beta.ppf(.975, 11, 90).
TEST(ClopperPearsonRates, MatchScipy) {
  const Rates rates = ClopperPearsonRates({.releases = 100, .one = 60, .other = 10}, .95);
  EXPECT_NEAR(rates.one_lower, 0.49720915042233477, 1e-9);
  EXPECT_NEAR(rates.other_upper, 0.17622259774002266, 1e-9);
}

TEST(ClopperPearsonRates, NoneOrAllHitsGiveTrivialBounds) {
  const Rates never = ClopperPearsonRates({.releases = 1000, .one = 0, .other = 0}, .95);
  EXPECT_EQ(never.one_lower, 0);
  EXPECT_NEAR(never.other_upper, 1 - std::pow(.025, 1e-3), 1e-12);
  const Rates always = ClopperPearsonRates({.releases = 1000, .one = 1000, .other = 1000}, .95);
  EXPECT_NEAR(always.one_lower, std::pow(.025, 1e-3), 1e-12);
  EXPECT_EQ(always.other_upper, 1);
}

TEST(LowerBounds, MatchClosedForms) {
  EXPECT_NEAR(EpsilonLowerBound({.5, .1}, .1), std::log(4), 1e-15);
  EXPECT_EQ(EpsilonLowerBound({.1, .5}, .1), 0);
  EXPECT_NEAR(MuLowerBound({.975, .5}), 1.959963984540054, 1e-12);
  EXPECT_EQ(MuLowerBound({.2, .3}), 0);
  EXPECT_EQ(MuLowerBound({0, .3}), 0);
  EXPECT_EQ(MuLowerBound({.3, 1}), 0);
}

}  // namespace
}  // namespace privatemail::client::audit
