// Callers who begin a stream and then neither send nor take anything.
#include "absl/time/clock.h"
#include "common/wire/codec.h"
#include "common/rpc/status.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

DaemonOptions Impatient() {
  DaemonOptions options;
  options.limits.max_concurrent = 4;
  options.limits.max_queued = 2;
  options.limits.queue_seconds = 20;
  options.limits.stream_idle_seconds = .5;
  return options;
}

class IdleCallsTest : public ServiceTest {
 protected:
  IdleCallsTest() : ServiceTest(Impatient()) {}

  absl::Status Search(const v1::GetCollectionResponse& birds) const {
    grpc::ClientContext context;
    v1::RetrieveRequest request;
    request.set_collection("birds");
    request.set_fingerprint(birds.fingerprint());
    ToProto(FloatMatrix::Random(3 + 12, 2).eval(), request.mutable_release());
    request.set_k(4);
    v1::RetrieveResponse response;
    return FromGrpc(retrieval_->Retrieve(&context, request, &response));
  }

  struct Upload {
    grpc::ClientContext context;
    v1::UpsertItemsResponse totals;
    std::unique_ptr<grpc::ClientWriter<v1::UpsertItemsRequest>> writer;
  };

  std::unique_ptr<Upload> Begin() const {
    auto upload = std::make_unique<Upload>();
    upload->writer = collections_->UpsertItems(&upload->context, &upload->totals);
    return upload;
  }
};

TEST_F(IdleCallsTest, AreEndedWithLimitAndValueAndGiveTheirPlacesBack) {
  const v1::GetCollectionResponse birds = MakeBirds(6, true);
  std::vector<std::unique_ptr<Upload>> uploads;
  for (int i = 0; i < 5; ++i) uploads.push_back(Begin());  // more than there are places
  ASSERT_TRUE(uploads[1]->writer->Write(Message("birds", MakeItems(1, 70))));
  absl::SleepFor(absl::Milliseconds(200));  // until they have their places
  const absl::Time start = absl::Now();
  EXPECT_THAT(Search(birds), IsOk());
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  for (const auto& upload : uploads) {
    EXPECT_THAT(FromGrpc(upload->writer->Finish()),
                FailsWith(absl::StatusCode::kDeadlineExceeded, "0.5 s (stream_idle_seconds)"));
  }
  // What came before an idle time is stored.
  v1::GetItemsRequest get;
  get.set_collection("birds");
  get.add_ids("item-000");
  grpc::ClientContext context;
  v1::GetItemsResponse got;
  ASSERT_THAT(FromGrpc(collections_->GetItems(&context, get, &got)), IsOk());
  const std::vector<float> features = MakeItem("item-000", 3, 70).features;
  EXPECT_THAT(got.items(0).features(), ::testing::ElementsAreArray(features));
}

TEST_F(IdleCallsTest, ThatNobodyReadsAreEndedTheSameWay) {
  constexpr int kAnchors = 20'000;  // more bytes than are sent ahead
  v1::CreateCollectionRequest request = Birds();
  ToProto(FloatMatrix::Random(kAnchors, 64).eval(), request.mutable_anchors());
  request.clear_anchor_labels();
  for (int i = 0; i < kAnchors; ++i) request.add_anchor_labels(i % 3);
  grpc::ClientContext creating;
  v1::CreateCollectionResponse created;
  ASSERT_THAT(FromGrpc(collections_->CreateCollection(&creating, request, &created)), IsOk());

  v1::GetAnchorsRequest anchors;
  anchors.set_collection("birds");
  anchors.set_fingerprint(created.collection().fingerprint());
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::GetAnchorsResponse>>> readers;
  for (int i = 0; i < 4; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(retrieval_->GetAnchors(contexts.back().get(), anchors));
  }
  absl::SleepFor(absl::Milliseconds(200));  // until they have their places
  grpc::ClientContext listing;
  v1::ListCollectionsResponse list;
  EXPECT_THAT(FromGrpc(collections_->ListCollections(&listing, {}, &list)), IsOk());
  // What one does not take any more is sent to the next, which is idle again then.
  absl::SleepFor(absl::Seconds(2));
  for (const auto& reader : readers) {
    v1::GetAnchorsResponse part;
    while (reader->Read(&part)) {
    }
    EXPECT_THAT(FromGrpc(reader->Finish()),
                FailsWith(absl::StatusCode::kDeadlineExceeded, "0.5 s (stream_idle_seconds)"));
  }
}

TEST_F(IdleCallsTest, AnUploadThatIsSlowButNeverIdleGoesOn) {
  MakeBirds(1, false);
  const auto upload = Begin();
  for (unsigned i = 0; i < 5; ++i) {
    ASSERT_TRUE(upload->writer->Write(Message("birds", MakeItems(1, i))));
    absl::SleepFor(absl::Milliseconds(200));
  }
  upload->writer->WritesDone();
  EXPECT_THAT(FromGrpc(upload->writer->Finish()), IsOk());
  EXPECT_EQ(upload->totals.inserted() + upload->totals.updated() + upload->totals.unchanged(), 5u);
}

}  // namespace
}  // namespace privatemail::testing
