#include "common/image/item_list.h"

#include <cstring>
#include <functional>

#include "common/base/sha256.h"
#include "common/image/image_header.h"
#include "tests/testing/matchers.h"

namespace privatemail::item_list_test {
namespace {

// Sizes of lists alone: 2 items of 4-byte codes, ids of 3 bytes; payloads of 5 items, 2 a list.
v1::ImageHeader Header() {
  v1::ImageHeader header;
  header.set_items(5);
  header.set_id_bytes(3);
  header.set_code_bytes(4);
  v1::ListGroup* group = header.add_partitions();
  group->set_lists(3);
  group->set_rows(2);
  group->set_list_bytes(8 + 2 * ItemRecordBytes(3, 4) + 5);  // a tail of zeros
  group = header.mutable_payloads();
  group->set_lists(3);
  group->set_rows(2);
  group->set_list_bytes(8 + 2 * 4 + 10);
  return header;
}

const std::vector<ListedItem> kItems = {{4, -7, "abc", "wxyz"}, {0, 1 << 30, "é", "1234"}};

std::string Written(uint32_t list, const std::vector<ListedItem>& items = kItems) {
  std::string bytes(Header().partitions(0).list_bytes(), 'x');
  WriteItemList(Header(), 0, list, items, bytes.data());
  return bytes;
}

std::string WrittenPayloads(uint32_t list, const std::vector<absl::string_view>& payloads) {
  std::string bytes(Header().payloads().list_bytes(), 'x');
  WritePayloadList(Header(), list, payloads, bytes.data());
  return bytes;
}

// A list with a right checksum over any content. Oracle of the form: the header's comment.
std::string Sealed(uint32_t group, uint32_t list, const std::string& content) {
  std::string summed(8, '\0');
  std::memcpy(summed.data(), &group, 4);
  std::memcpy(summed.data() + 4, &list, 4);
  return Sha256::Of(summed + content).substr(0, 8) + content;
}

TEST(ItemList, HasTheDocumentedForm) {
  using std::string_literals::operator""s;
  const std::string content = "\x04\0\0\0\xf9\xff\xff\xff\x03\0"s + "abcwxyz" +
                              "\0\0\0\0\0\0\0\x40\x02\0"s + "é\0"s + "1234" + std::string(5, '\0');
  EXPECT_EQ(Written(1), Sealed(0, 1, content));
  EXPECT_EQ(ItemRecordBytes(3, 4), 17u);
  EXPECT_EQ(WrittenPayloads(2, {"{}"}), Sealed(1, 2, "\x02\0\0\0"s + "{}" + std::string(12, '\0')));
}

TEST(ItemList, ReadsWhatWasWritten) {
  const std::string bytes = Written(2);
  ASSERT_OK_AND_ASSIGN(const std::vector<ListedItem> items, ReadItemList(Header(), 0, 2, bytes));
  ASSERT_EQ(items.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(items[i].row, kItems[i].row);
    EXPECT_EQ(items[i].label, kItems[i].label);
    EXPECT_EQ(items[i].id, kItems[i].id);
    EXPECT_EQ(items[i].code, kItems[i].code);
  }
  const std::string full = WrittenPayloads(0, {"[1,2]", "[3,4]"});
  EXPECT_THAT(*ReadPayloadList(Header(), 0, full), ::testing::ElementsAre("[1,2]", "[3,4]"));
  const std::string empty = WrittenPayloads(1, {"", "{}"});
  EXPECT_THAT(*ReadPayloadList(Header(), 1, empty), ::testing::ElementsAre("", "{}"));
  const std::string last = WrittenPayloads(2, {"{}"});
  EXPECT_THAT(*ReadPayloadList(Header(), 2, last), ::testing::ElementsAre("{}"));
}

TEST(ItemList, EveryChangedBitReturnsDataLoss) {
  const std::string items = Written(2);
  const std::string payloads = WrittenPayloads(0, {"[1,2]", "[3,4]"});
  const auto each_change = [](const std::string& bytes, const auto& read) {
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string damaged = bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      EXPECT_THAT(read(damaged), FailsWith(kDataLoss, "does not match its checksum")) << bit;
    }
  };
  each_change(items, [](const std::string& bytes) { return ReadItemList(Header(), 0, 2, bytes); });
  each_change(payloads,
              [](const std::string& bytes) { return ReadPayloadList(Header(), 0, bytes); });
}

TEST(ItemList, OtherPlaceOrLengthReturnsDataLoss) {
  const std::string bytes = Written(2);
  EXPECT_THAT(ReadItemList(Header(), 0, 1, bytes),
              FailsWith(kDataLoss, "list 1 of group 0 does not match its checksum"));
  v1::ImageHeader two = Header();
  *two.add_partitions() = two.partitions(0);
  EXPECT_THAT(ReadItemList(two, 1, 2, bytes),
              FailsWith(kDataLoss, "list 2 of group 1 does not match its checksum"));
  EXPECT_THAT(ReadItemList(Header(), 0, 3, bytes), FailsWith(kDataLoss, "does not exist"));
  EXPECT_THAT(ReadItemList(Header(), 7, 0, bytes), FailsWith(kDataLoss, "does not exist"));
  EXPECT_THAT(ReadItemList(Header(), 0, 2, bytes.substr(1)),
              FailsWith(kDataLoss, "list 2 of group 0 must have 47 bytes, but has 46"));
  EXPECT_THAT(ReadItemList(Header(), 0, 2, ""), FailsWith(kDataLoss, "but has 0"));
  v1::ImageHeader none = Header();
  none.clear_payloads();
  EXPECT_THAT(ReadPayloadList(none, 0, bytes), FailsWith(kDataLoss, "does not exist"));
}

// The makers of such lists computed the checksum themselves.
TEST(ItemList, SealedContradictionsReturnDataLoss) {
  const std::function<void(std::string*)> faults[] = {
      [](std::string* content) { (*content)[0] = 5; },  // row, of 5 items
      [](std::string* content) { (*content)[8] = 4; },  // length of the id, of at most 3
      [](std::string* content) { (*content)[9] = '\x7f'; },
      [](std::string* content) { (*content)[10] = '\xff'; },  // UTF-8
  };
  for (const auto& corrupt : faults) {
    std::string content = Written(1).substr(8);
    corrupt(&content);
    EXPECT_THAT(ReadItemList(Header(), 0, 1, Sealed(0, 1, content)),
                FailsWith(kDataLoss, "has an item that contradicts the header"));
  }
  for (const size_t at : {size_t{0}, size_t{9}}) {  // the lengths of both payloads
    for (const char length : {'\x0f', '\x7f'}) {
      std::string content = WrittenPayloads(0, {"[1,2]", "[3,4]"}).substr(8);
      content[at] = length;
      EXPECT_THAT(ReadPayloadList(Header(), 0, Sealed(1, 0, content)),
                  FailsWith(kDataLoss, "has a payload beyond its end"));
    }
  }
}

}  // namespace
}  // namespace privatemail::item_list_test
