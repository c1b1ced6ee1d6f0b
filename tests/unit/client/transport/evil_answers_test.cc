// Answers that no honest server sends, against the limits of the transport.

#include "privatemail/admin_client.h"
#include "tests/testing/canned_server.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

using privatemail::testing::CannedAnswer;
using privatemail::testing::CannedServer;
using privatemail::testing::Repeated;

class EvilAnswers : public ::testing::Test {
 protected:
  // collection: one empty description of a collection, two bytes on the wire.
  const std::string collection_ = {'\x0a', '\0'};

  AdminClient Connect(int64_t max_memory = kMaxMemory) {
    ConnectionOptions options;
    options.server = server_.address();
    options.insecure = true;
    options.max_memory = max_memory;
    return *AdminClient::Create(options);
  }

  CannedServer server_;
};

// 10,000 take about 9 MB in memory.
TEST_F(EvilAnswers, MemoryIsEstimatedBeforeParsing) {
  server_.Answer("ListCollections", {Repeated(collection_, 10'000)});
  ASSERT_OK_AND_ASSIGN(const v1::ListCollectionsResponse all, Connect().ListCollections());
  EXPECT_EQ(all.collections_size(), 10'000);
  EXPECT_THAT(Connect(1'000'000).ListCollections(),
              FailsWith(kExhausted, "bytes for the server's answer, but is 1000000"));
}

TEST_F(EvilAnswers, MessagesOfAStreamAddUp) {
  v1::GetAnchorsResponse chunk;
  chunk.mutable_features()->mutable_values()->Resize(50'000, 1);  // 200 kB
  server_.Answer("GetAnchors", std::vector<std::string>(4, chunk.SerializeAsString()));
  ASSERT_OK_AND_ASSIGN(const auto four, Connect(1'000'000).GetAnchors("fruit", "digest"));
  EXPECT_EQ(four.size(), 4U);
  const int64_t before = server_.messages_sent();
  const std::string bytes = chunk.SerializeAsString();
  server_.Answer("GetAnchors", CannedAnswer{[bytes](int64_t) { return bytes; }});
  EXPECT_THAT(Connect(1'000'000).GetAnchors("fruit", "digest"), FailsWith(kExhausted, "memory"));
  EXPECT_LT(server_.messages_sent() - before, 1000);
  server_.Answer("GetAnchors", CannedAnswer{[](int64_t) { return ""; }});
  EXPECT_THAT(Connect(1'000'000).GetAnchors("fruit", "digest"), FailsWith(kExhausted, "memory"));
}

// Progress and snapshots keep no message.
TEST_F(EvilAnswers, MessagesThatAreNotKeptDoNotAddUp) {
  v1::SnapshotCollectionResponse piece;
  piece.set_data(std::string(100'000, 'x'));
  server_.Answer("SnapshotCollection", std::vector<std::string>(30, piece.SerializeAsString()));
  size_t bytes = 0;
  EXPECT_THAT(Connect(1'000'000).SnapshotCollection("fruit",
                                                    [&](absl::string_view part) {
                                                      bytes += part.size();
                                                      return absl::OkStatus();
                                                    }),
              IsOk());
  EXPECT_EQ(bytes, 3'000'000U);
}

TEST_F(EvilAnswers, RefusedMessageEndsAnEndlessStream) {
  v1::RetrieveCellsResponse message;
  message.add_ids("again");
  const std::string bytes = message.SerializeAsString();
  server_.Answer("RetrieveCells", CannedAnswer{[bytes](int64_t) { return bytes; }});
  int seen = 0;
  const auto answer = Connect().RetrieveCells({}, [&] {
    return [&](const v1::RetrieveCellsResponse&) {
      return ++seen <= 5 ? absl::OkStatus() : absl::DataLossError("too many");
    };
  });
  EXPECT_THAT(answer, FailsWith(kDataLoss, "too many"));
  EXPECT_EQ(seen, 6);
}

TEST_F(EvilAnswers, MessageAboveTheMemoryLimitIsNotReceived) {
  v1::GetItemsResponse items;
  items.add_items()->set_payload(std::string(2'000'000, 'x'));
  server_.Answer("GetItems", items);
  EXPECT_THAT(Connect().GetItems({}), IsOk());
  EXPECT_THAT(Connect(1'500'000).GetItems({}), FailsWith(kExhausted, "max_memory must be larger"));
}

TEST_F(EvilAnswers, MalformedMessageReturnsDataLoss) {
  for (const std::string bytes : {"\xff\xff\xff", "\x0a\x05", "\x0a\x02\xff\xff"}) {
    server_.Answer("ListKeys", {bytes});
    EXPECT_THAT(Connect().ListKeys(), FailsWith(kDataLoss, "privatemail.v1.ListKeysResponse"));
  }
}

TEST_F(EvilAnswers, AnswerWithoutMessageReturnsDataLoss) {
  const auto none = FailsWith(kDataLoss, "without an answer");
  for (const std::string method :
       {"ListKeys", "BuildEmbedding", "GetAnchors", "UpsertItems", "SnapshotCollection"}) {
    server_.Answer(method, std::vector<std::string>());
  }
  const AdminClient transport = Connect();
  EXPECT_THAT(transport.ListKeys(), none);
  EXPECT_THAT(transport.BuildEmbedding("fruit", [](const auto&) {}), none);
  EXPECT_THAT(transport.GetAnchors("fruit", "digest"), none);
  EXPECT_THAT(transport.UpsertItems([](v1::UpsertItemsRequest*) { return false; }), none);
  EXPECT_THAT(transport.SnapshotCollection("fruit", [](auto) { return absl::OkStatus(); }), none);
}

// A refusal of the client's own must not make it wait and repeat the call.
TEST_F(EvilAnswers, CallThatTheClientEndedIsNotRepeated) {
  server_.Answer("Retrieve", {Repeated({'\x0a', '\0'}, 100'000)});
  const int64_t before = server_.messages_sent();
  EXPECT_THAT(Connect(1'000'000).Retrieve({}), FailsWith(kExhausted, "memory"));
  EXPECT_EQ(server_.messages_sent() - before, 1);
}

TEST(Transport, TooLittleMemoryReturnsInvalidArgument) {
  ConnectionOptions options;
  options.max_memory = 999'999;
  EXPECT_THAT(AdminClient::Create(options), FailsWith(kInvalid, "max_memory must be between"));
}

}  // namespace
}  // namespace privatemail::client
