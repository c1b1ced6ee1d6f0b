// Collections without anchors, and anchors without labels, over the network.
#include <limits>

#include "common/embedding/default_settings.h"
#include "common/items/item_label.h"
#include "common/rpc/status.h"
#include "common/wire/codec.h"
#include "common/wire/parameters_proto.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

class WithoutAnchors : public ServiceTest {
 protected:
  explicit WithoutAnchors(DaemonOptions options = {}) : ServiceTest(std::move(options)) {}

  static v1::CreateCollectionRequest Notes() {
    v1::CreateCollectionRequest request;
    request.set_name("notes");
    request.set_metric(v1::METRIC_COSINE);
    request.set_extractor("vectors");
    return request;
  }

  static v1::CreateCollectionRequest Shapes() {
    v1::CreateCollectionRequest request = Fruit();
    request.set_name("shapes");
    request.clear_anchor_labels();
    ToProto(DefaultSettings({}), request.mutable_settings());
    request.add_cells(3);
    request.set_cell_code(v1::CELL_CODE_SCALAR8);
    return request;
  }

  absl::StatusOr<v1::GetCollectionResponse> Get(const std::string& name) const {
    grpc::ClientContext context;
    v1::GetCollectionRequest request;
    request.set_collection(name);
    request.set_with_changes(true);
    v1::GetCollectionResponse response;
    const absl::Status status = FromGrpc(retrieval_->GetCollection(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

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

TEST_F(WithoutAnchors, FirstItemFixesTheDimensionOfTheStream) {
  ASSERT_THAT(Create(Notes()), IsOk());
  ASSERT_OK_AND_ASSIGN(const v1::GetCollectionResponse empty, Get("notes"));
  EXPECT_EQ(empty.parameters().feature_dim(), 0u);
  EXPECT_TRUE(empty.parameters().with_encrypted());
  EXPECT_FALSE(empty.parameters().has_settings());
  v1::UpsertItemsRequest first, second;
  first.set_collection("notes");
  second.set_collection("notes");
  *first.add_items() = Row("a", 5);
  *second.add_items() = Row("b", 6);
  *second.add_items() = Row("c", 5);
  v1::UpsertItemsResponse totals;
  ASSERT_THAT(Upsert({first, second}, &totals), IsOk());
  EXPECT_EQ(totals.inserted(), 2u);
  ASSERT_EQ(totals.first_rejected_size(), 1);
  EXPECT_EQ(totals.first_rejected(0).reason(),
            "features has the wrong dimension: expected 5, got 6");
  ASSERT_OK_AND_ASSIGN(const v1::GetCollectionResponse filled, Get("notes"));
  EXPECT_EQ(filled.parameters().feature_dim(), 5u);
  EXPECT_EQ(filled.items(), 2u);
  EXPECT_EQ(filled.changes_since_embedding(), 0u);
  EXPECT_FALSE(filled.has_changes());
  EXPECT_NE(filled.fingerprint(), empty.fingerprint());
}

TEST_F(WithoutAnchors, LabelsAreStoredOrMissing) {
  ASSERT_THAT(Create(Notes()), IsOk());
  std::vector<v1::Item> items = {Row("a", 3), Row("b", 3)};
  items[1].set_unlabelled(false);
  items[1].set_label(12);
  ASSERT_THAT(Send("notes", items), IsOk());
  grpc::ClientContext context;
  v1::GetItemsRequest request;
  request.set_collection("notes");
  request.add_ids("a");
  request.add_ids("b");
  v1::GetItemsResponse response;
  ASSERT_TRUE(collections_->GetItems(&context, request, &response).ok());
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
  EXPECT_EQ(Get("fruit")->parameters().metric(), v1::METRIC_DOT);
}

TEST_F(WithoutAnchors, CallsOfOtherSchemesNameWhatIsOffered) {
  ASSERT_THAT(Create(Notes()), IsOk());
  ASSERT_THAT(Send("notes", {Row("a", 3)}), IsOk());
  const std::string fingerprint = Get("notes")->fingerprint();
  constexpr char kMessage[] = "collection notes has no anchors: it offers the scheme encrypted";
  grpc::ClientContext anchors_context, retrieve_context, cells_context, health_context;
  v1::GetAnchorsRequest anchors;
  anchors.set_collection("notes");
  anchors.set_fingerprint(fingerprint);
  EXPECT_THAT(FromGrpc(retrieval_->GetAnchors(&anchors_context, anchors)->Finish()),
              FailsWith(kFailedPrecondition, kMessage));
  v1::RetrieveRequest retrieve;
  retrieve.set_collection("notes");
  retrieve.set_fingerprint(fingerprint);
  retrieve.set_k(1);
  v1::RetrieveResponse found;
  EXPECT_THAT(FromGrpc(retrieval_->Retrieve(&retrieve_context, retrieve, &found)),
              FailsWith(kFailedPrecondition, kMessage));
  v1::RetrieveCellsRequest cells;
  cells.set_collection("notes");
  cells.set_fingerprint(fingerprint);
  EXPECT_THAT(FromGrpc(retrieval_->RetrieveCells(&cells_context, cells)->Finish()),
              FailsWith(kFailedPrecondition,
                        "collection notes has no cells: it offers the scheme encrypted"));
  std::vector<v1::BuildEmbeddingResponse> progress;
  EXPECT_THAT(Build("notes", &progress), FailsWith(kFailedPrecondition, kMessage));
  grpc::health::v1::HealthCheckRequest check;
  check.set_service("privatemail.collection.notes");
  grpc::health::v1::HealthCheckResponse health;
  const auto channel = Connect(daemon_->address(), grpc::InsecureChannelCredentials());
  ASSERT_TRUE(
      grpc::health::v1::Health::NewStub(channel)->Check(&health_context, check, &health).ok());
  EXPECT_EQ(health.status(), grpc::health::v1::HealthCheckResponse::SERVING) << "without a build";
}

TEST_F(WithoutAnchors, AnchorsWithoutLabelsAnswerForCells) {
  ASSERT_THAT(Create(Shapes()), IsOk());
  std::vector<Item> items = MakeItems(20, 1);
  v1::UpsertItemsRequest message = Message("shapes", items);
  message.mutable_items(0)->set_unlabelled(true);
  message.mutable_items(0)->set_label(0);
  v1::UpsertItemsResponse totals;
  ASSERT_THAT(Upsert({message}, &totals), IsOk());
  std::vector<v1::BuildEmbeddingResponse> progress;
  ASSERT_THAT(Build("shapes", &progress), IsOk());
  ASSERT_TRUE(WaitUntil([&] { return Get("shapes")->cells_status() == v1::CELLS_STATUS_READY; }));
  const std::string fingerprint = Get("shapes")->fingerprint();
  grpc::ClientContext anchors_context, retrieve_context, cells_context;
  v1::GetAnchorsRequest anchors;
  anchors.set_collection("shapes");
  anchors.set_fingerprint(fingerprint);
  const auto reader = retrieval_->GetAnchors(&anchors_context, anchors);
  v1::GetAnchorsResponse chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_EQ(chunk.features().rows(), 12u);
  EXPECT_EQ(chunk.labels_size(), 0);
  EXPECT_FALSE(reader->Read(&chunk));
  v1::RetrieveRequest retrieve;
  retrieve.set_collection("shapes");
  retrieve.set_fingerprint(fingerprint);
  retrieve.set_k(1);
  v1::RetrieveResponse found;
  EXPECT_THAT(FromGrpc(retrieval_->Retrieve(&retrieve_context, retrieve, &found)),
              FailsWith(kFailedPrecondition,
                        "collection shapes has no classes, since its anchors have no labels: it "
                        "offers the scheme cells"));
  v1::RetrieveCellsRequest request;
  request.set_collection("shapes");
  request.set_fingerprint(fingerprint);
  request.add_cells(0);
  request.add_cells(1);
  request.set_epsilon(1);
  request.set_items(100);
  const auto answer = retrieval_->RetrieveCells(&cells_context, request);
  v1::RetrieveCellsResponse part;
  std::map<std::string, int32_t> labels;
  while (answer->Read(&part)) {
    for (int i = 0; i < part.ids_size(); ++i) labels[part.ids(i)] = part.labels(i);
  }
  ASSERT_EQ(labels.size(), items.size());
  EXPECT_EQ(labels["item-000"], std::numeric_limits<int32_t>::min());
  EXPECT_EQ(labels["item-001"], items[1].label);
}

class FewDimensions : public WithoutAnchors {
 protected:
  FewDimensions() : WithoutAnchors(Limited()) {}
  static DaemonOptions Limited() {
    DaemonOptions options;
    options.limits.max_dims = 4;
    return options;
  }
};

TEST_F(FewDimensions, LimitHoldsForFirstItems) {
  ASSERT_THAT(Create(Notes()), IsOk());
  EXPECT_THAT(Send("notes", {Row("a", 4), Row("b", 5)}), FailsWith(kExhausted, "max_dims"));
  EXPECT_EQ(Get("notes")->parameters().feature_dim(), 0u);
  EXPECT_THAT(Send("notes", {Row("a", 4)}), IsOk());
}

}  // namespace
}  // namespace privatemail::testing
