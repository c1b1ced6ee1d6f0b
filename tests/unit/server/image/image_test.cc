#include "server/image/image.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include "common/base/sha256.h"
#include "common/image/image_header.h"
#include "common/image/item_list.h"
#include "tests/unit/server/image/image_scene.h"

namespace privatemail::testing {
namespace {

constexpr auto kImageDamaged = absl::StatusCode::kDataLoss;

// The parts with another section, whose size and digest the header states.
ImageParts WithSection(const ImageParts& parts, v1::ImageSection section,
                       const std::string& bytes) {
  v1::ImageHeader header;
  header.ParseFromString(parts.header);
  ImageParts changed = parts;
  for (int i = 0; i < header.sections_size(); ++i) {
    if (header.sections(i).section() != section) continue;
    header.mutable_sections(i)->set_bytes(bytes.size());
    header.mutable_sections(i)->set_sha256(Sha256::Of(bytes));
    changed.sections[static_cast<size_t>(i)] = bytes;
  }
  changed.header = header.SerializeAsString();
  return changed;
}

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Image, ListsHoldTheItemsOfTheirRows) {
  const TwoServerScene scene(60);
  ASSERT_OK_AND_ASSIGN(const ImageParts parts, scene.Make());
  ASSERT_OK_AND_ASSIGN(const auto image, Image::Create(parts));
  const v1::ImageHeader& header = image->header();
  const char* next = parts.sections[2].data();
  for (uint32_t group = 0; group < 2; ++group) {
    const v1::ListGroup& of = *FindListGroup(header, group);
    ASSERT_EQ(image->lists(group).size(), of.lists() * of.list_bytes());
    for (uint32_t list = 0; list < of.lists(); ++list) {
      ASSERT_OK_AND_ASSIGN(
          const auto items,
          ReadItemList(header, group, list,
                       image->lists(group).substr(list * of.list_bytes(), of.list_bytes())));
      ASSERT_EQ(items.size(), 7u);
      for (const ListedItem& item : items) {
        uint32_t row;
        std::memcpy(&row, next, sizeof(row));
        next += sizeof(row);
        EXPECT_EQ(item.row, row);
        EXPECT_EQ(item.id, scene.contents.gallery.ids[row]);
        EXPECT_EQ(item.label, scene.contents.gallery.labels[row]);
        EXPECT_EQ(item.code, scene.CodeOf(row));
      }
    }
  }
}

TEST(Image, PayloadListsHoldConsecutiveRows) {
  const TwoServerScene scene(4097);  // two a list, of which the last holds one
  const auto image = scene.MakeAndCreate();
  const uint32_t group = PayloadGroup(image->header());
  const v1::ListGroup& of = *FindListGroup(image->header(), group);
  std::vector<std::string> all;
  for (uint32_t list = 0; list < of.lists(); ++list) {
    ASSERT_OK_AND_ASSIGN(
        const auto payloads,
        ReadPayloadList(image->header(), list,
                        image->lists(group).substr(list * of.list_bytes(), of.list_bytes())));
    for (const absl::string_view payload : payloads) all.emplace_back(payload);
  }
  EXPECT_EQ(all, scene.contents.gallery.payloads);
}

TEST(Image, SectionsAndHeaderAreThoseOfTheMaker) {
  const ImageParts parts = *TwoServerScene(60).Make();
  ASSERT_OK_AND_ASSIGN(const auto image, Image::Create(parts));
  EXPECT_EQ(image->header_bytes(), parts.header);
  EXPECT_EQ(image->digest(), Sha256::Of(parts.header));
  EXPECT_EQ(image->table(), parts.sections[0]);
  for (int section = 1; section <= 5; ++section) {
    EXPECT_EQ(image->Section(static_cast<v1::ImageSection>(section)),
              parts.sections[static_cast<size_t>(section - 1)])
        << section;
  }
}

TEST(Image, MemoryIsThatOfSectionsAndLists) {
  const auto image = TwoServerScene(60).MakeAndCreate();
  int64_t bytes = 0;
  for (const auto section :
       {v1::IMAGE_SECTION_TABLE, v1::IMAGE_SECTION_CODES, v1::IMAGE_SECTION_SCORES}) {
    bytes += std::ssize(image->Section(section));
  }
  for (uint32_t group = 0; group < 3; ++group) bytes += std::ssize(image->lists(group));
  EXPECT_EQ(image->memory(), bytes);
  EXPECT_GT(Image::MemoryToCreate(image->header()), bytes);
  for (const auto section : {v1::IMAGE_SECTION_LISTS, v1::IMAGE_SECTION_PAYLOADS}) {
    EXPECT_EQ(image->KeptSection(section), std::nullopt);
    EXPECT_GE(image->MemoryOfSection(section), std::ssize(image->Section(section)));
  }
}

TEST(Image, EveryChangedByteOfASectionIsDataLoss) {
  const ImageParts parts = *TwoServerScene(5).Make(2);
  for (size_t section = 0; section < parts.sections.size(); ++section) {
    for (size_t at = 0; at < parts.sections[section].size(); ++at) {
      ImageParts changed = parts;
      changed.sections[section][at] ^= 1;
      ASSERT_THAT(Image::Create(changed), FailsWith(kImageDamaged, "does not match its digest"));
    }
    ImageParts shorter = parts;
    shorter.sections[section].pop_back();
    EXPECT_THAT(Image::Create(shorter), FailsWith(kImageDamaged, "bytes"));
  }
  ImageParts fewer = parts;
  fewer.sections.pop_back();
  EXPECT_THAT(Image::Create(fewer), FailsWith(kImageDamaged, "sections"));
}

// Two bytes of a section can take 40 in memory, so they are counted first.
TEST(Image, TableOrPayloadsWithMoreEntriesThanItemsAreDataLoss) {
  const ImageParts parts = *TwoServerScene(5).Make(2);
  const auto with_more = [&](v1::ImageSection section, size_t index, absl::string_view more) {
    return Image::Create(WithSection(parts, section, absl::StrCat(parts.sections[index], more)));
  };
  const std::string text("\x0a\0", 2), numbers("\x12\1\2", 3), unknown("\x1a\0", 2);
  constexpr auto kTable = v1::IMAGE_SECTION_TABLE, kPayloads = v1::IMAGE_SECTION_PAYLOADS;
  EXPECT_THAT(with_more(kTable, 0, text), FailsWith(kImageDamaged, "ids of the table must be 5, "));
  EXPECT_THAT(with_more(kTable, 0, numbers), FailsWith(kImageDamaged, "labels of the table"));
  EXPECT_THAT(with_more(kTable, 0, unknown), FailsWith(kImageDamaged, "cannot be parsed"));
  EXPECT_THAT(with_more(kTable, 0, "\x0a\x7f"), FailsWith(kImageDamaged, "cannot be parsed"));
  for (const std::string& more : {text, numbers, unknown}) {
    EXPECT_THAT(with_more(kPayloads, 4, more), FailsWith(kImageDamaged, "payloads cannot be"));
  }
}

// The maker of an image chooses its digests.
TEST(Image, SectionThatContradictsTheHeaderIsDataLoss) {
  const ImageParts parts = *TwoServerScene(5).Make(2);
  std::string rows = parts.sections[2];
  rows[4 * 9] = 5;
  EXPECT_THAT(Image::Create(WithSection(parts, v1::IMAGE_SECTION_LISTS, rows)),
              FailsWith(kImageDamaged, "list 1 of group 1 of the image: a row must be below 5"));

  v1::ImageTable table;
  ASSERT_TRUE(table.ParseFromString(parts.sections[0]));
  v1::ImageTable changed = table;
  changed.mutable_ids()->SwapElements(1, 2);
  EXPECT_THAT(
      Image::Create(WithSection(parts, v1::IMAGE_SECTION_TABLE, changed.SerializeAsString())),
      FailsWith(kImageDamaged, "does not ascend"));
  changed = table;
  changed.set_ids(4, "item-00004xxxx");
  EXPECT_THAT(
      Image::Create(WithSection(parts, v1::IMAGE_SECTION_TABLE, changed.SerializeAsString())),
      FailsWith(kImageDamaged, "id_bytes (12)"));
  changed = table;
  changed.add_labels(3);
  EXPECT_THAT(
      Image::Create(WithSection(parts, v1::IMAGE_SECTION_TABLE, changed.SerializeAsString())),
      FailsWith(kImageDamaged, "labels"));

  v1::ImagePayloads payloads;
  ASSERT_TRUE(payloads.ParseFromString(parts.sections[4]));
  const auto with_payloads = [&](const std::string& bytes) {
    return Image::Create(WithSection(parts, v1::IMAGE_SECTION_PAYLOADS, bytes));
  };
  v1::ImagePayloads more = payloads;
  more.add_payloads("");
  EXPECT_THAT(with_payloads(more.SerializeAsString()), FailsWith(kImageDamaged, "one an item"));
  more = payloads;
  more.set_payloads(2, std::string(200, 'x'));
  EXPECT_THAT(with_payloads(more.SerializeAsString()), FailsWith(kImageDamaged, "exceed list 2"));
  // A longer encoding of a length.
  ASSERT_EQ(parts.sections[4].substr(0, 2), std::string("\x0a\0", 2));
  EXPECT_THAT(with_payloads(std::string("\x0a\x80\0", 3) + parts.sections[4].substr(2)),
              FailsWith(kImageDamaged, "serialised"));
  EXPECT_THAT(with_payloads("\xff"), FailsWith(kImageDamaged, "parsed"));
}

TEST(ImageFile, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  const ImageParts parts = *TwoServerScene(60).Make();
  const auto image = *Image::Create(parts);
  ASSERT_THAT(WriteImageFile(*image, folder / "image"), IsOk());
  ASSERT_OK_AND_ASSIGN(const v1::ImageHeader header, ReadImageFileHeader(folder / "image"));
  EXPECT_EQ(header.SerializeAsString(), parts.header);
  ASSERT_OK_AND_ASSIGN(const auto read, ReadImageFile(folder / "image"));
  EXPECT_EQ(read->digest(), image->digest());
  for (uint32_t group = 0; group < 3; ++group) EXPECT_EQ(read->lists(group), image->lists(group));
  EXPECT_EQ(read->Section(v1::IMAGE_SECTION_SCORES), parts.sections[3]);
}

TEST(ImageFile, EveryChangedByteAndEveryCutIsDataLoss) {
  const TemporaryFolder folder;
  ASSERT_THAT(WriteImageFile(**Image::Create(*TwoServerScene(3).Make(1)), folder / "image"),
              IsOk());
  const std::string content = ContentOf(folder / "image");
  for (size_t at = 0; at < content.size(); ++at) {
    std::string changed = content;
    changed[at] ^= 1;
    ASSERT_THAT(ReadImageFile(folder.Write("changed", changed)), FailsWith(kImageDamaged)) << at;
    ASSERT_THAT(ReadImageFile(folder.Write("changed", content.substr(0, at))),
                FailsWith(kImageDamaged))
        << at;
  }
  EXPECT_THAT(ReadImageFile(folder.Write("changed", content + "x")), FailsWith(kImageDamaged));
}

// Sizes are checked before anything is allocated.
TEST(ImageFile, HugeSizesOfAShortFileAreDataLoss) {
  const TemporaryFolder folder;
  std::string content = "\x89PMIMG1\n" + std::string(8, '\xff') + std::string(100, 'x');
  EXPECT_THAT(ReadImageFileHeader(folder.Write("image", content)),
              FailsWith(kImageDamaged, "length of the header"));
  ImageParts parts = *TwoServerScene(3).Make(1, nullptr, false);
  v1::ImageHeader header;
  header.ParseFromString(parts.header);
  header.set_items(1u << 31);
  header.mutable_payloads()->set_rows(1u << 19);
  header.mutable_payloads()->set_lists(1u << 12);
  header.mutable_payloads()->set_list_bytes(1u << 30);
  header.mutable_sections(1)->set_bytes(header.items() * header.code_bytes());
  const std::string bytes = header.SerializeAsString();
  const uint64_t length = bytes.size();
  content = "\x89PMIMG1\n" + std::string(reinterpret_cast<const char*>(&length), sizeof(length)) +
            Sha256::Of(bytes) + bytes + std::string(100, 'x');
  EXPECT_THAT(ReadImageFile(folder.Write("image", content)),
              FailsWith(kImageDamaged, "bytes, but have 100"));
}

TEST(ImageFile, MissingFileIsNotFoundAndFolderCannotBeRead) {
  const TemporaryFolder folder;
  EXPECT_THAT(ReadImageFile(folder / "none"), FailsWith(absl::StatusCode::kNotFound, "none"));
  EXPECT_THAT(ReadImageFile(folder.path()), FailsWith(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace privatemail::testing
