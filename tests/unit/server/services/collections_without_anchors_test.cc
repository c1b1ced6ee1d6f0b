// Collections without anchors over the network.
#include "common/rpc/status.h"
#include "common/wire/proto_conversions.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

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

// ItemLabelProto's tests have the labels that are refused.
TEST_F(WithoutAnchors, LabelsAreStoredOrMissing) {
  ASSERT_THAT(Create(Notes()), IsOk());
  std::vector<v1::Item> items = {Row("a", 3), Row("b", 3)};
  items[1].set_unlabelled(false);
  items[1].set_label(12);
  ASSERT_THAT(Send("notes", items), IsOk());
  ASSERT_OK_AND_ASSIGN(const v1::GetItemsResponse response, GetItems("notes", {"a", "b"}));
  EXPECT_TRUE(response.items(0).unlabelled());
  EXPECT_EQ(response.items(0).label(), 0);
  EXPECT_FALSE(response.items(1).unlabelled());
  EXPECT_EQ(response.items(1).label(), 12);
  items[0].set_label(4);
  EXPECT_THAT(Send("notes", items),
              FailsWith(kInvalid, "items[0]: label must be 0 where unlabelled is set, but is 4"));
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
  request = Notes();
  request.set_metric(static_cast<v1::Metric>(7));
  EXPECT_THAT(Create(request), FailsWith(kInvalid, "metric must be 1"));
  request = Fruit();
  request.set_metric(v1::METRIC_DOT);
  EXPECT_THAT(Create(request), FailsWith(kInvalid, "metric must be cosine unless with_encrypted"));
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
