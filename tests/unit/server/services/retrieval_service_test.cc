#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/rpc/status.h"
#include "common/wire/proto_conversions.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

using ::testing::SizeIs;

class RetrievalServiceTest : public ServiceTest {
 protected:
  v1::RetrieveRequest RequestFor(const v1::GetCollectionResponse& collection) {
    v1::RetrieveRequest request;
    request.set_collection("fruit");
    request.set_fingerprint(collection.fingerprint());
    ToProto(Matrix(Matrix::Random(15, 2)), request.mutable_release());
    request.set_k(4);
    return request;
  }

  absl::Status Retrieve(const v1::RetrieveRequest& request, v1::RetrieveResponse* response) {
    const auto answer = Ask(retrieval_.get(), &Retrieval::Retrieve, request);
    if (answer.ok()) *response = *answer;
    return answer.status();
  }

  absl::StatusOr<std::vector<v1::GetAnchorsResponse>> GetAnchors(const std::string& fingerprint) {
    grpc::ClientContext context;
    v1::GetAnchorsRequest request;
    request.set_collection("fruit");
    request.set_fingerprint(fingerprint);
    const auto reader = retrieval_->GetAnchors(&context, request);
    std::vector<v1::GetAnchorsResponse> chunks(1);
    while (reader->Read(&chunks.back())) chunks.emplace_back();
    chunks.pop_back();
    const absl::Status status = FromGrpc(reader->Finish());
    if (!status.ok()) return status;
    return chunks;
  }
};

// Another daemon of the same store may have announced a later embedding.
TEST_F(RetrievalServiceTest, LaterEmbeddingVersionReturnsUnavailable) {
  v1::RetrieveRequest request = RequestFor(MakeFruit(6, true));
  v1::RetrieveResponse response;
  request.set_embedding_version(1);
  EXPECT_THAT(Retrieve(request, &response), IsOk());
  request.set_embedding_version(2);
  EXPECT_THAT(Retrieve(request, &response),
              FailsWith(kUnavailable,
                        "embedding_version 2 of collection fruit is not here yet: this daemon has "
                        "version 1"));
  EXPECT_THAT(Build("fruit"), IsOk());
  EXPECT_THAT(Retrieve(request, &response), IsOk());
  EXPECT_EQ(response.embedding_version(), 2u);
  request.set_embedding_version(1);
  EXPECT_THAT(Retrieve(request, &response), IsOk());
  EXPECT_EQ(response.embedding_version(), 2u);
}

TEST_F(RetrievalServiceTest, CountsChangesSinceEmbedding) {
  MakeFruit(6, true);
  const std::vector<Item> more = {MakeItem("item-000", 3, 99), MakeItem("new", 3, 1),
                                  MakeItem("newer", 3, 2)};
  ASSERT_THAT(Upsert({Message("fruit", more)}), IsOk());
  ASSERT_THAT(DeleteItems("fruit", {"item-005"}), IsOk());
  const v1::GetCollectionResponse collection = Get("fruit");
  EXPECT_EQ(collection.changes_since_embedding(), 4u);
  EXPECT_EQ(collection.changes().inserted(), 2u);
  EXPECT_EQ(collection.changes().updated(), 1u);
  EXPECT_EQ(collection.changes().deleted(), 1u);
}

TEST_F(RetrievalServiceTest, AnchorsOfBuiltCollectionHaveTheCoordinatesThatAnswersAlignTo) {
  v1::RetrieveRequest request = RequestFor(MakeFruit(6, true));
  request.set_with_alignment(true);
  v1::RetrieveResponse response;
  ASSERT_THAT(Retrieve(request, &response), IsOk());
  const std::vector<v1::GetAnchorsResponse> chunks = *GetAnchors(request.fingerprint());
  ASSERT_THAT(chunks, SizeIs(1));
  EXPECT_EQ(chunks[0].embedding_version(), response.embedding_version());
  EXPECT_EQ(chunks[0].coordinates().SerializeAsString(),
            response.alignment().server_anchors().SerializeAsString());
  EXPECT_THAT(GetAnchors(""), FailsWith(kFailedPrecondition, "was prepared for none"));
}

TEST_F(RetrievalServiceTest, ReturnsSlotsWithRequestedFields) {
  v1::RetrieveRequest request = RequestFor(MakeFruit(6, true));
  v1::RetrieveResponse plain;
  ASSERT_THAT(Retrieve(request, &plain), IsOk());
  ASSERT_EQ(plain.slots_size(), 3);
  for (const v1::SlotMatches& slot : plain.slots()) {
    ASSERT_EQ(slot.matches_size(), 4);
    EXPECT_EQ(slot.matches(0).payload(), "");
    EXPECT_GE(slot.matches(3).squared_distance(), slot.matches(0).squared_distance());
  }
  EXPECT_EQ(plain.alignment().rotation_size(), 4);
  EXPECT_EQ(plain.alignment().translation_size(), 2);
  EXPECT_FALSE(plain.alignment().has_server_anchors());
  EXPECT_GT(plain.server_seconds(), 0);
  EXPECT_FALSE(plain.truncated());

  request.set_with_payloads(true);
  request.set_k(100);
  v1::RetrieveResponse full;
  ASSERT_THAT(Retrieve(request, &full), IsOk());
  EXPECT_TRUE(full.truncated());
  for (const v1::SlotMatches& slot : full.slots()) {
    ASSERT_EQ(slot.matches_size(), 6);
    for (const v1::Match& match : slot.matches()) {
      EXPECT_EQ(match.payload(), absl::StrCat("{\"file\":\"", match.id(), ".png\"}"));
    }
  }
}

TEST_F(RetrievalServiceTest, InvalidRequestReturnsItsStatus) {
  const v1::RetrieveRequest good = RequestFor(MakeFruit(6, true));
  struct Case {
    std::function<void(v1::RetrieveRequest*)> spoil;
    absl::StatusCode code;
    std::string text;
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  for (const Case& bad : {
           Case{[](auto* r) { r->clear_collection(); }, invalid, "collection must be given"},
           Case{[](auto* r) { r->set_collection("fish"); }, absl::StatusCode::kNotFound, "fish"},
           Case{[](auto* r) { r->set_fingerprint(std::string(32, 'x')); },
                absl::StatusCode::kFailedPrecondition,
                absl::StrCat(ToHex(good.fingerprint()), ", the request was prepared for 7878")},
           Case{[](auto* r) { r->set_fingerprint(std::string(10'000'000, 'x')); },
                absl::StatusCode::kFailedPrecondition,
                "fingerprint mismatch: expected 32 bytes, got 10000000"},
           Case{[](auto* r) { r->set_filter("{\"and\":[]}"); }, invalid, "filter.and must be"},
           Case{[](auto* r) { r->clear_release(); }, invalid, "release"},
           Case{[](auto* r) { r->mutable_release()->set_values(9, NAN); }, invalid,
                "release row 4: value in column 1 is nan"},
           Case{[](auto* r) {
                  r->mutable_release()->set_rows(1u << 31);
                  r->mutable_release()->set_cols(1u << 31);
                },
                absl::StatusCode::kResourceExhausted, "release is 2147483648 x 2147483648"},
       }) {
    v1::RetrieveRequest request = good;
    bad.spoil(&request);
    v1::RetrieveResponse response;
    EXPECT_THAT(Retrieve(request, &response), FailsWith(bad.code, bad.text));
  }
}

TEST_F(RetrievalServiceTest, AnchorChunksEqualOriginal) {
  // 3,000 x 256 floats are 3 MiB and a bit less.
  v1::CreateCollectionRequest request = Fruit();
  const FloatMatrix features = FloatMatrix::Random(3000, 256);
  ToProto(features, request.mutable_anchors());
  request.clear_anchor_labels();
  for (int i = 0; i < 3000; ++i) request.add_anchor_labels(i % 7);
  ASSERT_OK_AND_ASSIGN(const v1::CreateCollectionResponse created, Create(request));
  ASSERT_OK_AND_ASSIGN(const auto chunks, GetAnchors(created.collection().fingerprint()));
  EXPECT_THAT(chunks, SizeIs(3));
  Anchors received;
  std::vector<float> values;
  for (const v1::GetAnchorsResponse& chunk : chunks) {
    EXPECT_LE(chunk.ByteSizeLong(), (1u << 20) + 65536u);
    EXPECT_EQ(static_cast<int>(chunk.features().rows()), chunk.labels_size());
    values.insert(values.end(), chunk.features().values().begin(), chunk.features().values().end());
    received.labels.insert(received.labels.end(), chunk.labels().begin(), chunk.labels().end());
  }
  ASSERT_THAT(values, SizeIs(3000 * 256));
  received.features = Eigen::Map<const FloatMatrix>(values.data(), 3000, 256);
  EXPECT_EQ(received.features, features);
  EXPECT_EQ(DigestOf(received), created.collection().parameters().anchor_digest());
}

TEST_F(RetrievalServiceTest, LogsNeitherVectorsNorPayloads) {
  ::testing::internal::CaptureStderr();
  v1::RetrieveRequest request = RequestFor(MakeFruit(6, true));
  request.mutable_release()->set_values(0, 0.123456789F);
  request.set_with_payloads(true);
  v1::RetrieveResponse response;
  EXPECT_THAT(Retrieve(request, &response), IsOk());
  request.set_collection("x\" code=OK\nforged");
  EXPECT_FALSE(Retrieve(request, &response).ok());
  daemon_->Drain(absl::Seconds(1));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, ::testing::ContainsRegex(
                       " INFO call rpc=Retrieve key=\"\" collection=fruit code=OK ms="));
  EXPECT_THAT(log, ::testing::HasSubstr(R"(collection="x\" code=OK\nforged" code=NOT_FOUND)"));
  for (const char* secret : {"0.1234", "file", ".png", "item-"}) {
    EXPECT_THAT(log, ::testing::Not(::testing::HasSubstr(secret)));
  }
}

}  // namespace
}  // namespace privatemail::testing
