#include "common/wire/message_memory.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include "privatemail/v1/collections.pb.h"
#include "privatemail/v1/encrypted.pb.h"
#include "privatemail/v1/keys.pb.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::testing {
namespace {

std::optional<int64_t> MemoryOf(const google::protobuf::Descriptor& type,
                                const std::string& bytes) {
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  return MessageMemory(type, &in);
}

std::string Repeated(const std::string& bytes, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += bytes;
  return all;
}

// Expects at least the memory that protobuf reports for the parsed message.
template <typename Message>
void ExpectEnough(const std::string& bytes) {
  Message message;
  ASSERT_TRUE(message.ParseFromString(bytes));
  const auto memory = MemoryOf(*Message::descriptor(), bytes);
  ASSERT_TRUE(memory.has_value());
  EXPECT_GE(*memory, static_cast<int64_t>(message.SpaceUsedLong()));
}

std::string ItemsWithPayloads(size_t payload_bytes) {
  v1::UpsertItemsRequest items;
  for (int i = 0; i < 1000; ++i) {
    v1::Item& item = *items.add_items();
    item.set_id("item " + std::to_string(i));
    item.set_payload(std::string(payload_bytes, 'x'));
    for (int c = 0; c < 128; ++c) item.add_features(1);
  }
  return items.SerializeAsString();
}

TEST(MessageMemory, IsAnUpperEstimate) {
  constexpr int kMany = 100'000;
  ExpectEnough<v1::UpsertItemsRequest>("");
  ExpectEnough<v1::UpsertItemsRequest>(Repeated({'\x12', '\0'}, kMany));  // empty items
  ExpectEnough<v1::GetItemsRequest>(Repeated({'\x12', '\0'}, kMany));     // empty ids
  ExpectEnough<v1::GetItemsRequest>(
      Repeated("\x12\x11"
               "12345678901234567",
               kMany));
  ExpectEnough<v1::ListCollectionsRequest>(Repeated({'\x12', '\0'}, kMany));    // unknown
  ExpectEnough<v1::ListCollectionsRequest>(Repeated({'\x08', '\0'}, kMany));    // numbers
  ExpectEnough<v1::ListCollectionsRequest>(Repeated({'\x0b', '\x0c'}, kMany));  // groups
  ExpectEnough<v1::ListCollectionsRequest>(                                     // in a group
      "\x0b" + Repeated({'\x10', '\0'}, kMany) + "\x0c");
  ExpectEnough<v1::CreateKeyRequest>(Repeated({'\x10', '\1'}, kMany));  // scopes, not packed
  v1::RowTableBlock table;  // 64-bit numbers of a byte each, whose list has room for 2^17
  for (int i = 0; i < kMany; ++i) table.add_labels(0);
  ExpectEnough<v1::RowTableBlock>(table.SerializeAsString());
  ExpectEnough<v1::UpsertItemsRequest>(ItemsWithPayloads(100));
  v1::CreateCollectionRequest anchors;
  for (int i = 0; i < kMany; ++i) anchors.add_anchor_labels(1);  // a byte each
  ExpectEnough<v1::CreateCollectionRequest>(anchors.SerializeAsString());
}

// Ordinary uploads must not look like attacks.
TEST(MessageMemory, IsTightForVectors) {
  const std::string bytes = ItemsWithPayloads(0);
  EXPECT_LT(*MemoryOf(*v1::UpsertItemsRequest::descriptor(), bytes),
            2 * static_cast<int64_t>(bytes.size()));
}

TEST(MessageMemory, MalformedMessageReturnsNullopt) {
  const auto& type = *v1::UpsertItemsRequest::descriptor();
  for (const std::string bytes : {"\xff\xff\xff", "\x12",
                                  "\x12\x05"
                                  "abc",
                                  "\x0b", "\x0c"}) {
    EXPECT_EQ(MemoryOf(type, bytes), std::nullopt) << bytes.size();
  }
}

}  // namespace
}  // namespace privatemail::testing
