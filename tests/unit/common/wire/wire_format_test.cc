#include "common/wire/wire_format.h"

#include <vector>

#include "privatemail/v1/encrypted.pb.h"
#include "tests/testing/matchers.h"

namespace privatemail::wire_format_test {
namespace {

TEST(WireWriter, WritesWhatProtobufReads) {
  WireWriter writer;
  writer.AddBytes(1, "things");
  writer.AddNumber(3, 300);
  writer.AddNumber(8, 0);
  v1::SearchEncryptedRequest expected;
  expected.set_collection("things");
  expected.set_delta(300);
  EXPECT_EQ(writer.message, expected.SerializeAsString());
}

TEST(WireReader, ReadsWhatProtobufWrites) {
  v1::RowTableBlock block;
  block.add_ids("a");
  block.add_norms(1);
  block.add_norms(-2);
  for (const int64_t label : {int64_t{-1}, int64_t{1} << 62}) block.add_labels(label);
  const std::string packed = block.SerializeAsString();
  std::vector<uint64_t> norms, labels;
  std::string ids;
  WireReader reader(packed);
  while (reader.Next()) {
    if (reader.Is(1, WireReader::kBytes)) ids += std::string(reader.bytes());
    reader.Elements(2, WireReader::kFixed32, [&](uint64_t value) { norms.push_back(value); });
    reader.Elements(3, WireReader::kVarint, [&](uint64_t value) { labels.push_back(value); });
  }
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(ids, "a");
  EXPECT_EQ(norms, (std::vector<uint64_t>{0x3f800000, 0xc0000000}));
  EXPECT_EQ(labels, (std::vector<uint64_t>{1, uint64_t{1} << 63}));
}

TEST(WireReader, RepeatedNumbersNeedNotBePacked) {
  std::vector<uint64_t> values;
  WireReader reader("\x18\x05\x18\x96\x01");
  while (reader.Next()) {
    reader.Elements(3, WireReader::kVarint, [&](uint64_t value) { values.push_back(value); });
  }
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(values, (std::vector<uint64_t>{5, 150}));
}

TEST(WireReader, MalformedMessagesAreNotOk) {
  using namespace std::string_literals;
  for (const std::string& message :
       {"\x08"s,
        "\x0a\x05"
        "ab"s,
        "\x0d\x01\x02"s, "\x09\x01"s, "\x0b"s, "\x00\x01"s, "\xff"s,
        "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s, "\x0a\xff\xff\xff\xff\x0f"s}) {
    WireReader reader(message);
    while (reader.Next()) {
    }
    EXPECT_FALSE(reader.ok()) << ::testing::PrintToString(message);
    EXPECT_FALSE(v1::RowBlock().ParseFromString(message)) << ::testing::PrintToString(message);
  }
  WireReader elements("\x1a\x02\x05\x96");  // the last number has no end
  ASSERT_TRUE(elements.Next());
  elements.Elements(3, WireReader::kVarint, [](uint64_t) {});
  EXPECT_FALSE(elements.ok());
}

}  // namespace
}  // namespace privatemail::wire_format_test
