#include "client/schemes/encrypted/encrypted_client.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "client/schemes/encrypted/encrypted_messages.h"
#include "privatemail/client_limits.h"
#include "tests/testing/encrypted_things.h"
#include "tests/testing/fork.h"

namespace privatemail::client::encrypted_client_test {
namespace {

// Errors of scores that are exceeded with probability below 2^-40 each, with the rounding of items
// (PRIVACY.md section 9).
constexpr double kErrorBound = 1.5e-3;

RowTable TableOf(const EncryptedThings& things) {
  RowTable::TableBlocks blocks;
  for (int64_t block = 0; block < things.blocks(); ++block) {
    blocks.push_back(*TableBlock::Parse(things.TableBlock(block), kMaxMemory));
  }
  return *RowTable::Create(std::move(blocks), {});
}

class Searcher {
 public:
  Searcher(EncryptedThings* things, int delta)
      : things_(things),
        client(*EncryptedClient::Create(things->Collection())),
        session_(*EncryptedSession::Create(delta, bits_)) {}

  std::string Scores(const v1::EncryptedQuery& query) {
    v1::SearchEncryptedRequest request;
    request.set_delta(static_cast<uint32_t>(session_->delta()));
    request.set_keys_digest(session_->keys_digest());
    request.set_keys(session_->keys());
    *request.add_queries() = query;
    return things_->Answer(request).back().scores().answers();
  }

  absl::StatusOr<std::vector<Match>> Search(const Eigen::RowVectorXf& target,
                                            const EncryptedRanking& ranking = {}) {
    PreparedEncryptedQuery prepared = Prepare(target);
    return client.Finish(std::move(prepared.state), Scores(ToMessage(prepared.request)),
                         TableOf(*things_), ranking);
  }

  PreparedEncryptedQuery Prepare(const Eigen::RowVectorXf& target) {
    return *client.Prepare(target, session_, bits_);
  }

  const std::shared_ptr<const EncryptedSession>& session() const { return session_; }
  SecureBits& bits() { return bits_; }

 private:
  EncryptedThings* things_;
  SecureBits bits_;

 public:
  const EncryptedClient client;

 private:
  std::shared_ptr<const EncryptedSession> session_;
};

// The rows of the k items nearest to a target, in the clear.
struct Near {
  double order;
  int64_t row;
  double similarity;
  double squared_distance;
};
std::vector<Near> NearestInTheClear(const FloatMatrix& features, const Eigen::RowVectorXf& target,
                                    v1::Metric metric) {
  std::vector<Near> all;
  for (int64_t row = 0; row < features.rows(); ++row) {
    const Eigen::RowVectorXd item = features.row(row).cast<double>(), t = target.cast<double>();
    const double dot = item.dot(t), cosine = dot / item.norm() / t.norm();
    if (metric == v1::METRIC_COSINE) {
      all.push_back({-cosine, row, cosine, (item.normalized() - t.normalized()).squaredNorm()});
    } else {
      const double distance = (item - t).squaredNorm();
      all.push_back({metric == v1::METRIC_DOT ? -dot : distance, row, dot, distance});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Near& one, const Near& other) { return one.order < other.order; });
  return all;
}

struct Case {
  int rows, dim, delta;
  v1::Metric metric;
};

void ExpectNearestOfAllItems(const Case& of) {
  const auto [rows, dim, delta, metric] = of;
  // Items of several lengths: the metrics differ.
  FloatMatrix features = NormalRows(rows, dim, 1);
  for (int row = 0; row < rows; ++row) features.row(row) *= 1 + static_cast<float>(row % 7) / 4;
  EncryptedThings things(features, delta, metric);
  Searcher searcher(&things, delta);
  int found = 0;
  constexpr int kTargets = 10, kMatches = 8;
  for (int i = 0; i < kTargets; ++i) {
    const Eigen::RowVectorXf target = 3 * NormalRows(1, dim, 50 + i);
    ASSERT_OK_AND_ASSIGN(const std::vector<Match> matches,
                         searcher.Search(target, {.k = kMatches}));
    ASSERT_EQ(matches.size(), 8U);
    const std::vector<Near> nearest = NearestInTheClear(features, target, metric);
    for (size_t place = 0; place < kMatches; ++place) {
      const auto wanted = std::find_if(nearest.begin(), nearest.end(), [&](const Near& near) {
        return EncryptedThings::IdOf(near.row) == matches[place].id;
      });
      ASSERT_NE(wanted, nearest.end());
      found += wanted - nearest.begin() < kMatches ? 1 : 0;
      const double unit =
          metric == v1::METRIC_COSINE ? 1 : features.row(wanted->row).norm() * target.norm();
      EXPECT_NEAR(*matches[place].similarity, wanted->similarity, kErrorBound * unit);
      EXPECT_NEAR(matches[place].squared_distance, wanted->squared_distance,
                  2 * kErrorBound * unit);
      EXPECT_EQ(matches[place].label, wanted->row % PublishedThings::kClasses);
    }
  }
  // The exact ones but for near ties: two that swap places at the end cost one of 80.
  EXPECT_GE(found, kTargets * kMatches - 2);
}

TEST(EncryptedClient, FindsTheNearestOfAllItems) {
  for (const Case& of :
       {Case{3000, 40, 32, v1::METRIC_COSINE}, Case{3000, 130, 64, v1::METRIC_DOT},
        Case{2048, 128, 128, v1::METRIC_EUCLIDEAN}, Case{500, 300, 256, v1::METRIC_COSINE}}) {
    SCOPED_TRACE(of.delta);
    ExpectNearestOfAllItems(of);
  }
}

// All scores are 1 but for errors. Beyond the headroom they would wrap to -1.
TEST(EncryptedClient, ScoresOfEqualVectorsDoNotWrap) {
  for (const int delta : {32, 256}) {
    for (const int dim : {1, 3, 200}) {
      const Eigen::RowVectorXf target = NormalRows(1, dim, 5).cwiseAbs();
      EncryptedThings things(target.replicate(2048, 1), delta);
      Searcher searcher(&things, delta);
      ASSERT_OK_AND_ASSIGN(const std::vector<Match> matches,
                           searcher.Search(2 * target, {.k = 2048}));
      ASSERT_EQ(matches.size(), 2048U);
      for (const Match& match : matches) {
        ASSERT_GT(*match.similarity, 1 - kErrorBound) << "delta " << delta << ", d " << dim;
        ASSERT_LE(*match.similarity, 1);
      }
    }
  }
}

TEST(EncryptedClient, EmptyRowsAreNeverReturned) {
  FloatMatrix features = -NormalRows(2100, 16, 1).cwiseAbs();
  const Eigen::RowVectorXf target = -features.row(0);  // all scores are negative
  EncryptedThings things(features);
  things.empty_rows = {0, 5, 2047, 2048};
  Searcher searcher(&things, 32);
  ASSERT_OK_AND_ASSIGN(const std::vector<Match> matches, searcher.Search(target, {.k = 5000}));
  EXPECT_EQ(matches.size(), 2096U);
  for (const Match& match : matches) {
    EXPECT_NE(match.id, "");
    EXPECT_LT(*match.similarity, -.1) << "an empty row's score is about 0";
  }
}

TEST(EncryptedClient, TiesAreBrokenByRow) {
  // In one dimension every score is 1 or -1 with the same rounding: but for errors all tie.
  EncryptedThings things(FloatMatrix::Ones(30, 1));
  Searcher searcher(&things, 32);
  PreparedEncryptedQuery prepared = searcher.Prepare(Eigen::RowVectorXf::Ones(1));
  const std::string zeros(lattice::kAnswerBytes, '\0');  // every score is exactly 0
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Match> matches,
      searcher.client.Finish(std::move(prepared.state), zeros, TableOf(things), {.k = 4}));
  std::vector<std::string> ids;
  for (const Match& match : matches) ids.push_back(match.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"item 0", "item 1", "item 2", "item 3"}));
}

TEST(EncryptedClient, ZeroTargetsAreRankedByTheNormsOfItems) {
  const FloatMatrix features = NormalRows(200, 10, 1);
  for (const v1::Metric metric : {v1::METRIC_DOT, v1::METRIC_EUCLIDEAN}) {
    EncryptedThings things(features, 32, metric);
    Searcher searcher(&things, 32);
    const Eigen::RowVectorXf zero = Eigen::RowVectorXf::Zero(10);
    ASSERT_OK_AND_ASSIGN(const auto matches, searcher.Search(zero, {.k = 200}));
    ASSERT_EQ(matches.size(), 200U);
    for (size_t place = 0; place < matches.size(); ++place) {
      const Match& match = matches[place];
      const int row = std::stoi(match.id.substr(5));
      EXPECT_EQ(*match.similarity, 0);
      EXPECT_NEAR(match.squared_distance, features.row(row).squaredNorm(), 1e-4);
      if (metric == v1::METRIC_DOT) {
        EXPECT_EQ(row, static_cast<int>(place)) << "all tie";
      } else if (place > 0) {
        EXPECT_LE(matches[place - 1].squared_distance, match.squared_distance);
      }
    }
  }
}

// The squared distances of such a target to all items are equal in double.
TEST(EncryptedClient, LongTargetsAreRankedByEuclideanDistance) {
  const FloatMatrix features = NormalRows(200, 10, 1);
  EncryptedThings things(features, 32, v1::METRIC_EUCLIDEAN);
  Searcher searcher(&things, 32);
  const Eigen::RowVectorXf target = 1e30F * NormalRows(1, 10, 2);
  ASSERT_OK_AND_ASSIGN(const auto matches, searcher.Search(target, {.k = 8}));
  // The farther along the target, the nearer to it.
  const std::vector<Near> nearest = NearestInTheClear(features, target, v1::METRIC_DOT);
  ASSERT_EQ(matches.size(), 8U);
  for (size_t place = 0; place < matches.size(); ++place) {
    EXPECT_GE(*matches[place].similarity,
              nearest[place].similarity - 10 * kErrorBound * target.norm());
    EXPECT_TRUE(std::isfinite(matches[place].squared_distance));
  }
}

// The shown values are functions of four decimals of the cosine.
TEST(EncryptedClient, ShownValuesAreRounded) {
  for (const v1::Metric metric : {v1::METRIC_COSINE, v1::METRIC_DOT, v1::METRIC_EUCLIDEAN}) {
    const FloatMatrix features = 2 * NormalRows(200, 10, 1);
    EncryptedThings things(features, 32, metric);
    Searcher searcher(&things, 32);
    const Eigen::RowVectorXf target = NormalRows(1, 10, 2);
    ASSERT_OK_AND_ASSIGN(const auto matches, searcher.Search(target, {.k = 200}));
    for (const Match& match : matches) {
      const int row = std::stoi(match.id.substr(5));
      const double norms =
          metric == v1::METRIC_COSINE ? 1 : features.row(row).norm() * double{target.norm()};
      const double shown = *match.similarity / norms * 1e4;
      EXPECT_NEAR(shown, std::round(shown), 1e-3);
      const double sum = metric == v1::METRIC_COSINE
                             ? 2
                             : features.row(row).squaredNorm() + double{target.squaredNorm()};
      EXPECT_NEAR(match.squared_distance, sum - 2 * *match.similarity, 1e-4);
    }
  }
}

// Rule 3: what scores decrypt to is never looked at but to rank.
TEST(EncryptedClient, AnyScoresOfTheRightSizeAreAccepted) {
  EncryptedThings things(NormalRows(3000, 8, 1), 32, v1::METRIC_EUCLIDEAN);
  Searcher searcher(&things, 32);
  const Eigen::RowVectorXf target = NormalRows(1, 8, 2);
  const size_t bytes = 2 * lattice::kAnswerBytes;
  std::string random(bytes, '\0');
  SeededBits seeded(1);
  ASSERT_THAT(seeded.Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(random.data()), bytes)),
              IsOk());
  for (const std::string& scores : {std::string(bytes, '\0'), std::string(bytes, '\xff'), random}) {
    PreparedEncryptedQuery prepared = searcher.Prepare(target);
    ASSERT_OK_AND_ASSIGN(const auto matches, searcher.client.Finish(std::move(prepared.state),
                                                                    scores, TableOf(things), {}));
    EXPECT_EQ(matches.size(), 8U);
    for (const Match& match : matches) EXPECT_TRUE(std::isfinite(match.squared_distance));
  }
  for (const size_t wrong : {size_t{0}, bytes - 1, bytes + lattice::kAnswerBytes}) {
    PreparedEncryptedQuery prepared = searcher.Prepare(target);
    EXPECT_THAT(searcher.client.Finish(std::move(prepared.state), std::string(wrong, '\0'),
                                       TableOf(things), {}),
                FailsWith(kInvalid, "scores must have 18432 bytes"));
  }
}

// Rule 2: refused before anything is encrypted.
TEST(EncryptedClient, OtherParametersOfTheServerAreRefused) {
  const EncryptedThings things(NormalRows(10, 8, 1));
  const auto changed = [&](const auto& change) {
    v1::GetCollectionResponse collection = things.Collection();
    change(&collection);
    return EncryptedClient::Create(collection).status();
  };
  using Collection = v1::GetCollectionResponse;
  EXPECT_THAT(changed([](Collection*) {}), IsOk());
  for (const uint32_t delta : {0U, 1U, 16U, 33U, 512U}) {
    EXPECT_THAT(changed([&](Collection* one) { one->mutable_encrypted()->set_delta(delta); }),
                FailsWith(kFailedPrecondition, "must be 32, 64, 128 or 256, but is"));
  }
  EXPECT_THAT(EncryptedClient::Create(PublishedThings().collection),
              FailsWith(kFailedPrecondition, "has no encrypted rows: it offers the scheme joint"));
  EXPECT_THAT(changed([](Collection* one) { one->mutable_encrypted()->set_rows(0); }),
              FailsWith(kFailedPrecondition, "no items yet"));
  EXPECT_THAT(changed([](Collection* one) { one->set_fingerprint(std::string(32, 'x')); }),
              FailsWith(kFailedPrecondition));
  EXPECT_THAT(changed([](Collection* one) { one->mutable_parameters()->set_extractor(""); }),
              testing::Not(IsOk()));
}

TEST(EncryptedClient, UnusableTargetsAreRefused) {
  EncryptedThings things(NormalRows(10, 8, 1));
  Searcher searcher(&things, 32);
  const auto prepare = [&](const Eigen::RowVectorXf& target) {
    return searcher.client.Prepare(target, searcher.session(), searcher.bits()).status();
  };
  EXPECT_THAT(prepare(Eigen::RowVectorXf::Ones(9)), FailsWith(kInvalid, "expected 8, got 9"));
  EXPECT_THAT(prepare(Eigen::RowVectorXf::Zero(8)), FailsWith(kInvalid, "zero"));
  EXPECT_THAT(prepare(Eigen::RowVectorXf::Constant(8, std::nanf(""))), FailsWith(kInvalid, "nan"));
  EXPECT_THAT(prepare(Eigen::RowVectorXf::Constant(8, 3e38F)), IsOk());
  EXPECT_THAT(prepare(Eigen::RowVectorXf::Constant(8, 1e-45F)), IsOk());
  const auto other = *EncryptedSession::Create(64, searcher.bits());
  EXPECT_THAT(searcher.client.Prepare(Eigen::RowVectorXf::Ones(8), other, searcher.bits()),
              FailsWith(kInvalid, "delta of the session must be 32, but is 64"));
  EXPECT_THAT(searcher.Search(Eigen::RowVectorXf::Ones(8), {.k = 0}),
              FailsWith(kInvalid, "k must"));
  EXPECT_THAT(searcher.Search(Eigen::RowVectorXf::Ones(8), {.k = 10001}), FailsWith(kInvalid));
  EXPECT_THAT(
      searcher.Search(Eigen::RowVectorXf::Ones(8), {.label = std::numeric_limits<int32_t>::min()}),
      FailsWith(kInvalid, "label must be between -2147483647 and 2147483647, but is -2147483648"));
}

// Rule 8: a fork would repeat nothing, but it has no secret, either.
TEST(EncryptedClient, ForkedProcessCannotUseTheSession) {
  EncryptedThings things(NormalRows(10, 8, 1));
  Searcher searcher(&things, 32);
  PreparedEncryptedQuery prepared = searcher.Prepare(Eigen::RowVectorXf::Ones(8));
  const RowTable table = TableOf(things);
  EXPECT_TRUE(HoldsInFork([&] {
    const auto again =
        searcher.client.Prepare(Eigen::RowVectorXf::Ones(8), searcher.session(), searcher.bits());
    const auto finished = searcher.client.Finish(
        std::move(prepared.state), std::string(lattice::kAnswerBytes, '\0'), table, {});
    return absl::IsFailedPrecondition(again.status()) &&
           absl::IsFailedPrecondition(finished.status());
  }));
  EXPECT_THAT(searcher.Search(Eigen::RowVectorXf::Ones(8)), IsOk());
}

}  // namespace
}  // namespace privatemail::client::encrypted_client_test
