// Audit of requests as the daemon receives them, in production and with planted faults. False-alarm
// probability: below 1e-6 per subject.
#include <cmath>
#include <numeric>

#include "client/audit/request_attack.h"
#include "client/schemes/encrypted/secret_key.h"
#include "common/lattice/wire.h"
#include "common/wire/proto_conversions.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail::client::audit {
namespace {

constexpr double kEpsilon = 2;
constexpr double kDelta = 1e-5;

double LowerBoundOf(const absl::StatusOr<Subject>& subject, int64_t releases) {
  EXPECT_THAT(subject, IsOk());
  if (!subject.ok()) return -1;
  const absl::StatusOr<Result> result = RunAudit(*subject, {.releases = releases});
  EXPECT_THAT(result, IsOk());
  if (!result.ok()) return -1;
  testing::Test::RecordProperty("attack", result->best_attack);
  EXPECT_EQ(result->Exceeded(), result->epsilon_lower > subject->claim.epsilon);
  return result->epsilon_lower;
}

TEST(RequestAudit, NothingSentExceedsItsClaim) {
  EXPECT_LE(LowerBoundOf(AttackJointRequest(kEpsilon, kDelta), 2'000), kEpsilon);
  EXPECT_EQ(LowerBoundOf(AttackEncryptedQueries(), 300), 0);
}

// A release that is post-processed by the client under these labels of its rows.
absl::StatusOr<v1::RetrieveRequest> FinishedUnder(const std::vector<int32_t>& slot_labels,
                                                  const JointCollection& collection,
                                                  v1::RetrieveRequest noisy) {
  const EmbeddingSettings& settings = collection.scheme.parameters().settings;
  std::vector<int32_t> labels = slot_labels;
  for (int32_t i = 0; i < collection.scheme.parameters().anchor_count; ++i) {
    labels.push_back(i % static_cast<int32_t>(slot_labels.size()));
  }
  const FloatMatrix rows = *FromProto("release", noisy.release());
  ToProto(*PostProcess(rows.cast<double>(),
                       LabelGraph(labels, settings.label_graph, settings.KernelDenominator()),
                       settings),
          noisy.mutable_release());
  noisy.set_post_processing_steps(0);
  return noisy;
}

// The second paper without slots: the target is the first row, dummies of the other classes follow,
// and the label graph of the post-processing has the target's true label there (PRIVACY.md
// section 2).
absl::StatusOr<v1::RetrieveRequest> WithoutSlots(
    const std::shared_ptr<const JointCollection>& collection, const SearchRequest& request,
    BitSource& bits) {
  SearchRequest raw = request;
  raw.post_process = PostProcessing::kServer;
  absl::StatusOr<v1::RetrieveRequest> noisy = PrepareJointRequest(collection, raw, bits);
  if (!noisy.ok()) return noisy;
  std::vector<int32_t> labels = collection->scheme.parameters().slot_labels;
  const auto slot = static_cast<size_t>(*request.targets[0].label);
  FloatMatrix rows = *FromProto("release", noisy->release());
  rows.row(0).swap(rows.row(static_cast<Eigen::Index>(slot)));
  std::swap(labels[0], labels[slot]);
  ToProto(rows, noisy->mutable_release());
  return FinishedUnder(labels, *collection, *std::move(noisy));
}

TEST(RequestAudit, DetectsTheTargetsLabelInPostProcessing) {
  EXPECT_GT(LowerBoundOf(AttackJointRequest(kEpsilon, kDelta, &WithoutSlots), 1'000), kEpsilon);
}

// Checks the fault above: the same steps with the labels of the slots show nothing.
TEST(RequestAudit, LabelsOfTheSlotsAreNotFlagged) {
  const JointRequestFn sound = [](const std::shared_ptr<const JointCollection>& collection,
                                  const SearchRequest& request,
                                  BitSource& bits) -> absl::StatusOr<v1::RetrieveRequest> {
    SearchRequest raw = request;
    raw.post_process = PostProcessing::kServer;
    absl::StatusOr<v1::RetrieveRequest> noisy = PrepareJointRequest(collection, raw, bits);
    if (!noisy.ok()) return noisy;
    return FinishedUnder(collection->scheme.parameters().slot_labels, *collection,
                         *std::move(noisy));
  };
  EXPECT_LE(LowerBoundOf(AttackJointRequest(kEpsilon, kDelta, sound), 1'000), kEpsilon);
}

TEST(RequestAudit, DetectsSizesThatDependOnTheTarget) {
  const JointRequestFn faulty = [](const std::shared_ptr<const JointCollection>& collection,
                                   const SearchRequest& request, BitSource& bits) {
    SearchRequest own = request;
    own.with_payloads = *request.targets[0].label > 2;
    return PrepareJointRequest(collection, own, bits);
  };
  EXPECT_GT(LowerBoundOf(AttackJointRequest(kEpsilon, kDelta, faulty), 1'000), kEpsilon);
}

TEST(RequestAudit, DetectsTimesThatDependOnTheTarget) {
  const JointRequestFn faulty = [](const std::shared_ptr<const JointCollection>& collection,
                                   const SearchRequest& request, BitSource& bits) {
    for (int i = 0; i < *request.targets[0].label; ++i) {
      EXPECT_THAT(PrepareJointRequest(collection, request, bits), IsOk());
    }
    return PrepareJointRequest(collection, request, bits);
  };
  EXPECT_GT(LowerBoundOf(AttackJointRequest(kEpsilon, kDelta, faulty), 1'000), kEpsilon);
}

// Repeats the bits of the first query, so that both have one seed and equal errors.
TEST(RequestAudit, DetectsASeedThatMeetsTwoTargets) {
  const EncryptedRequestFn faulty = [](const std::vector<Eigen::RowVectorXf>& targets,
                                       BitSource& bits) {
    std::array<uint8_t, 8> seed;
    EXPECT_THAT(bits.Fill(absl::MakeSpan(seed)), IsOk());
    std::vector<v1::EncryptedQuery> queries;
    for (const Eigen::RowVectorXf& target : targets) {
      SeededBits same(std::accumulate(seed.begin(), seed.end(), uint64_t{0},
                                      [](uint64_t sum, uint8_t byte) { return sum << 8 | byte; }));
      queries.push_back(PrepareEncryptedQueries({target}, same)->front());
    }
    return absl::StatusOr<std::vector<v1::EncryptedQuery>>(queries);
  };
  EXPECT_GT(LowerBoundOf(AttackEncryptedQueries(faulty), 200), 1);
}

// The message and small errors, without a secret.
TEST(RequestAudit, DetectsAMessageThatNoSecretCovers) {
  const EncryptedRequestFn faulty = [](const std::vector<Eigen::RowVectorXf>& targets,
                                       BitSource& bits) {
    std::vector<v1::EncryptedQuery> queries;
    for (const Eigen::RowVectorXf& target : targets) {
      std::array<uint8_t, lattice::kDegree> errors;
      EXPECT_THAT(bits.Fill(absl::MakeSpan(errors)), IsOk());
      std::vector<int64_t> values(errors.begin(), errors.end());
      values[0] += std::llrint(target[0] * QueryScale(static_cast<int>(target.size())));
      v1::EncryptedQuery& query = queries.emplace_back();
      query.set_seed(std::string(lattice::kSeedBytes, 's'));
      lattice::AppendPolynomial(values.data(), query.mutable_chunks());
    }
    return absl::StatusOr<std::vector<v1::EncryptedQuery>>(queries);
  };
  EXPECT_GT(LowerBoundOf(AttackEncryptedQueries(faulty), 200), 1);
}

}  // namespace
}  // namespace privatemail::client::audit
