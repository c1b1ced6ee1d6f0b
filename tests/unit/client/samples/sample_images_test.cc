#include "client/samples/sample_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "common/features/image_folder.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

using ::testing::HasSubstr;

std::string FileBytes(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

std::vector<std::string> AllPictures(const ImageFolder& folder) {
  std::vector<std::string> pictures;
  for (const FolderImage& image : folder.images) pictures.push_back(FileBytes(image.path));
  return pictures;
}

SampleImageOptions Options(const std::string& out_dir, int classes, int per_class, uint64_t seed) {
  SampleImageOptions options;
  options.out_dir = out_dir;
  options.classes = classes;
  options.per_class = per_class;
  options.seed = seed;
  return options;
}

TEST(SampleImages, PicturesDecodeAreDistinctAndFilledWithColour) {
  const TemporaryFolder folder;
  std::vector<int> progress;
  ASSERT_TRUE(WriteSampleImages(Options(folder / "birds", 8, 12, 7), [&](int done, int total) {
                EXPECT_EQ(total, 96);
                progress.push_back(done);
              }).ok());
  EXPECT_EQ(progress.size(), 96);
  EXPECT_EQ(progress.back(), 96);
  const ImageFolder listed = ListImageFolder(folder / "birds").value();
  EXPECT_EQ(listed.class_names.size(), 8);
  EXPECT_EQ(listed.images.size(), 96);
  EXPECT_TRUE(listed.skipped.empty());
  const std::vector<std::string> pictures = AllPictures(listed);
  EXPECT_EQ(std::set<std::string>(pictures.begin(), pictures.end()).size(), 96);
  const FolderFeatures found = ExtractFolder(listed, MakeBuiltInExtractor, 2, nullptr).value();
  EXPECT_EQ(found.features.rows(), 96);
}

TEST(SampleImages, TheSeedDecidesEveryByte) {
  const TemporaryFolder folder;
  for (const auto& [name, seed] : {std::pair("a", 5), std::pair("b", 5), std::pair("c", 6)}) {
    ASSERT_TRUE(WriteSampleImages(Options(folder / name, 3, 2, seed), nullptr).ok());
  }
  const ImageFolder a = ListImageFolder(folder / "a").value();
  const ImageFolder b = ListImageFolder(folder / "b").value();
  const ImageFolder c = ListImageFolder(folder / "c").value();
  EXPECT_EQ(a.class_names, b.class_names);
  EXPECT_EQ(AllPictures(a), AllPictures(b));
  EXPECT_NE(a.class_names, c.class_names);
}

TEST(SampleImages, APictureDoesNotDependOnHowManyAreAskedFor) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteSampleImages(Options(folder / "few", 2, 2, 7), nullptr).ok());
  ASSERT_TRUE(WriteSampleImages(Options(folder / "more", 4, 3, 7), nullptr).ok());
  const ImageFolder few = ListImageFolder(folder / "few").value();
  for (const FolderImage& image : few.images) {
    EXPECT_EQ(FileBytes(image.path), FileBytes(folder / ("more/" + image.id)));
  }
}

TEST(SampleImages, TwoHundredSpeciesHaveNamesOfTheirOwn) {
  const TemporaryFolder folder;
  SampleImageOptions options = Options(folder / "many", 200, 1, 7);
  options.size = 64;
  ASSERT_TRUE(WriteSampleImages(options, nullptr).ok());
  EXPECT_EQ(ListImageFolder(folder / "many").value().class_names.size(), 200);
}

TEST(SampleImages, OptionsOutOfRangeAreNamed) {
  const TemporaryFolder folder;
  const auto message = [](const SampleImageOptions& options) {
    return std::string(WriteSampleImages(options, nullptr).message());
  };
  EXPECT_EQ(message(Options(folder / "x", 1, 1, 7)), "classes must be between 2 and 200, but is 1");
  EXPECT_EQ(message(Options(folder / "x", 2, 0, 7)),
            "per_class must be between 1 and 1000, but is 0");
  SampleImageOptions options = Options(folder / "x", 2, 1, 7);
  options.size = 63;
  EXPECT_EQ(message(options), "size must be between 64 and 1024, but is 63");
  EXPECT_THAT(message(Options("", 2, 1, 7)), HasSubstr("out_dir must name a folder"));
  EXPECT_THAT(message(Options(folder.Write("file", "x"), 2, 1, 7)),
              HasSubstr("out_dir must be a folder, but "));
  EXPECT_THAT(message(Options(folder.path(), 2, 1, 7)), HasSubstr("out_dir must be empty"));
}

}  // namespace
}  // namespace privatemail::client
