#include "common/image/image_header.h"

#include <functional>

#include "common/base/sha256.h"
#include "common/image/item_list.h"
#include "tests/testing/matchers.h"

namespace privatemail::image_header_test {
namespace {

v1::ImageTable Table() {
  v1::ImageTable table;
  for (const char* id : {"a", "b", "ü"}) table.add_ids(id);
  for (const int label : {-1, 0, 7}) table.add_labels(label);
  return table;
}

// 3 items of 5 features with 9-byte codes and ids of 2 bytes, all sections.
v1::ImageHeader Valid() {
  v1::ImageHeader header;
  header.set_version(1);
  header.set_fingerprint(std::string(32, 'f'));
  header.set_items(3);
  header.set_items_version(4);
  header.set_feature_dim(5);
  header.set_id_bytes(2);
  header.set_code_bytes(9);
  for (const uint32_t lists : {2U, 3U}) {
    v1::ListGroup* group = header.add_partitions();
    group->set_lists(lists);
    group->set_rows(2);
    group->set_list_bytes(8 + 2 * (4 + 4 + 2 + 2 + 9));
  }
  v1::ListGroup* payloads = header.mutable_payloads();
  payloads->set_lists(2);
  payloads->set_rows(2);
  payloads->set_list_bytes(8 + 2 * 4);
  header.set_has_scores(true);
  const uint64_t bytes[] = {Table().ByteSizeLong(), 3 * 9, (2 + 3) * 2 * 4, 3 * 5 * 2, 0};
  for (int section = v1::IMAGE_SECTION_TABLE; section <= v1::IMAGE_SECTION_PAYLOADS; ++section) {
    v1::ImageSectionHeader* one = header.add_sections();
    one->set_section(static_cast<v1::ImageSection>(section));
    one->set_bytes(bytes[section - 1]);
    one->set_sha256(section == 1 ? Sha256::Of(Table().SerializeAsString()) : std::string(32, 's'));
  }
  return header;
}

TEST(ImageHeader, ReadsWhatWasWritten) {
  ASSERT_OK_AND_ASSIGN(const v1::ImageHeader header, ReadImageHeader(Valid().SerializeAsString()));
  EXPECT_EQ(header.SerializeAsString(), Valid().SerializeAsString());
  EXPECT_EQ(PayloadGroup(header), 2u);
  EXPECT_EQ(FindListGroup(header, 0)->lists(), 2u);
  EXPECT_EQ(FindListGroup(header, 1)->lists(), 3u);
  EXPECT_EQ(FindListGroup(header, 2), &header.payloads());
  EXPECT_EQ(FindListGroup(header, 3), nullptr);
  EXPECT_EQ(FindSection(header, v1::IMAGE_SECTION_SCORES)->bytes(), 30u);

  v1::ImageHeader least = Valid();
  least.clear_payloads();
  least.set_has_scores(false);
  least.mutable_sections()->DeleteSubrange(3, 2);
  ASSERT_OK_AND_ASSIGN(const v1::ImageHeader read, ReadImageHeader(least.SerializeAsString()));
  EXPECT_EQ(FindListGroup(read, 2), nullptr);
  EXPECT_EQ(FindSection(read, v1::IMAGE_SECTION_SCORES), nullptr);
}

TEST(ImageHeader, ContradictionNamesItsField) {
  const std::pair<std::function<void(v1::ImageHeader*)>, const char*> faults[] = {
      {[](auto* h) { h->set_version(2); }, "version must be 1, but is 2"},
      {[](auto* h) { h->set_version(0); }, "version must be 1, but is 0"},
      {[](auto* h) { h->mutable_fingerprint()->pop_back(); }, "fingerprint in bytes must be 32"},
      {[](auto* h) { h->set_items(0); }, "items must be between 1 and"},
      {[](auto* h) { h->set_items((uint64_t{1} << 31) + 1); }, "items must be between 1 and"},
      {[](auto* h) { h->set_feature_dim(0); }, "feature_dim must be between 1 and"},
      {[](auto* h) { h->set_feature_dim((1 << 20) + 1); }, "feature_dim must be between 1 and"},
      {[](auto* h) { h->set_id_bytes(0); }, "id_bytes must be between 1 and 512"},
      {[](auto* h) { h->set_id_bytes(513); }, "id_bytes must be between 1 and 512"},
      {[](auto* h) { h->set_code_bytes(0); }, "code_bytes must be between 1 and"},
      {[](auto* h) { h->set_code_bytes((4 << 20) + 1); }, "code_bytes must be between 1 and"},
      {[](auto* h) { h->clear_partitions(); }, "number of partitions must be between 1 and 8"},
      {[](auto* h) {
         while (h->partitions_size() < 9) *h->add_partitions() = h->partitions(0);
       },
       "number of partitions must be between 1 and 8, but is 9"},
      {[](auto* h) { h->mutable_partitions(1)->set_lists(1); },
       "partitions[1].lists must be between 2 and 4096, but is 1"},
      {[](auto* h) { h->mutable_partitions(0)->set_lists(4097); }, "partitions[0].lists must be"},
      {[](auto* h) { h->mutable_partitions(0)->set_rows(0); }, "partitions[0].rows must be"},
      {[](auto* h) { h->mutable_partitions(0)->set_rows(4); },
       "partitions[0].rows must be between 1 and 3, but is 4"},
      {[](auto* h) { h->mutable_partitions(1)->set_list_bytes(51); },
       "partitions[1].list_bytes must be 50, but is 51"},
      {[](auto* h) { h->mutable_payloads()->set_rows(0); }, "payloads.rows must be"},
      {[](auto* h) { h->mutable_payloads()->set_rows(4); }, "payloads.rows must be"},
      {[](auto* h) { h->mutable_payloads()->set_lists(3); }, "payloads.lists must be 2, but is 3"},
      {[](auto* h) { h->mutable_payloads()->set_list_bytes(15); },
       "payloads.list_bytes must be between 16 and"},
      {[](auto* h) { h->mutable_payloads()->set_list_bytes((uint64_t{1} << 30) + 1); },
       "payloads.list_bytes must be between 16 and"},
      {[](auto* h) { h->clear_payloads(); }, "number of sections of payloads must be 0, but is 1"},
      {[](auto* h) { h->mutable_sections()->RemoveLast(); },
       "number of sections of payloads must be 1, but is 0"},
      {[](auto* h) { h->set_has_scores(false); }, "has_scores must be 1, but is 0"},
      {[](auto* h) { h->mutable_sections()->DeleteSubrange(3, 1); },
       "has_scores must be 0, but is 1"},
      {[](auto* h) {
         h->set_feature_dim(65'537);
         h->mutable_sections(3)->set_bytes(3 * 2 * 65'537);
       },
       "feature_dim with scores must be between 1 and 65536, but is 65537"},
      {[](auto* h) { h->mutable_sections()->SwapElements(0, 1); },
       "section 1 is unknown, repeated"},
      {[](auto* h) { *h->mutable_sections(1) = h->sections(0); }, "section 1 is unknown, repeated"},
      {[](auto* h) { h->mutable_sections(4)->set_section(static_cast<v1::ImageSection>(6)); },
       "section 6 is unknown, repeated"},
      {[](auto* h) { h->mutable_sections(0)->set_section(v1::IMAGE_SECTION_UNSPECIFIED); },
       "section 0 is unknown, repeated"},
      {[](auto* h) { h->mutable_sections(2)->mutable_sha256()->push_back('x'); },
       "section 3.sha256 in bytes must be 32, but is 33"},
      {[](auto* h) { h->mutable_sections(1)->set_bytes(26); }, "section 2.bytes must be 27"},
      {[](auto* h) { h->mutable_sections(2)->set_bytes(41); }, "section 3.bytes must be 40"},
      {[](auto* h) { h->mutable_sections(3)->set_bytes(29); }, "section 4.bytes must be 30"},
      {[](auto* h) { h->mutable_sections()->DeleteSubrange(0, 1); },
       "number of sections 1 must be 1, but is 0"},
      {[](auto* h) { h->mutable_sections()->DeleteSubrange(1, 1); },
       "number of sections 2 must be 1, but is 0"},
      {[](auto* h) { h->mutable_sections()->DeleteSubrange(2, 1); },
       "number of sections 3 must be 1, but is 0"},
  };
  for (const auto& [corrupt, part] : faults) {
    v1::ImageHeader header = Valid();
    corrupt(&header);
    EXPECT_THAT(ReadImageHeader(header.SerializeAsString()), FailsWith(kDataLoss, part));
  }
}

TEST(ImageHeader, OtherBytesReturnDataLoss) {
  EXPECT_THAT(ReadImageHeader("nonsense"), FailsWith(kDataLoss, "it cannot be parsed"));
  EXPECT_THAT(ReadImageHeader(""), FailsWith(kDataLoss, "version must be 1"));
  const std::string bytes = Valid().SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(ReadImageHeader(bytes.substr(0, size)), FailsWith(kDataLoss)) << size;
  }
  std::string large = bytes;
  large += std::string("\x92\x01\x80\x80\x40", 5) + std::string(1 << 20, 'x');  // an unknown field
  EXPECT_THAT(ReadImageHeader(large), FailsWith(kDataLoss, "it cannot be parsed"));
}

// Oracle: sha256sum.
TEST(ImageHeader, DigestAndSignedText) {
  EXPECT_EQ(ImageDigest("abc").substr(0, 4), std::string("\xba\x78\x16\xbf", 4));
  EXPECT_EQ(ImageSignatureText("digest"), "privatemail image 1\ndigest");
}

TEST(ImageTable, IsReadIfItIsTheHeaders) {
  const std::string bytes = Table().SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const v1::ImageTable table, ReadImageTable(Valid(), bytes));
  EXPECT_EQ(table.SerializeAsString(), bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_THAT(ReadImageTable(Valid(), damaged), FailsWith(kDataLoss, "does not have the digest"));
  }
}

TEST(ImageTable, ContradictionReturnsDataLoss) {
  const auto read = [](const v1::ImageTable& table) {
    v1::ImageHeader header = Valid();
    header.mutable_sections(0)->set_sha256(Sha256::Of(table.SerializeAsString()));
    return ReadImageTable(header, table.SerializeAsString());
  };
  v1::ImageTable table = Table();
  table.add_ids("c");
  EXPECT_THAT(read(table), FailsWith(kDataLoss, "ids of the table must be 3, but is 4"));
  table = Table();
  table.mutable_labels()->RemoveLast();
  EXPECT_THAT(read(table), FailsWith(kDataLoss, "labels of the table must be 3, but is 2"));
}

}  // namespace
}  // namespace privatemail::image_header_test
