// Collections with code none: items are coordinates of the server's embedding.
#include <functional>

#include "absl/strings/str_cat.h"
#include "client/schemes/published_collection.h"
#include "common/wire/codec.h"
#include "privatemail/cell_client.h"
#include "tests/testing/published_things.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail::client::cell_coordinates_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kAnchors = PublishedThings::kAnchors;
constexpr int kDim = PublishedThings::kDim;
constexpr int kClasses = PublishedThings::kClasses;

struct Published : PublishedThings {
  explicit Published(uint64_t version = 3, CellCode code = CellCode::kNone)
      : PublishedThings(version, code) {}
  absl::StatusOr<CellClient> Client() const { return CellClient::Create(collection, chunks); }
};

const CellQueryOptions kOptions{
    .cost = {.partition = 0, .ask = 2, .focus = 1, .epsilon = 1}, .items = 6, .k = 3};

Eigen::RowVectorXf Query(unsigned seed = 7) { return NormalRows(1, kDim, seed); }

Eigen::RowVectorXf CoordinatesOf(int item) { return RowOfItem(Published().parameters, item); }

v1::RetrieveCellsResponse MessageOf(int first, int items, uint64_t embedding_version = 3) {
  v1::RetrieveCellsResponse message = CellMessage(Published().parameters, first, items);
  message.set_embedding_version(embedding_version);
  return message;
}

using Answer = std::vector<v1::RetrieveCellsResponse>;
Answer SixItems() { return {MessageOf(0, 4), MessageOf(4, 2)}; }

PreparedCellQuery Prepare(const CellClient& client, std::optional<int32_t> label = std::nullopt) {
  const FundedLedger funded;
  SeededBits bits(1);
  return *client.Prepare(Query(), kOptions, *funded.ledger, bits, label);
}

TEST(CellCoordinates, RankedByDistanceToTargetPoint) {
  ASSERT_OK_AND_ASSIGN(const CellClient client, Published().Client());
  for (const int32_t label : {0, 4}) {
    const PreparedCellQuery query = Prepare(client, label);
    EXPECT_EQ(query.state.target.label, label);
    ASSERT_EQ(query.state.target.point.size(), 2);
    std::vector<std::pair<double, int>> expected;
    for (int i = 0; i < 6; ++i) {
      expected.emplace_back(
          (CoordinatesOf(i).cast<double>() - query.state.target.point).squaredNorm(), i);
    }
    std::sort(expected.begin(), expected.end());
    ASSERT_OK_AND_ASSIGN(const CellQueryResult result, client.Finish(query, SixItems()));
    EXPECT_EQ(result.candidates, 6);
    ASSERT_EQ(result.matches.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(result.matches[i].id, absl::StrCat("item ", expected[i].second));
      EXPECT_NEAR(result.matches[i].squared_distance, expected[i].first, 1e-6);
    }
  }
  EXPECT_NE(Prepare(client, 0).state.target.point, Prepare(client, 4).state.target.point);
  ASSERT_TRUE(client.targets().expected_alignment().has_value());
  EXPECT_GT(client.targets().expected_alignment()->relative_residual, .5) << "random anchors";
  EXPECT_THAT(client.targets().CheckAnchorsMatch(),
              FailsWith(absl::StatusCode::kFailedPrecondition, "land at their class"));
}

TEST(CellCoordinates, LabelDefaultsToGuess) {
  ASSERT_OK_AND_ASSIGN(const CellClient client, Published().Client());
  for (int c = 0; c < kClasses; ++c) {
    const Eigen::RowVectorXf leaning = Eigen::RowVectorXf::Unit(kDim, c);
    ASSERT_OK_AND_ASSIGN(const CellTarget guessed, client.targets().Make(leaning, 3));
    ASSERT_OK_AND_ASSIGN(const CellTarget given, client.targets().Make(leaning, 3, c));
    EXPECT_EQ(guessed.label, c);
    EXPECT_EQ(guessed.point, given.point);
  }
}

TEST(CellCoordinates, RequestDoesNotDependOnLabel) {
  ASSERT_OK_AND_ASSIGN(const CellClient client, Published().Client());
  EXPECT_EQ(Prepare(client).request.embedding_version(), 3u);
  const std::string request = Prepare(client).request.SerializeAsString();
  for (const int32_t label : {0, 1, 4}) {
    EXPECT_EQ(Prepare(client, label).request.SerializeAsString(), request);
  }
}

TEST(CellCoordinates, InvalidLabelIsNotCharged) {
  const FundedLedger funded;
  SeededBits bits(1);
  ASSERT_OK_AND_ASSIGN(const CellClient client, Published().Client());
  EXPECT_THAT(client.Prepare(Query(), kOptions, *funded.ledger, bits, 7),
              FailsWith(kInvalid, "label must be one of the collection's 5 classes"));
  ASSERT_OK_AND_ASSIGN(const CellClient coded, Published(3, CellCode::kFloat16).Client());
  EXPECT_THAT(coded.Prepare(Query(), kOptions, *funded.ledger, bits, 1),
              FailsWith(kInvalid, "label must not be given unless the collection's cell_code is"));
  EXPECT_FALSE(coded.targets().expected_alignment().has_value());
  EXPECT_THAT(coded.targets().CheckAnchorsMatch(), IsOk());
  EXPECT_EQ(funded.ledger->Show(kUuid)->spent().epsilon, 0);
}

// The client's model: wider, reversed features of the same anchors.
TEST(CellCoordinates, OwnModelGivesTheSameCellsAndPoint) {
  const Published published;
  const FloatMatrix features = JoinAnchors(published.parameters, published.chunks)->features;
  FloatMatrix own = FloatMatrix::Zero(kAnchors, kDim + 3);
  own.leftCols(kDim) = 5 * features.rowwise().reverse();
  ASSERT_OK_AND_ASSIGN(const CellClient client,
                       CellClient::Create(published.collection, published.chunks, own));
  ASSERT_OK_AND_ASSIGN(const CellClient published_model, published.Client());
  for (const unsigned seed : {7U, 8U, 9U}) {
    Eigen::RowVectorXf query = Eigen::RowVectorXf::Zero(kDim + 3);
    query.head(kDim) = Query(seed).reverse();
    EXPECT_EQ(client.scheme().NearestCells(query, 0, 3),
              published_model.scheme().NearestCells(Query(seed), 0, 3));
    ASSERT_OK_AND_ASSIGN(const CellTarget target, client.targets().Make(query, 3));
    ASSERT_OK_AND_ASSIGN(const CellTarget expected, published_model.targets().Make(Query(seed), 3));
    EXPECT_EQ(target.label, expected.label);
    EXPECT_LT((target.point - expected.point).norm(), 1e-4 * expected.point.norm());
  }
  EXPECT_THAT(client.targets().Make(Query(), 3), FailsWith(kInvalid, "expected 11, got 8"));
  const FloatMatrix fewer = own.topRows(39);
  EXPECT_THAT(CellClient::Create(published.collection, published.chunks, fewer),
              FailsWith(kInvalid, "own_anchors must be 40 rows, one an anchor, but are 39"));
  own.row(4).setZero();
  EXPECT_THAT(CellClient::Create(published.collection, published.chunks, own),
              FailsWith(kInvalid, "own_anchors row 4"));
  const Published coded(3, CellCode::kFloat16);
  EXPECT_THAT(
      CellClient::Create(coded.collection, coded.chunks, features),
      FailsWith(kInvalid, "own_anchors must not be given unless the collection's cell_code"));
}

struct AnchorFault {
  std::function<void(std::vector<v1::GetAnchorsResponse>*)> corrupt;
  const char* part;
};

const AnchorFault kAnchorFaults[] = {
    {[](auto* c) { (*c)[1].mutable_coordinates()->set_values(3, NAN); },
     "anchors, chunk 1: coordinates"},
    {[](auto* c) { ToProto(FloatMatrix(NormalRows(9, 2, 1)), (*c)[2].mutable_coordinates()); },
     "anchors, chunk 2: coordinates must be 10 x 2, one row an anchor, but are 9 x 2"},
    {[](auto* c) { ToProto(FloatMatrix(NormalRows(10, 3, 1)), (*c)[2].mutable_coordinates()); },
     "coordinates must be 10 x 2, one row an anchor, but are 10 x 3"},
    {[](auto* c) { (*c)[1].clear_coordinates(); }, "anchors, chunk 1: coordinates"},
    {[](auto* c) { (*c)[1].set_embedding_version(4); },
     "anchors, chunk 1: embedding_version must be the same in all chunks, but is 3 and 4"},
    {[](auto* c) { (*c)[0].clear_embedding_version(); },
     "anchors, chunk 0: embedding_version must be given with coordinates"},
};

TEST(CellCoordinates, CorruptAnchorsReturnDataLoss) {
  for (const AnchorFault& fault : kAnchorFaults) {
    Published published;
    fault.corrupt(&published.chunks);
    EXPECT_THAT(published.Client(), FailsWith(kDataLoss, fault.part));
  }
  Published other;
  other.chunks[0].mutable_features()->set_values(5, 9);
  EXPECT_THAT(other.Client(), FailsWith(kDataLoss, "anchors have the digest"));
}

TEST(CellCoordinates, MissingCoordinatesReturnUnavailable) {
  Published published;
  for (v1::GetAnchorsResponse& chunk : published.chunks) {
    chunk.clear_coordinates();
    chunk.clear_embedding_version();
  }
  EXPECT_THAT(published.Client(),
              FailsWith(absl::StatusCode::kUnavailable, "anchors have no coordinates yet"));
}

struct AnswerFault {
  std::function<void(Answer*)> corrupt;
  const char* part;
};

const AnswerFault kAnswerFaults[] = {
    {[](Answer* a) { (*a)[1].clear_embedding_version(); },
     "message 1: embedding_version must be given with coordinates, but is not"},
    {[](Answer* a) { (*a)[1].set_embedding_version(4); },
     "answer: embedding_version must be the same in all messages, but is 3 and 4"},
};

TEST(CellCoordinates, CorruptAnswerReturnsDataLossForEveryTarget) {
  ASSERT_OK_AND_ASSIGN(const CellClient client, Published().Client());
  PreparedCellQuery query = Prepare(client);
  for (const AnswerFault& fault : kAnswerFaults) {
    Answer answer = SixItems();
    fault.corrupt(&answer);
    for (const unsigned seed : {7U, 8U, 9U}) {
      query.state.target.point = NormalRows(1, 2, seed).cast<double>();
      EXPECT_THAT(client.Finish(query, answer), FailsWith(kDataLoss, fault.part));
    }
  }
}

TEST(CellCoordinates, RebuildDuringQueryReturnsAborted) {
  ASSERT_OK_AND_ASSIGN(const CellClient client, Published(3).Client());
  const PreparedCellQuery query = Prepare(client, 1);
  const Answer rebuilt = {MessageOf(0, 6, 4)};
  EXPECT_THAT(
      client.Finish(query, rebuilt),
      FailsWith(kAborted, "embedding_version of the answer is 4, but that of the anchors 3"));
  ASSERT_OK_AND_ASSIGN(const CellClient later, Published(4).Client());
  ASSERT_OK_AND_ASSIGN(const CellTarget target, later.targets().Make(Query(), 3, 1));
  EXPECT_NE(target.point, query.state.target.point);
  ASSERT_OK_AND_ASSIGN(const CellQueryResult result,
                       ReadCellAnswer(later.parameters(), query.request, target, rebuilt));
  EXPECT_EQ(result.matches.size(), 3u);
  ASSERT_OK_AND_ASSIGN(const CellQueryResult none, client.Finish(query, {MessageOf(0, 0)}));
  EXPECT_THAT(none.matches, IsEmpty());
}

}  // namespace
}  // namespace privatemail::client::cell_coordinates_test
