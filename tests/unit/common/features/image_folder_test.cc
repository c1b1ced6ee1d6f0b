#include "common/features/image_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/pictures.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ids of images or skipped entries.
template <typename Entries>
std::vector<std::string> Ids(const Entries& entries) {
  std::vector<std::string> ids;
  ids.reserve(entries.size());
  for (const auto& entry : entries) ids.push_back(entry.id);
  return ids;
}

TEST(ImageFolder, ListsSortedImagesAndSkipsOtherFiles) {
  const TemporaryFolder folder;
  for (const char* file : {"wren/b.png", "wren/a.JPG", "wren/notes.txt", "wren/.hidden.png",
                           "wren/more/c.png", "wren-like/d.jpeg", "owl/e.webp", "owl/f.tiff",
                           "empty/readme.md", ".git/x.png", "loose.png"}) {
    folder.Write(file, "not opened");
  }
  const auto listed = ListImageFolder(folder.path());
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_THAT(listed->class_names, ElementsAre("owl", "wren", "wren-like"));
  EXPECT_THAT(Ids(listed->images),
              ElementsAre("owl/e.webp", "wren-like/d.jpeg", "wren/a.JPG", "wren/b.png"));
  EXPECT_THAT(Ids(listed->skipped),
              ElementsAre(".git", "empty", "empty/readme.md", "loose.png", "owl/f.tiff",
                          "wren/.hidden.png", "wren/more", "wren/notes.txt"));
  for (const FolderImage& image : listed->images) {
    EXPECT_EQ(image.id.substr(0, image.id.find('/')), listed->class_names[image.label]);
    EXPECT_EQ(image.path, folder / image.id);
  }
}

TEST(ImageFolder, InvalidFolderIsNamed) {
  const TemporaryFolder folder;
  EXPECT_EQ(ListImageFolder(folder / "none").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(ListImageFolder(folder.Write("file", "x")).status()),
              HasSubstr("but it is a file"));
  EXPECT_THAT(Message(ListImageFolder(folder.path()).status()),
              HasSubstr("but there is no sub-folder"));
  folder.Write("class/readme.txt", "x");
  EXPECT_THAT(Message(ListImageFolder(folder.path()).status()),
              HasSubstr("but no sub-folder holds an image"));
}

class ExtractFolderTest : public ::testing::Test {
 protected:
  // Two classes of ten one-coloured images; three of them are damaged.
  ExtractFolderTest() {
    for (int i = 0; i < 20; ++i) {
      const std::string id = (i < 10 ? "a/" : "b/") + std::to_string(10 + i) + ".png";
      const bool damaged = i == 0 || i == 7 || i == 19;
      folder_.Write(id, damaged ? "damaged" : PngOfOneColour(8, 8, 10 * i, 100, 250 - 10 * i));
    }
    images_ = ListImageFolder(folder_.path()).value();
  }

  const TemporaryFolder folder_;
  ImageFolder images_;
};

TEST_F(ExtractFolderTest, DamagedImagesAreRejectedOneByOne) {
  const auto result = ExtractFolder(images_, MakeBuiltInExtractor, 1, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Ids(result->rejected), ElementsAre("a/10.png", "a/17.png", "b/29.png"));
  EXPECT_THAT(result->rejected[0].reason, HasSubstr("a/10.png: expected an image"));
  ASSERT_EQ(result->features.rows(), 17);
  ASSERT_EQ(result->ids.size(), 17);
  EXPECT_EQ(result->ids[0], "a/11.png");
  EXPECT_EQ(result->labels[7], 0);
  EXPECT_EQ(result->labels[8], 1);
  const auto alone = (*MakeBuiltInExtractor())->Extract(folder_ / "b/28.png");
  EXPECT_EQ(result->features.row(16), *alone);
}

TEST_F(ExtractFolderTest, ResultDoesNotDependOnThreads) {
  const auto one = ExtractFolder(images_, MakeBuiltInExtractor, 1, nullptr);
  const auto many = ExtractFolder(images_, MakeBuiltInExtractor, 5, nullptr);
  ASSERT_TRUE(one.ok() && many.ok());
  EXPECT_EQ(one->features, many->features);
  EXPECT_EQ(one->ids, many->ids);
  EXPECT_EQ(one->labels, many->labels);
}

TEST_F(ExtractFolderTest, ProgressCountsEachImageOnce) {
  std::vector<int64_t> seen;
  ASSERT_TRUE(ExtractFolder(images_, MakeBuiltInExtractor, 3, [&](int64_t done, int64_t total) {
                EXPECT_EQ(total, 20);
                seen.push_back(done);
              }).ok());
  ASSERT_EQ(seen.size(), 20);
  for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(seen[i], i + 1);
}

TEST_F(ExtractFolderTest, FatalErrorsAreReturned) {
  EXPECT_EQ(Message(ExtractFolder(images_, MakeBuiltInExtractor, 0, nullptr).status()),
            "threads must be between 1 and 256, but is 0");
  const auto broken = [] { return absl::UnavailableError("no extractor today"); };
  EXPECT_EQ(ExtractFolder(images_, broken, 2, nullptr).status(),
            absl::UnavailableError("no extractor today"));
  images_.images.resize(1);
  EXPECT_THAT(Message(ExtractFolder(images_, MakeBuiltInExtractor, 2, nullptr).status()),
              HasSubstr("none of the 1 images could be described; the first: "));
}

}  // namespace
}  // namespace privatemail
