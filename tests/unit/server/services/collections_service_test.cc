#include "server/services/collections_service.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "common/rpc/status.h"
#include "common/wire/proto_conversions.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class CollectionsServiceTest : public ServiceTest {};

// The parameters' own tests have the other fields.
TEST_F(CollectionsServiceTest, CreateNamesInvalidField) {
  const std::pair<std::function<void(v1::CreateCollectionRequest*)>, const char*> faults[] = {
      {[](auto* r) { r->set_name("no spaces"); }, "name"},
      {[](auto* r) { r->mutable_settings()->set_kernel(v1::KERNEL_UNSPECIFIED); }, "kernel"},
      {[](auto* r) {
         r->mutable_settings()->set_label_graph(v1::LABEL_GRAPH_BALANCED);
         r->mutable_settings()->set_embedding_dim(3);
       },
       "embedding_dim must be at most 2, one less than the 3 classes"},
      {[](auto* r) { r->mutable_anchors()->set_cols(5); }, "anchors"},
      {[](auto* r) { r->add_cells(3); }, "cell_code must be given"},
  };
  for (const auto& [spoil, field] : faults) {
    v1::CreateCollectionRequest request = Fruit();
    spoil(&request);
    EXPECT_THAT(Create(request), FailsWith(kInvalid, field));
  }
  v1::CreateCollectionRequest collapsing = Fruit();
  collapsing.mutable_settings()->set_steps(10000);
  EXPECT_THAT(Create(collapsing), FailsWith(kFailedPrecondition,
                                            "settings do not suit the anchors: alignment refused"));
  EXPECT_THAT(ListAll().collections(), SizeIs(0));
}

TEST_F(CollectionsServiceTest, UpsertCountsOverWholeStream) {
  MakeFruit(3, false);
  std::vector<Item> first = MakeItems(4, 1);  // three with other payloads, one new
  std::vector<Item> second = MakeItems(2, 1);
  second[0].features.resize(2);
  v1::UpsertItemsResponse totals;
  ASSERT_THAT(Upsert({Message("fruit", first), Message("fruit", second)}, &totals), IsOk());
  EXPECT_EQ(totals.inserted(), 1u);
  EXPECT_EQ(totals.updated(), 3u);
  EXPECT_EQ(totals.unchanged(), 1u);
  EXPECT_EQ(totals.rejected(), 1u);
  ASSERT_EQ(totals.first_rejected_size(), 1);
  EXPECT_EQ(totals.first_rejected(0).position(), 4u);
  EXPECT_EQ(totals.first_rejected(0).id(), "item-000");
  EXPECT_THAT(totals.first_rejected(0).reason(), HasSubstr("expected 4, got 2"));
}

TEST_F(CollectionsServiceTest, UpsertListsFirstHundredRejections) {
  MakeFruit(1, false);
  std::vector<Item> items = MakeItems(150, 1);
  for (Item& item : items) item.label = 4;
  items[0].id.assign(1 << 20, 'x');
  v1::UpsertItemsResponse totals;
  ASSERT_THAT(Upsert({Message("fruit", items)}, &totals), IsOk());
  EXPECT_EQ(totals.rejected(), 150u);
  ASSERT_EQ(totals.first_rejected_size(), 100);
  EXPECT_EQ(totals.first_rejected(99).position(), 99u);
  EXPECT_EQ(totals.first_rejected(0).id(), "") << "an oversized id is not sent back";
}

TEST_F(CollectionsServiceTest, UpsertOfSeveralCollectionsReturnsInvalidArgument) {
  MakeFruit(1, false);
  EXPECT_THAT(Upsert({Message("fruit", {}), Message("fish", {})}),
              FailsWith(kInvalid, "expected 'fruit', got 'fish' in message 1"));
  EXPECT_THAT(Upsert({}), FailsWith(kInvalid, "collection must be given"));
  EXPECT_THAT(Upsert({Message("fish", {})}), FailsWith(kNotFound, "fish"));
}

TEST_F(CollectionsServiceTest, BuildReportsProgressAfterEachStep) {
  MakeFruit(6, false);
  std::vector<v1::BuildEmbeddingResponse> progress;
  ASSERT_THAT(Build("fruit", &progress), IsOk());
  ASSERT_THAT(progress, SizeIs(5));
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(progress[i].steps_done(), i);
    EXPECT_EQ(progress[i].share(), i / 3.);
    EXPECT_FALSE(progress[i].has_collection());
  }
  EXPECT_EQ(progress[4].collection().embedded_items(), 6u);
  EXPECT_EQ(progress[4].plan(), "tiled: for 18 rows exact affinities cost next to nothing");
}

// A collection whose build takes minutes unless it is stopped.
class LongBuildTest : public CollectionsServiceTest {
 protected:
  LongBuildTest() {
    EXPECT_THAT(Create(SlowFruit()), IsOk());
    std::vector<Item> items;
    for (int i = 0; i < 1500; ++i) items.push_back(MakeItem(absl::StrCat(i), 3, i));
    EXPECT_THAT(Upsert({Message("fruit", items)}), IsOk());
    build_.set_collection("fruit");
    reader_ = collections_->BuildEmbedding(&context_, build_);
    v1::BuildEmbeddingResponse first;
    EXPECT_TRUE(reader_->Read(&first));
    EXPECT_EQ(first.steps_done(), 0u);
  }

  grpc::ClientContext context_;
  v1::BuildEmbeddingRequest build_;
  std::unique_ptr<grpc::ClientReader<v1::BuildEmbeddingResponse>> reader_;
};

TEST_F(LongBuildTest, OthersSeeItsProgressUntilItEnds) {
  const auto both = [&](const std::function<bool(const v1::GetCollectionResponse&)>& hold) {
    return WaitUntil([&] { return hold(Get("fruit")) && hold(ListAll().collections(0)); });
  };
  EXPECT_TRUE(both([](const auto& one) { return one.build_share() > 0 && one.build_share() < 1; }));
  context_.TryCancel();
  EXPECT_TRUE(both([](const auto& one) { return !one.has_build_share(); }));
}

TEST_F(LongBuildTest, CancelledCallStopsBuild) {
  context_.TryCancel();
  EXPECT_THAT(FromGrpc(reader_->Finish()), FailsWith(kCancelled));
  EXPECT_TRUE(WaitUntil([&] {
    grpc::ClientContext context;
    const auto reader = collections_->BuildEmbedding(&context, build_);
    v1::BuildEmbeddingResponse first;
    const bool started = reader->Read(&first);
    context.TryCancel();
    reader->Finish();
    return started;
  })) << "the cancelled build still runs";
}

class WithoutAnchors : public ServiceTest {
 protected:
  static v1::Item Row(const std::string& id, int features) {
    v1::Item item;
    item.set_id(id);
    item.set_unlabelled(true);
    for (int i = 0; i < features; ++i) item.add_features(static_cast<float>(i + 1));
    return item;
  }

  absl::StatusOr<v1::UpsertItemsResponse> Send(const std::string& name,
                                               const std::vector<v1::Item>& items) {
    v1::UpsertItemsRequest message;
    message.set_collection(name);
    for (const v1::Item& item : items) *message.add_items() = item;
    v1::UpsertItemsResponse totals;
    const absl::Status status = Upsert({message}, &totals);
    if (!status.ok()) return status;
    return totals;
  }
};

TEST_F(WithoutAnchors, UploadsNameClassesBeforeTheFirstItem) {
  ASSERT_THAT(Create(Notes()), IsOk());
  v1::UpsertItemsRequest message;
  message.set_collection("notes");
  message.add_class_names("");
  EXPECT_THAT(Upsert({message}), FailsWith(kInvalid, "class_names[0] must be 1 to 256 bytes"));
  ASSERT_THAT(Send("notes", {Row("a", 3)}), IsOk());
  message.set_class_names(0, "tea");
  EXPECT_THAT(Upsert({message}), FailsWith(kInvalid, "class_names must be absent"));
  EXPECT_EQ(Get("notes").parameters().class_names_size(), 0);
}

// The parameters' own tests have the other fields.
TEST_F(WithoutAnchors, CreateNamesWhatNeedsAnchors) {
  v1::CreateCollectionRequest request = Notes();
  ToProto(EmbeddingSettings(), request.mutable_settings());
  EXPECT_THAT(Create(request),
              FailsWith(kInvalid, "settings must not be given where there are no anchors"));
  request = Notes();
  request.add_anchor_labels(3);
  EXPECT_THAT(Create(request), FailsWith(kInvalid, "anchor_labels must not be given"));
  request = Notes();
  request.add_cells(3);
  request.set_cell_code(v1::CELL_CODE_SCALAR8);
  EXPECT_THAT(Create(request), FailsWith(kInvalid, "cells must not be given"));
  request = Fruit();
  request.set_metric(v1::METRIC_DOT);
  request.set_with_encrypted(true);
  EXPECT_THAT(Create(request), IsOk());
  EXPECT_EQ(Get("fruit").parameters().metric(), v1::METRIC_DOT);
}

TEST_F(WithoutAnchors, CallsOfOtherSchemesNameWhatIsOffered) {
  ASSERT_THAT(Create(Notes()), IsOk());
  const std::string fingerprint = Get("notes").fingerprint();
  const auto refused = FailsWith(kFailedPrecondition,
                                 "collection notes has no anchors: it offers the scheme encrypted");
  grpc::ClientContext context;
  v1::GetAnchorsRequest anchors;
  anchors.set_collection("notes");
  anchors.set_fingerprint(fingerprint);
  EXPECT_THAT(FromGrpc(retrieval_->GetAnchors(&context, anchors)->Finish()), refused);
  v1::RetrieveRequest retrieve;
  retrieve.set_collection("notes");
  retrieve.set_fingerprint(fingerprint);
  retrieve.set_k(1);
  EXPECT_THAT(Ask(retrieval_.get(), &Retrieval::Retrieve, retrieve), refused);
  EXPECT_THAT(Build("notes"), refused);
  grpc::health::v1::HealthCheckRequest check;
  check.set_service("privatemail.collection.notes");
  using grpc::health::v1::Health;
  const auto stub =
      Health::NewStub(Connect(daemon_->address(), grpc::InsecureChannelCredentials()));
  ASSERT_OK_AND_ASSIGN(const auto health, Ask(stub.get(), &Health::Stub::Check, check));
  EXPECT_EQ(health.status(), grpc::health::v1::HealthCheckResponse::SERVING) << "without a build";
}

TEST_F(WithoutAnchors, LimitOfDimensionsHoldsForFirstItems) {
  DaemonOptions options;
  options.limits.max_dims = 4;
  Serve(options);
  ASSERT_THAT(Create(Notes()), IsOk());
  EXPECT_THAT(Send("notes", {Row("a", 4), Row("b", 5)}),
              FailsWith(kExhausted, "first items is 5, more than the limit of 4"));
  EXPECT_EQ(Get("notes").parameters().feature_dim(), 0u);
  EXPECT_THAT(Send("notes", {Row("a", 4)}), IsOk());
}

}  // namespace
}  // namespace privatemail::testing
