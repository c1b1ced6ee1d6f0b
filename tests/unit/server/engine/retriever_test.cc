#include "server/engine/retriever.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

using ::testing::SizeIs;

// Three slots, twelve anchors, six items on a known grid.
class RetrieverTest : public ::testing::Test {
 protected:
  RetrieverTest() {
    embedding_.version = 7;
    for (const Item& item : MakeItems(6, 1)) {
      embedding_.ids.push_back(item.id);
      embedding_.labels.push_back(item.label);
      embedding_.payloads.push_back(absl::StrCat("\"", item.id, "\""));
    }
    embedding_.coordinates.resize(6, 2);
    embedding_.coordinates << 0, 0, 1, 0, 2, 0, 0, 1, 1, 1, 2, 1;
    embedding_.anchor_coordinates = Matrix::Random(12, 2);
  }

  Retriever MakeRetriever() const {
    return Retriever(collection_.parameters, collection_.anchors.labels, embedding_);
  }

  // The release with `slots` in server coordinates, mapped by the inverse of
  // y = 2 x R + t with R a rotation by 30 degrees.
  Matrix ReleaseOf(const Matrix& slots) const {
    Matrix target(slots.rows() + 12, 2);
    target << slots, embedding_.anchor_coordinates;
    Matrix rotation(2, 2);
    rotation << std::sqrt(.75), .5, -.5, std::sqrt(.75);
    RowVector translation(2);
    translation << 3, -1;
    return (target.rowwise() - translation) * rotation.transpose() / 2;
  }

  RetrievalQuery QueryOf(const Matrix& slots) const { return {ReleaseOf(slots), 0, 2, nullptr}; }

  const StoredCollection collection_ = SmallCollection("fruit");
  Embedding embedding_;
  Matrix slots_ = (Matrix(3, 2) << 2.1, 0, .1, 1, 1, .2).finished();
};

TEST_F(RetrieverTest, FindsNearestItemsUnderSimilarity) {
  RetrievalQuery query = QueryOf(slots_);
  ASSERT_OK_AND_ASSIGN(const RetrievalAnswer answer, MakeRetriever().Retrieve(query));
  ASSERT_THAT(answer.slots, SizeIs(3));
  const int64_t expected[3][2] = {{2, 5}, {3, 4}, {1, 4}};
  const double distance[3][2] = {{.01, 1.01}, {.01, .81}, {.04, .64}};
  for (int slot = 0; slot < 3; ++slot) {
    ASSERT_THAT(answer.slots[slot], SizeIs(2));
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(answer.slots[slot][rank].row, expected[slot][rank]) << slot << " " << rank;
      EXPECT_NEAR(answer.slots[slot][rank].squared_distance, distance[slot][rank], 1e-12);
    }
  }
  EXPECT_NEAR(answer.alignment.scale, 2, 1e-12);
  EXPECT_NEAR(answer.alignment.translation[0], 3, 1e-12);
  EXPECT_NEAR(answer.relative_residual, 0, 1e-12);
  query.k = 6;
  EXPECT_FALSE(MakeRetriever().Retrieve(query)->truncated);
  query.k = 7;
  ASSERT_OK_AND_ASSIGN(const RetrievalAnswer all, MakeRetriever().Retrieve(query));
  EXPECT_TRUE(all.truncated);
  for (const auto& slot : all.slots) EXPECT_THAT(slot, SizeIs(6));
}

// More slots than are searched per pass.
TEST_F(RetrieverTest, FindsNearestItemsOfManySlots) {
  PublicParameters parameters = collection_.parameters;
  parameters.slot_labels.assign(37, 0);
  const Retriever retriever(parameters, collection_.anchors.labels, embedding_);
  const Matrix slots = slots_.replicate(13, 1).topRows(37);
  ASSERT_OK_AND_ASSIGN(const RetrievalAnswer answer, retriever.Retrieve(QueryOf(slots)));
  ASSERT_THAT(answer.slots, SizeIs(37));
  const int64_t nearest[] = {2, 3, 1};
  for (size_t slot = 0; slot < 37; ++slot) {
    EXPECT_EQ(answer.slots[slot][0].row, nearest[slot % 3]) << slot;
  }
}

TEST_F(RetrieverTest, BreaksTiesById) {
  embedding_.coordinates.setZero();
  ASSERT_OK_AND_ASSIGN(const RetrievalAnswer answer, MakeRetriever().Retrieve(QueryOf(slots_)));
  EXPECT_EQ(answer.slots[0][0].row, 0);
  EXPECT_EQ(answer.slots[0][1].row, 1);
}

TEST_F(RetrieverTest, AppliesFilterAndHiddenRowsInEverySlot) {
  for (size_t row = 0; row < 6; ++row) {
    embedding_.payloads[row] = absl::StrCat("{\"row\":", row, "}");
  }
  const Retriever retriever = MakeRetriever();
  RetrievalQuery query = QueryOf(slots_);
  query.filter = *PayloadFilter::Parse(R"({"path":"row","gte":3})");
  ASSERT_OK_AND_ASSIGN(const RetrievalAnswer filtered, retriever.Retrieve(query));
  const int64_t nearest[] = {5, 3, 4};  // of the rows 3, 4 and 5
  for (int slot = 0; slot < 3; ++slot) {
    ASSERT_THAT(filtered.slots[slot], SizeIs(2));
    EXPECT_EQ(filtered.slots[slot][0].row, nearest[slot]) << slot;
    EXPECT_GE(filtered.slots[slot][1].row, 3) << slot;
  }
  EXPECT_NEAR(filtered.slots[0][0].squared_distance, 1.01, 1e-12);

  auto hidden = std::make_shared<HiddenRows>();
  hidden->hidden = {false, true, false, false, true, false};
  hidden->count = 2;
  query.hidden = hidden;
  query.k = 3;
  ASSERT_OK_AND_ASSIGN(const RetrievalAnswer both, retriever.Retrieve(query));
  EXPECT_TRUE(both.truncated) << "two can be found";
  for (const auto& slot : both.slots) EXPECT_THAT(slot, SizeIs(2));
  query.filter.reset();
  ASSERT_OK_AND_ASSIGN(const RetrievalAnswer unfiltered, retriever.Retrieve(query));
  EXPECT_FALSE(unfiltered.truncated);
  for (const auto& slot : unfiltered.slots) {
    ASSERT_THAT(slot, SizeIs(3));
    for (const Neighbor& neighbor : slot) EXPECT_FALSE(hidden->hidden[neighbor.row]);
  }
}

TEST_F(RetrieverTest, PostProcessingEqualsClientSide) {
  const Retriever retriever = MakeRetriever();
  const EmbeddingSettings& settings = collection_.parameters.settings;
  std::vector<int32_t> labels = {3, 5, 9};
  labels.insert(labels.end(), collection_.anchors.labels.begin(), collection_.anchors.labels.end());
  RetrievalQuery by_server{Matrix::Random(15, 2), settings.steps, 6, nullptr};
  RetrievalQuery by_client{
      *PostProcess(by_server.release,
                   LabelGraph(labels, settings.label_graph, settings.KernelDenominator()),
                   settings),
      0, 6, nullptr};
  ASSERT_OK_AND_ASSIGN(const RetrievalAnswer server, retriever.Retrieve(by_server));
  ASSERT_OK_AND_ASSIGN(const RetrievalAnswer client, retriever.Retrieve(by_client));
  EXPECT_NEAR(server.relative_residual, client.relative_residual, 1e-9);
  for (int slot = 0; slot < 3; ++slot) {
    for (int rank = 0; rank < 6; ++rank) {
      EXPECT_EQ(server.slots[slot][rank].row, client.slots[slot][rank].row);
      EXPECT_NEAR(server.slots[slot][rank].squared_distance,
                  client.slots[slot][rank].squared_distance, 1e-9);
    }
  }
}

TEST_F(RetrieverTest, InvalidQueryIsRefused) {
  const auto refuse = [&](const std::function<void(RetrievalQuery*)>& spoil, absl::StatusCode code,
                          const std::string& message) {
    RetrievalQuery query = QueryOf(slots_);
    spoil(&query);
    EXPECT_THAT(MakeRetriever().Retrieve(query), FailsWith(code, message));
  };
  refuse([](auto* q) { q->k = 0; }, kInvalid, "k must be between 1 and 10000");
  refuse([](auto* q) { q->k = 10001; }, kExhausted, "k is 10001, more than the limit of 10000");
  for (const int64_t steps : {2, -1}) {
    refuse([&](auto* q) { q->post_processing_steps = steps; }, kInvalid,
           "must be 0 or the collection's steps 3");
  }
  for (const auto& shape : {std::pair{14, 2}, {16, 2}, {15, 3}, {15, 1}, {0, 0}}) {
    refuse([&](auto* q) { q->release = Matrix::Random(shape.first, shape.second); }, kInvalid,
           absl::StrCat("release has the wrong dimension: expected 15 x 2, got ", shape.first,
                        " x ", shape.second));
  }
  refuse([](auto* q) { q->release.col(1) = 3 * q->release.col(0); }, kFailedPrecondition,
         "residual");
  refuse([](auto* q) { *q = {Matrix::Zero(15, 2), 3, 2, nullptr}; }, kFailedPrecondition, "norm");
}

TEST_F(RetrieverTest, CancellationAtAnyPointReturnsCancelled) {
  RetrievalQuery query = QueryOf(slots_);
  query.post_processing_steps = 3;
  // Polled before, after each of three steps of post-processing, and before the slots.
  for (int polls_before = 0; polls_before < 5; ++polls_before) {
    int polls = 0;
    query.cancelled = [&] { return polls++ == polls_before; };
    EXPECT_THAT(MakeRetriever().Retrieve(query), FailsWith(kCancelled));
  }
  int polls = 0;
  query.cancelled = [&] { return ++polls == 0; };
  EXPECT_THAT(MakeRetriever().Retrieve(query), IsOk());
  EXPECT_EQ(polls, 5);
}

}  // namespace
}  // namespace privatemail::testing
