// Calls whose caller cancels or passes its deadline: work stops early, queued calls do not start.
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/status.h"
#include "common/wire/proto_conversions.h"
#include "tests/unit/server/services/daemon_state.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

class CancelledCallsTest : public ServiceTest {
 protected:
  using Call = std::function<absl::Status(grpc::ClientContext*)>;

  std::vector<nlohmann::json> AllAudited() const { return CallsIn(directory_ / "audit.jsonl"); }

  // Returns the processor time of this process until the daemon has audited the call, when its work
  // ends.
  double ProcessorSeconds(const std::function<void()>& call) const {
    const size_t before = AllAudited().size();
    const std::clock_t start = std::clock();
    call();
    EXPECT_TRUE(WaitUntil([&] { return AllAudited().size() > before; }));
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }

  // Compares the processor time of a complete call with that of one whose caller leaves after a
  // tenth of it. Not durations, which other work on the machine stretches.
  void ExpectEndsEarly(const Call& call) const {
    const double whole = ProcessorSeconds([&] {
      grpc::ClientContext context;
      ASSERT_THAT(call(&context), IsOk());
    });
    ASSERT_GT(whole, .1) << "too short to measure";
    const absl::Duration patience = absl::Seconds(whole / 10);
    const double until_deadline = ProcessorSeconds([&] {
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
      EXPECT_THAT(call(&context), FailsWith(kDeadlineExceeded));
    });
    EXPECT_LT(until_deadline, .6 * whole);
    const double until_cancelled = ProcessorSeconds([&] {
      grpc::ClientContext context;
      std::thread canceller([&] {
        absl::SleepFor(patience);
        context.TryCancel();
      });
      EXPECT_THAT(call(&context), FailsWith(kCancelled));
      canceller.join();
    });
    EXPECT_LT(until_cancelled, .6 * whole);
    EXPECT_THAT(AllAudited()[0]["code"], "OK");
    EXPECT_THAT(AllAudited()[1]["code"], ::testing::AnyOf("CANCELLED", "DEADLINE_EXCEEDED"));
    EXPECT_THAT(AllAudited()[2]["code"], ::testing::AnyOf("CANCELLED", "DEADLINE_EXCEEDED"));
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
};

TEST_F(CancelledCallsTest, CreateStopsEarlyAndLeavesNothing) {
  int created = 0;
  ExpectEndsEarly([&](grpc::ClientContext* context) {
    v1::CreateCollectionResponse response;
    return FromGrpc(collections_->CreateCollection(
        context, WithManyCells(absl::StrCat("fruit", created++)), &response));
  });
  const v1::ListCollectionsResponse list = ListAll();
  ASSERT_EQ(list.collections_size(), 1);
  EXPECT_EQ(list.collections(0).name(), "fruit0");
}

TEST_F(CancelledCallsTest, LongCreationIsRefused) {
  DaemonOptions options;
  options.limits.max_create_seconds = .02;
  Serve(options);
  EXPECT_THAT(Create(WithManyCells("fruit")), FailsWith(kExhausted, "the limit of 0.02 s: "));
}

TEST_F(CancelledCallsTest, QueuedCallIsNotExecuted) {
  DaemonOptions options;
  options.limits.max_concurrent = 1;
  options.limits.queue_seconds = 60;
  Serve(options);
  MakeFruit(3, false);
  grpc::ClientContext uploading;
  v1::UpsertItemsResponse totals;
  const auto upload = collections_->UpsertItems(&uploading, &totals);
  ASSERT_TRUE(upload->Write(Message("fruit", {MakeItem("item-000", 3, 1)})));
  // Until the upload holds the only ticket.
  while (List(absl::Milliseconds(200)).ok()) {
  }
  EXPECT_THAT(DeleteCollection("fruit", absl::Milliseconds(200)), FailsWith(kDeadlineExceeded));
  ASSERT_TRUE(WaitUntil([&] { return !Audited("DeleteCollection").empty(); }));
  upload->WritesDone();
  EXPECT_THAT(FromGrpc(upload->Finish()), IsOk());
  const v1::GetCollectionResponse fruit = Get("fruit");
  EXPECT_EQ(fruit.items(), 3u);
  for (const nlohmann::json& call : Audited("DeleteCollection")) {
    EXPECT_THAT(call["code"], ::testing::AnyOf("CANCELLED", "DEADLINE_EXCEEDED"));
  }
}

}  // namespace
}  // namespace privatemail::testing
