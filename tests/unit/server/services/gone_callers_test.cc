// Work for callers who are gone: it stops, and what has not begun does not begin.
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/wire/codec.h"
#include "common/rpc/status.h"
#include "tests/unit/server/services/audit_lines.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

constexpr auto kGone = absl::StatusCode::kCancelled;
constexpr auto kTooLate = absl::StatusCode::kDeadlineExceeded;

class GoneCallers : public ServiceTest {
 protected:
  explicit GoneCallers(const DaemonOptions& options = {}) : ServiceTest(options) {}

  using Call = std::function<absl::Status(grpc::ClientContext*)>;

  std::vector<nlohmann::json> Audited() const { return CallsIn(directory_ / "audit.jsonl"); }

  // What the audit log says of the call after `before` others, once the daemon is done with it.
  nlohmann::json Outcome(size_t before) const {
    const absl::Time start = absl::Now();
    while (Audited().size() == before && absl::Now() - start < absl::Seconds(60)) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    return Audited().at(before);
  }

  // A whole call takes the daemon `ms`; one whose caller goes takes a fraction of it.
  void ExpectEndsEarly(const Call& call) const {
    size_t before = Audited().size();
    {
      grpc::ClientContext context;
      ASSERT_THAT(call(&context), IsOk());
    }
    const double whole = Outcome(before)["ms"];
    ASSERT_GT(whole, 100) << "too short to tell anything";
    const absl::Duration patience = absl::Milliseconds(whole / 10);
    {
      before = Audited().size();
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
      EXPECT_THAT(call(&context), FailsWith(kTooLate, ""));
      ExpectStopped(Outcome(before), whole);
    }
    before = Audited().size();
    grpc::ClientContext context;
    std::thread canceller([&] {
      absl::SleepFor(patience);
      context.TryCancel();
    });
    EXPECT_THAT(call(&context), FailsWith(kGone, ""));
    canceller.join();
    ExpectStopped(Outcome(before), whole);
  }

  static void ExpectStopped(const nlohmann::json& outcome, double whole) {
    EXPECT_EQ(outcome["code"], "CANCELLED");
    EXPECT_LT(outcome["ms"].get<double>(), .6 * whole);
    std::printf("%s: %.0f ms as a whole, %.0f ms for a caller who is gone\n",
                outcome["rpc"].get<std::string>().c_str(), whole, outcome["ms"].get<double>());
  }
};

TEST_F(GoneCallers, AreNotSearchedForToTheEnd) {
  constexpr int kAnchors = 200;
  v1::CreateCollectionRequest create = Birds();
  create.mutable_settings()->set_steps(10'000);
  create.mutable_settings()->set_normalise(true);
  // So many steps leave one dimension, and of that only what the classes keep apart.
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
  ASSERT_THAT(Upsert({Message("birds", MakeItems(3, 1))}, &totals), IsOk());
  std::vector<v1::BuildEmbeddingResponse> progress;
  ASSERT_THAT(Build("birds", &progress), IsOk());
  v1::RetrieveRequest request;
  request.set_collection("birds");
  request.set_fingerprint(progress.back().collection().fingerprint());
  request.set_k(1);
  request.set_post_processing_steps(10'000);
  ToProto(FloatMatrix::Random(3 + kAnchors, 1).eval(), request.mutable_release());
  ExpectEndsEarly([&](grpc::ClientContext* context) {
    v1::RetrieveResponse response;
    return FromGrpc(retrieval_->Retrieve(context, request, &response));
  });
}

TEST_F(GoneCallers, AreNotCountedForToTheEnd) {
  constexpr int kItems = 60'000;  // six parts
  constexpr int kItemsOfAMessage = 10'000;
  MakeBirds(0, false);
  std::vector<v1::UpsertItemsRequest> messages;
  for (int first = 0; first < kItems; first += kItemsOfAMessage) {
    std::vector<Item> items;
    for (int i = first; i < first + kItemsOfAMessage; ++i) {
      items.push_back(MakeItem(absl::StrFormat("%06d", i), 3, 1));
      items.back().payload = R"({"name":"x"})";
    }
    messages.push_back(Message("birds", items));
  }
  v1::UpsertItemsResponse totals;
  ASSERT_THAT(Upsert(messages, &totals), IsOk());
  // One that takes long to refuse.
  v1::CountItemsRequest request;
  request.set_collection("birds");
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

class GoneFromTheQueue : public GoneCallers {
 protected:
  static DaemonOptions OneAtATime() {
    DaemonOptions options;
    options.limits.max_concurrent = 1;
    options.limits.queue_seconds = 60;
    return options;
  }
  GoneFromTheQueue() : GoneCallers(OneAtATime()) {}

  absl::Status List(absl::Duration deadline) const {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
    v1::ListCollectionsResponse response;
    return FromGrpc(collections_->ListCollections(&context, {}, &response));
  }
};

TEST_F(GoneFromTheQueue, TheirCallsAreNotExecuted) {
  MakeBirds(3, false);
  grpc::ClientContext uploading;
  v1::UpsertItemsResponse totals;
  const auto upload = collections_->UpsertItems(&uploading, &totals);
  ASSERT_TRUE(upload->Write(Message("birds", {MakeItem("item-000", 3, 1)})));
  // Until the upload has come so far as to hold the only place.
  while (List(absl::Milliseconds(200)).ok()) {
  }
  {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(200)));
    v1::DeleteCollectionRequest request;
    request.set_name("birds");
    v1::DeleteCollectionResponse response;
    EXPECT_THAT(FromGrpc(collections_->DeleteCollection(&context, request, &response)),
                FailsWith(kTooLate, ""));
  }
  absl::SleepFor(absl::Milliseconds(500));  // until the server has noticed that nobody waits
  upload->WritesDone();
  EXPECT_THAT(FromGrpc(upload->Finish()), IsOk());
  grpc::ClientContext context;
  v1::GetCollectionRequest request;
  request.set_collection("birds");
  v1::GetCollectionResponse birds;
  EXPECT_THAT(FromGrpc(retrieval_->GetCollection(&context, request, &birds)), IsOk());
  EXPECT_EQ(birds.items(), 3u);
  for (const nlohmann::json& call : Audited()) {
    if (call["rpc"] != "DeleteCollection") continue;
    EXPECT_EQ(call["code"], "CANCELLED");
  }
}

}  // namespace
}  // namespace privatemail::testing
