// Collections without anchors over the network.
#include "common/items/item_checks.h"
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
  items = {Row("c", 3)};
  items[0].set_unlabelled(false);
  items[0].set_label(kNoLabel);
  EXPECT_THAT(Send("notes", items), FailsWith(kInvalid, "label must not be -2147483648"));
}

TEST_F(WithoutAnchors, CreateNamesWhatNeedsAnchors) {
  struct Case {
    std::function<void(v1::CreateCollectionRequest*)> spoil;
    const char* message;
  };
  for (const Case& bad : {
           Case{[](auto* r) { ToProto(EmbeddingSettings(), r->mutable_settings()); },
                "settings must not be given where there are no anchors"},
           Case{[](auto* r) { r->add_anchor_labels(3); }, "anchor_labels must not be given"},
           Case{[](auto* r) { r->add_class_names("a"); }, "class_names must not be given"},
           Case{[](auto* r) {
                  r->add_cells(3);
                  r->set_cell_code(v1::CELL_CODE_SCALAR8);
                },
                "cells must not be given"},
           Case{[](auto* r) { r->set_publish_quality(true); }, "publish_quality must not be given"},
           Case{[](auto* r) { r->set_metric(static_cast<v1::Metric>(7)); }, "metric must be 1"},
           Case{[](auto* r) { r->clear_extractor(); }, "extractor must name"},
       }) {
    v1::CreateCollectionRequest request = Notes();
    bad.spoil(&request);
    EXPECT_THAT(Create(request), FailsWith(kInvalid, bad.message));
  }
  v1::CreateCollectionRequest fruit = Fruit();
  fruit.set_metric(v1::METRIC_DOT);
  EXPECT_THAT(Create(fruit), FailsWith(kInvalid, "metric must be cosine unless with_encrypted"));
  fruit.set_with_encrypted(true);
  EXPECT_THAT(Create(fruit), IsOk());
  EXPECT_EQ(Get("fruit").parameters().metric(), v1::METRIC_DOT);
}

TEST_F(WithoutAnchors, CallsOfOtherSchemesNameWhatIsOffered) {
  ASSERT_THAT(Create(Notes()), IsOk());
  ASSERT_THAT(Send("notes", {Row("a", 3)}), IsOk());
  const std::string fingerprint = Get("notes").fingerprint();
  constexpr char kMessage[] = "collection notes has no anchors: it offers the scheme encrypted";
  grpc::ClientContext anchors_context, cells_context;
  v1::GetAnchorsRequest anchors;
  anchors.set_collection("notes");
  anchors.set_fingerprint(fingerprint);
  EXPECT_THAT(FromGrpc(retrieval_->GetAnchors(&anchors_context, anchors)->Finish()),
              FailsWith(kFailedPrecondition, kMessage));
  v1::RetrieveRequest retrieve;
  retrieve.set_collection("notes");
  retrieve.set_fingerprint(fingerprint);
  retrieve.set_k(1);
  EXPECT_THAT(Ask(retrieval_.get(), &Retrieval::Retrieve, retrieve),
              FailsWith(kFailedPrecondition, kMessage));
  v1::RetrieveCellsRequest cells;
  cells.set_collection("notes");
  cells.set_fingerprint(fingerprint);
  EXPECT_THAT(FromGrpc(retrieval_->RetrieveCells(&cells_context, cells)->Finish()),
              FailsWith(kFailedPrecondition,
                        "collection notes has no cells: it offers the scheme encrypted"));
  EXPECT_THAT(Build("notes"), FailsWith(kFailedPrecondition, kMessage));
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
