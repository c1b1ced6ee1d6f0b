#include "client/schemes/cells/cell_scheme.h"

#include <cmath>
#include <map>

#include "client/privacy/mechanisms/cell_mechanism.h"
#include "tests/testing/release_inputs.h"

namespace privatemail::client::cell_scheme_test {
namespace {

constexpr int kAnchors = 40;
constexpr int kDim = 6;

Anchors SomeAnchors() {
  Anchors anchors{NormalRows(kAnchors, kDim, 1), {}};
  for (int i = 0; i < kAnchors; ++i) anchors.labels.push_back(i % 4);
  return anchors;
}

CellPartition RoundRobin(int32_t cells) {
  CellPartition partition{.cells = cells, .cell_of_anchor = {}};
  for (int32_t i = 0; i < kAnchors; ++i) partition.cell_of_anchor.push_back(i % cells);
  return partition;
}

PublicParameters ParametersWith(std::vector<CellPartition> partitions) {
  const std::optional<CellCode> code =
      partitions.empty() ? std::nullopt : std::make_optional(CellCode::kFloat16);
  return *MakePublicParameters(kUuid, EmbeddingSettings{}, SomeAnchors(), {}, "vectors",
                               std::move(partitions), code);
}

CellScheme SomeScheme() {
  return *CellScheme::Create(ParametersWith({RoundRobin(8), RoundRobin(5)}), SomeAnchors());
}

double SpentIn(const FundedLedger& funded) { return funded.ledger->Show(kUuid)->spent().epsilon; }

TEST(CellScheme, NoCellsOrForeignAnchorsReturnError) {
  EXPECT_THAT(CellScheme::Create(ParametersWith({}), SomeAnchors()),
              FailsWith(kFailedPrecondition, "has no cells: it offers the scheme joint"));
  Anchors others = SomeAnchors();
  others.features(3, 2) += 1;
  EXPECT_THAT(CellScheme::Create(ParametersWith({RoundRobin(8)}), others),
              FailsWith(kDataLoss, "anchors have the digest"));
}

// Oracle: distances to the mean anchors.
TEST(CellScheme, NearestCellsOrdersByCentroidDistance) {
  const CellScheme scheme = SomeScheme();
  Matrix units = SomeAnchors().features.cast<double>();
  for (Eigen::Index i = 0; i < kAnchors; ++i) units.row(i) /= units.row(i).norm();
  for (unsigned seed = 20; seed < 30; ++seed) {
    const Eigen::RowVectorXf query = NormalRows(1, kDim, seed);
    const RowVector unit = query.cast<double>() / query.cast<double>().norm();
    std::multimap<double, int64_t> by_distance;
    for (int64_t cell = 0; cell < 5; ++cell) {
      RowVector mean = RowVector::Zero(kDim);
      for (int64_t i = cell; i < kAnchors; i += 5) mean += units.row(i) / (kAnchors / 5);
      by_distance.emplace((mean - unit).norm(), cell);
    }
    std::vector<int64_t> expected;
    for (const auto& [distance, cell] : by_distance) expected.push_back(cell);
    EXPECT_EQ(*scheme.NearestCells(query, 1, 5), expected);
    // Independent of the query's length.
    EXPECT_EQ(*scheme.NearestCells(query * 1e-30F, 1, 5), expected);
  }
}

TEST(CellScheme, ReleaseIsPureAndCharged) {
  const FundedLedger funded;
  SeededBits bits(1);
  ASSERT_OK_AND_ASSIGN(const CellRelease release,
                       SomeScheme().Release(NormalRows(1, kDim, 7),
                                            {.partition = 0, .ask = 3, .focus = 2, .epsilon = 1.5},
                                            ChargeTo(*funded.ledger, kUuid), bits));
  EXPECT_EQ(release.cells.size(), 3u);
  EXPECT_TRUE(std::is_sorted(release.cells.begin(), release.cells.end()));
  EXPECT_EQ(release.guarantee.epsilon, 1.5);
  EXPECT_EQ(release.guarantee.delta, 0);
  EXPECT_TRUE(release.guarantee.proven);
  EXPECT_EQ(SpentIn(funded), 1.5);
}

TEST(CellScheme, FailureWhileSamplingStaysCharged) {
  const FundedLedger funded;
  FailingBits none(0);
  EXPECT_THAT(SomeScheme().Release(NormalRows(1, kDim, 7), {.epsilon = 2},
                                   ChargeTo(*funded.ledger, kUuid), none),
              FailsWith(kUnavailable, "nothing was released, but the ledger was charged"));
  EXPECT_EQ(SpentIn(funded), 2);
}

// Fails the test on any draw.
class UntouchedBits final : public BitSource {
 public:
  absl::Status Fill(absl::Span<uint8_t> /*bytes*/) override {
    ADD_FAILURE() << "bits were drawn";
    return absl::UnavailableError("no bits");
  }
};

TEST(CellScheme, RefusedReleaseIsNotChargedAndDrawsNothing) {
  const FundedLedger funded;
  const CellScheme scheme = SomeScheme();
  UntouchedBits bits;
  const Eigen::RowVectorXf good = NormalRows(1, kDim, 7);
  const double nan = std::nan("");
  const std::pair<CellCost, const char*> costs[] = {
      {{.partition = 2, .epsilon = 1}, "partition must be between 0 and 1, but is 2"},
      {{.partition = -1, .epsilon = 1}, "partition must be between 0 and 1, but is -1"},
      {{.partition = 1, .ask = 5, .epsilon = 1}, "ask must be between 1 and 4, but is 5"},
      {{.partition = 1, .focus = 0, .epsilon = 1}, "focus must be between 1 and 4, but is 0"},
      {{.epsilon = nan}, "epsilon"},
      {{.epsilon = 0}, "epsilon"},
      {{}, "epsilon"},
  };
  for (const auto& [cost, part] : costs) {
    EXPECT_THAT(scheme.Release(good, cost, ChargeTo(*funded.ledger, kUuid), bits),
                FailsWith(kInvalid, part));
  }
  Eigen::RowVectorXf bad = good;
  bad[2] = std::nanf("");
  EXPECT_THAT(scheme.Release(bad, {.epsilon = 1}, ChargeTo(*funded.ledger, kUuid), bits),
              FailsWith(kInvalid, "query"));
  EXPECT_THAT(scheme.Release(good.head(3), {.epsilon = 1}, ChargeTo(*funded.ledger, kUuid), bits),
              FailsWith(kInvalid, "query has the wrong dimension: expected 6, got 3"));
  EXPECT_THAT(scheme.Release(Eigen::RowVectorXf::Zero(kDim), {.epsilon = 1},
                             ChargeTo(*funded.ledger, kUuid), bits),
              FailsWith(kInvalid, "query"));
  EXPECT_EQ(SpentIn(funded), 0);
  EXPECT_THAT(scheme.Release(good, {.epsilon = 101}, ChargeTo(*funded.ledger, kUuid), bits),
              FailsWith(kExhausted, "budget"));
  EXPECT_EQ(SpentIn(funded), 0);
}

}  // namespace
}  // namespace privatemail::client::cell_scheme_test
