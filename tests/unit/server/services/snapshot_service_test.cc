// SnapshotCollection and RestoreCollection over the network.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/rpc/status.h"
#include "common/wire/snapshot.h"
#include "tests/unit/server/services/service_fixture.h"
#include "tests/unit/server/snapshots.h"

namespace privatemail::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SnapshotServiceTest : public ServiceTest {
 protected:
  absl::StatusOr<std::string> Snapshot(const std::string& name) {
    grpc::ClientContext context;
    v1::SnapshotCollectionRequest request;
    request.set_collection(name);
    const auto reader = collections_->SnapshotCollection(&context, request);
    std::string bytes;
    v1::SnapshotCollectionResponse response;
    while (reader->Read(&response)) {
      EXPECT_LE(response.data().size(), kSnapshotPieceBytes);
      bytes += response.data();
    }
    const absl::Status status = FromGrpc(reader->Finish());
    if (!status.ok()) return status;
    return bytes;
  }

  // Sends one message per (name, bytes).
  absl::StatusOr<v1::GetCollectionResponse> Send(
      const std::vector<std::pair<std::string, std::string>>& messages) {
    grpc::ClientContext context;
    v1::RestoreCollectionResponse response;
    const auto writer = collections_->RestoreCollection(&context, &response);
    for (const auto& [name, bytes] : messages) {
      v1::RestoreCollectionRequest request;
      request.set_collection(name);
      request.set_data(bytes);
      if (!writer->Write(request)) break;  // the status says why
    }
    writer->WritesDone();
    const absl::Status status = FromGrpc(writer->Finish());
    if (!status.ok()) return status;
    return response.collection();
  }

  // Sends the bytes in pieces of `piece` bytes.
  absl::StatusOr<v1::GetCollectionResponse> Restore(const std::string& name,
                                                    const std::string& bytes,
                                                    size_t piece = kSnapshotPieceBytes) {
    std::vector<std::pair<std::string, std::string>> messages;
    for (size_t first = 0; first < bytes.size(); first += piece) {
      messages.emplace_back(name, bytes.substr(first, piece));
    }
    return Send(messages);
  }

  int CountCollections() const { return ListAll().collections_size(); }

  void Delete(const std::string& name) { EXPECT_THAT(DeleteCollection(name), IsOk()); }
};

TEST_F(SnapshotServiceTest, RestoreKeepsFingerprintOfLostCollection) {
  const v1::GetCollectionResponse fruit = MakeFruit(300, true);
  ASSERT_OK_AND_ASSIGN(const auto bytes, Snapshot("fruit"));
  Delete("fruit");
  ASSERT_OK_AND_ASSIGN(const auto again, Restore("fruit", bytes, 1000));
  EXPECT_EQ(again.fingerprint(), fruit.fingerprint());
  EXPECT_THAT(Build("fruit"), IsOk());
  for (const char* rpc : {"SnapshotCollection", "RestoreCollection"}) {
    const nlohmann::json audited = Audited(rpc).at(0);
    EXPECT_EQ(audited["rows"], 300);
    EXPECT_THAT(audited.dump(), Not(HasSubstr("item-")));
  }
}

TEST_F(SnapshotServiceTest, MissingOrTakenNameFails) {
  MakeFruit(3, false);
  EXPECT_THAT(Snapshot("none"), FailsWith(kNotFound, "collection none"));
  EXPECT_THAT(Restore("fruit", SnapshotBytes(3)),
              FailsWith(kAlreadyExists, "collection fruit exists already"));
  EXPECT_THAT(Restore("no name", SnapshotBytes(3)), FailsWith(kInvalid, "name must be"));
  EXPECT_THAT(Send({}), FailsWith(kInvalid, "collection must be given"));
  const std::string bytes = SnapshotBytes(3);
  EXPECT_THAT(
      Send({{"new", bytes.substr(0, 50)}, {"other", bytes.substr(50)}}),
      FailsWith(kInvalid, "expected 'new', got 'other' in message 1 (from 0); nothing is stored"));
  EXPECT_EQ(CountCollections(), 1);
}

// Read returns false for a cancelled stream as for a complete one.
TEST_F(SnapshotServiceTest, CancelledRestoreStoresNothing) {
  grpc::ClientContext context;
  v1::RestoreCollectionResponse response;
  const auto writer = collections_->RestoreCollection(&context, &response);
  v1::RestoreCollectionRequest request;
  request.set_collection("new");
  request.set_data(SnapshotBytes(5));
  EXPECT_TRUE(writer->Write(request));
  context.TryCancel();
  EXPECT_THAT(FromGrpc(writer->Finish()), FailsWith(kCancelled));
  daemon_.reset();  // after every call has ended
  auto catalog = Catalog::Open(*SqliteStore::Open(directory_.path()), directory_.path());
  EXPECT_TRUE((*catalog)->List().empty());
}

DaemonOptions Tight() {
  DaemonOptions options;
  options.limits.max_items = 5;
  options.limits.max_anchors = 2000;
  options.limits.max_dims = kDim;
  options.limits.max_collections = 1;
  options.limits.max_message_bytes = 65536;
  return options;
}

class SnapshotLimitsTest : public SnapshotServiceTest {
 protected:
  SnapshotLimitsTest() { Serve(Tight()); }
};

class SnapshotBytesTest : public SnapshotServiceTest {
 protected:
  SnapshotBytesTest() {
    DaemonOptions options;
    options.limits.max_snapshot_bytes = 3000;
    Serve(options);
  }
};

TEST_F(SnapshotLimitsTest, RestoreNamesLimitAndValue) {
  EXPECT_THAT(
      Restore("new", SnapshotBytes(6)),
      FailsWith(kExhausted, "items of the snapshot is 6, more than the limit of 5 (max_items)"));
  ASSERT_OK_AND_ASSIGN(SnapshotContents contents, Parse(SnapshotBytes(1)));
  contents.collection.parameters.feature_dim = kDim + 1;
  EXPECT_THAT(Restore("new", BytesOf(contents)),
              FailsWith(kExhausted, "dimensions of the anchors of the snapshot is 5, more than"));
  contents.collection.parameters.feature_dim = kDim;
  contents.collection.parameters.anchor_count = 2001;
  EXPECT_THAT(Restore("new", BytesOf(contents)),
              FailsWith(kExhausted, "anchors of the snapshot is 2001, more than"));
  DaemonOptions updated = daemon_->options();
  updated.limits.max_request_memory = 65536;
  daemon_->Reload(updated);
  contents.collection.parameters.anchor_count = 2000;  // of 4 dimensions
  EXPECT_THAT(
      Restore("new", BytesOf(contents)),
      FailsWith(kExhausted, "in bytes is 96000, more than the limit of 65536 (memory / 16"));
  EXPECT_EQ(CountCollections(), 0);
  EXPECT_THAT(Restore("new", SnapshotBytes(5)), IsOk());
  EXPECT_THAT(Restore("more", SnapshotBytes(5)),
              FailsWith(kExhausted, "is 2, more than the limit of 1 (max_collections)"));
}

TEST_F(SnapshotBytesTest, BytesAreLimited) {
  const std::string bytes = SnapshotBytes(100);
  ASSERT_GT(bytes.size(), 3000u);
  EXPECT_THAT(Restore("new", bytes, 1000),
              FailsWith(kExhausted,
                        "number of bytes of all snapshots under way is 3713, more than the limit "
                        "of 3000 (max_snapshot_bytes)"));
  EXPECT_EQ(CountCollections(), 0);
  MakeFruit(200, false);
  EXPECT_THAT(Snapshot("fruit"), FailsWith(kExhausted, "snapshots under way is 3200, more than"))
      << "200 items of 4 dimensions and 4 bytes, before anything is written";
}

// Each restore alone is within the limit.
TEST_F(SnapshotBytesTest, RunningRestoresShareBytes) {
  const std::string bytes = SnapshotBytes(60);
  ASSERT_GT(bytes.size(), 1500u);
  ASSERT_LT(bytes.size(), 3000u);
  v1::RestoreCollectionRequest request;
  request.set_collection("new");
  request.set_data(bytes);
  v1::RestoreCollectionResponse response;
  std::optional<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientWriter<v1::RestoreCollectionRequest>> writer;
  const auto begin = [&] {
    if (writer != nullptr) writer->Finish();
    writer = nullptr;
    writer = collections_->RestoreCollection(&context.emplace(), &response);
    EXPECT_TRUE(writer->Write(request));  // the stream does not end
  };
  begin();
  absl::Status status;
  size_t ended = 0;  // of "new", if "late" came first
  EXPECT_TRUE(WaitUntil([&] {
    status = Restore("late", bytes).status();
    if (!status.ok()) return true;
    Delete("late");
    const std::vector<nlohmann::json> calls = Audited("RestoreCollection");
    const size_t now = std::count_if(calls.begin(), calls.end(), [](const nlohmann::json& call) {
      return call["collection"] == "new";
    });
    if (now > ended) begin();
    ended = now;
    return false;
  }));
  EXPECT_THAT(status, FailsWith(kExhausted, "(max_snapshot_bytes)"));
  context->TryCancel();
  writer->Finish();
  EXPECT_TRUE(WaitUntil([&] { return Restore("late", bytes).ok(); })) << "quota was not released";
}

// Blocks may exceed max_message_bytes; the pieces that are sent do not.
TEST_F(SnapshotLimitsTest, SmallMessageLimitAllowsLargeItem) {
  ASSERT_THAT(Create(Fruit()), IsOk());
  std::vector<Item> items = MakeItems(5, 1);
  for (Item& item : items) {
    item.payload = "\"" + std::string(60000, 'x') + "\"";
    ASSERT_THAT(Upsert({Message("fruit", {item})}), IsOk());
  }
  ASSERT_OK_AND_ASSIGN(const auto bytes, Snapshot("fruit"));
  Delete("fruit");
  EXPECT_THAT(Restore("fruit", bytes), IsOk());
}

}  // namespace
}  // namespace privatemail::testing
