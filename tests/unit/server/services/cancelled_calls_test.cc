// Calls whose caller cancels or passes its deadline: work stops early, queued calls do not start.
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/rpc/status.h"
#include "common/wire/codec.h"
#include "tests/unit/server/services/daemon_state.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

class CancelledCallsTest : public ServiceTest {
 protected:
  explicit CancelledCallsTest(const DaemonOptions& options = {}) : ServiceTest(options) {}

  using Call = std::function<absl::Status(grpc::ClientContext*)>;

  std::vector<nlohmann::json> AllAudited() const { return CallsIn(directory_ / "audit.jsonl"); }

  // The audited outcome of the call after `before` others, once the daemon has ended it.
  nlohmann::json Outcome(size_t before) const {
    EXPECT_TRUE(WaitUntil([&] { return AllAudited().size() > before; }));
    return AllAudited().at(before);
  }

  // Compares the audited duration of a complete call with that of one whose caller leaves after a
  // tenth of it.
  void ExpectEndsEarly(const Call& call) const {
    const size_t before = AllAudited().size();
    {
      grpc::ClientContext context;
      ASSERT_THAT(call(&context), IsOk());
    }
    const double whole = Outcome(before)["ms"];
    ASSERT_GT(whole, 100) << "too short to measure";
    const absl::Duration patience = absl::Milliseconds(whole / 10);
    ExpectStops(whole, [&] {
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
      EXPECT_THAT(call(&context), FailsWith(kDeadlineExceeded, ""));
    });
    ExpectStops(whole, [&] {
      grpc::ClientContext context;
      std::thread canceller([&] {
        absl::SleepFor(patience);
        context.TryCancel();
      });
      EXPECT_THAT(call(&context), FailsWith(kCancelled, ""));
      canceller.join();
    });
  }

  static v1::CreateCollectionRequest WithManyCells(const std::string& name) {
    constexpr int kAnchors = 4000;
    v1::CreateCollectionRequest create = Fruit();
    create.set_name(name);
    ToProto(FloatMatrix::Random(kAnchors, 64).eval(), create.mutable_anchors());
    create.clear_anchor_labels();
    for (int i = 0; i < kAnchors; ++i) create.add_anchor_labels(i % 3);
    for (const int cells : {300, 301, 302, 303}) create.add_cells(cells);
    create.set_cell_code(v1::CELL_CODE_FLOAT16);
    return create;
  }

  // Other work on the machine delays some calls, but hardly three in a row.
  void ExpectStops(double whole, const std::function<void()>& call_and_leave) const {
    double ms = whole;
    for (int attempt = 0; attempt < 3 && ms >= .6 * whole; ++attempt) {
      const size_t before = AllAudited().size();
      call_and_leave();
      const nlohmann::json outcome = Outcome(before);
      EXPECT_EQ(outcome["code"], "CANCELLED");
      ms = outcome["ms"];
    }
    EXPECT_LT(ms, .6 * whole);
    std::printf("%.0f ms as a whole, %.0f ms for a caller who is gone\n", whole, ms);
  }
};

TEST_F(CancelledCallsTest, SearchStopsEarly) {
  constexpr int kAnchors = 200;
  v1::CreateCollectionRequest create = Fruit();
  create.mutable_settings()->set_steps(10'000);
  create.mutable_settings()->set_normalise(true);
  // After so many steps one dimension is left, in which only the classes differ.
  create.mutable_settings()->set_embedding_dim(1);
  create.mutable_settings()->set_alpha(50);
  create.mutable_settings()->set_kernel_bandwidth(.05);  // so narrow that no step is cheap
  ToProto(FloatMatrix::Random(kAnchors, kDim).eval(), create.mutable_anchors());
  create.clear_anchor_labels();
  for (const Item& item : MakeItems(kAnchors, 1)) create.add_anchor_labels(item.label);
  {
    grpc::ClientContext context;
    v1::CreateCollectionResponse created;
    ASSERT_THAT(FromGrpc(collections_->CreateCollection(&context, create, &created)), IsOk());
  }
  v1::UpsertItemsResponse totals;
  ASSERT_THAT(Upsert({Message("fruit", MakeItems(3, 1))}, &totals), IsOk());
  std::vector<v1::BuildEmbeddingResponse> progress;
  ASSERT_THAT(Build("fruit", &progress), IsOk());
  v1::RetrieveRequest request;
  request.set_collection("fruit");
  request.set_fingerprint(progress.back().collection().fingerprint());
  request.set_k(1);
  request.set_post_processing_steps(10'000);
  ToProto(FloatMatrix::Random(3 + kAnchors, 1).eval(), request.mutable_release());
  ExpectEndsEarly([&](grpc::ClientContext* context) {
    v1::RetrieveResponse response;
    return FromGrpc(retrieval_->Retrieve(context, request, &response));
  });
}

TEST_F(CancelledCallsTest, CreateStopsEarlyAndLeavesNothing) {
  int created = 0;
  ExpectEndsEarly([&](grpc::ClientContext* context) {
    v1::CreateCollectionResponse response;
    return FromGrpc(collections_->CreateCollection(
        context, WithManyCells(absl::StrCat("fruit", created++)), &response));
  });
  grpc::ClientContext context;
  v1::ListCollectionsResponse list;
  ASSERT_THAT(FromGrpc(collections_->ListCollections(&context, {}, &list)), IsOk());
  ASSERT_EQ(list.collections_size(), 1);
  EXPECT_EQ(list.collections(0).name(), "fruit0");
}

DaemonOptions LittleTimeToCreate() {
  DaemonOptions options;
  options.limits.max_create_seconds = .02;
  return options;
}

class CreateLimitTest : public CancelledCallsTest {
 protected:
  CreateLimitTest() : CancelledCallsTest(LittleTimeToCreate()) {}
};

TEST_F(CreateLimitTest, LongCreationIsRefused) {
  grpc::ClientContext context;
  v1::CreateCollectionResponse response;
  EXPECT_THAT(
      FromGrpc(collections_->CreateCollection(&context, WithManyCells("fruit"), &response)),
      FailsWith(absl::StatusCode::kResourceExhausted, "the limit of 0.02 s (max_create_seconds)"));
}

TEST_F(CancelledCallsTest, CountStopsEarly) {
  constexpr int kItems = 40'000;  // four parts
  constexpr int kItemsOfAMessage = 10'000;
  MakeFruit(0, false);
  std::vector<v1::UpsertItemsRequest> messages;
  for (int first = 0; first < kItems; first += kItemsOfAMessage) {
    std::vector<Item> items;
    for (int i = first; i < first + kItemsOfAMessage; ++i) {
      items.push_back(MakeItem(absl::StrFormat("%06d", i), 3, 1));
      items.back().payload = R"({"name":"x"})";
    }
    messages.push_back(Message("fruit", items));
  }
  v1::UpsertItemsResponse totals;
  ASSERT_THAT(Upsert(messages, &totals), IsOk());
  // A filter that takes long to evaluate.
  v1::CountItemsRequest request;
  request.set_collection("fruit");
  auto* any = request.mutable_filter()->mutable_any_of();
  for (int condition = 0; condition < 60; ++condition) {
    auto* in = any->add_filters()->mutable_in();
    in->set_path("name");
    for (int value = 0; value < 30; ++value) {
      in->add_values()->set_string_value(absl::StrCat("y", condition, "-", value));
    }
  }
  ExpectEndsEarly([&](grpc::ClientContext* context) {
    v1::CountItemsResponse response;
    return FromGrpc(collections_->CountItems(context, request, &response));
  });
}

class CancelledQueuedCallsTest : public CancelledCallsTest {
 protected:
  static DaemonOptions OneAtATime() {
    DaemonOptions options;
    options.limits.max_concurrent = 1;
    options.limits.queue_seconds = 60;
    return options;
  }
  CancelledQueuedCallsTest() : CancelledCallsTest(OneAtATime()) {}

  absl::Status List(absl::Duration deadline) const {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
    v1::ListCollectionsResponse response;
    return FromGrpc(collections_->ListCollections(&context, {}, &response));
  }
};

TEST_F(CancelledQueuedCallsTest, AreNotExecuted) {
  MakeFruit(3, false);
  grpc::ClientContext uploading;
  v1::UpsertItemsResponse totals;
  const auto upload = collections_->UpsertItems(&uploading, &totals);
  ASSERT_TRUE(upload->Write(Message("fruit", {MakeItem("item-000", 3, 1)})));
  // Until the upload holds the only ticket.
  while (List(absl::Milliseconds(200)).ok()) {
  }
  {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(200)));
    v1::DeleteCollectionRequest request;
    request.set_name("fruit");
    v1::DeleteCollectionResponse response;
    EXPECT_THAT(FromGrpc(collections_->DeleteCollection(&context, request, &response)),
                FailsWith(kDeadlineExceeded, ""));
  }
  ASSERT_TRUE(WaitUntil([&] { return !Audited("DeleteCollection").empty(); }));
  upload->WritesDone();
  EXPECT_THAT(FromGrpc(upload->Finish()), IsOk());
  grpc::ClientContext context;
  v1::GetCollectionRequest request;
  request.set_collection("fruit");
  v1::GetCollectionResponse fruit;
  EXPECT_THAT(FromGrpc(retrieval_->GetCollection(&context, request, &fruit)), IsOk());
  EXPECT_EQ(fruit.items(), 3u);
  for (const nlohmann::json& call : Audited("DeleteCollection")) {
    EXPECT_EQ(call["code"], "CANCELLED");
  }
}

}  // namespace
}  // namespace privatemail::testing
