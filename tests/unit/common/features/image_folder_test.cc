#include "common/features/image_folder.h"

#include <filesystem>
#include <fstream>

#include "common/base/files.h"
#include "common/features/feature_cache.h"
#include "tests/testing/matchers.h"
#include "tests/testing/pictures.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Entries>
std::vector<std::string> Ids(const Entries& entries) {
  std::vector<std::string> ids;
  ids.reserve(entries.size());
  for (const auto& entry : entries) ids.push_back(entry.id);
  return ids;
}

TEST(ImageFolder, ListsSortedImagesAndSkipsOtherFiles) {
  const TemporaryFolder folder;
  for (const char* file : {"pear/b.png", "pear/a.JPG", "pear/notes.txt", "pear/.hidden.png",
                           "pear/more/c.png", "pear-like/d.jpeg", "onion/e.webp", "onion/f.tiff",
                           "empty/readme.md", ".git/x.png", "loose.png"}) {
    folder.Write(file, "not opened");
  }
  const auto listed = ListImageFolder(folder.path());
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_THAT(listed->class_names, ElementsAre("onion", "pear", "pear-like"));
  EXPECT_THAT(Ids(listed->images), ElementsAre("loose.png", "onion/e.webp", "pear-like/d.jpeg",
                                               "pear/a.JPG", "pear/b.png"));
  EXPECT_EQ(listed->images[0].label, kNoClass);
  EXPECT_THAT(Ids(listed->skipped), ElementsAre(".git", "empty", "empty/readme.md", "onion/f.tiff",
                                                "pear/.hidden.png", "pear/more", "pear/notes.txt"));
  ImageFolder classes = *listed;
  ASSERT_THAT(RequireClasses(folder.path(), &classes), IsOk());
  EXPECT_EQ(classes.skipped.back().id, "loose.png");
  for (const FolderImage& image : classes.images) {
    EXPECT_EQ(image.id.substr(0, image.id.find('/')), listed->class_names[image.label]);
    EXPECT_EQ(image.path, folder / image.id);
  }
}

TEST(ImageFolder, FlatFolderHasNoClasses) {
  const TemporaryFolder folder;
  for (const char* file : {"b.png", "a.jpg", "notes.txt"}) folder.Write(file, "not opened");
  auto listed = ListImageFolder(folder.path());
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_THAT(Ids(listed->images), ElementsAre("a.jpg", "b.png"));
  EXPECT_THAT(Ids(listed->skipped), ElementsAre("notes.txt"));
  EXPECT_TRUE(listed->class_names.empty());
  EXPECT_THAT(RequireClasses(folder.path(), &*listed),
              FailsWith(kInvalid, "expected one sub-folder of images for each class"));
}

TEST(ImageFolder, InvalidFolderIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT(ListImageFolder(folder / "none"), FailsWith(kInvalid, "/none: no such folder"));
  EXPECT_THAT(ListImageFolder(folder.Write("file", "x")), FailsWith(kInvalid, "but it is a file"));
  EXPECT_THAT(ListImageFolder(folder.path()), FailsWith(kInvalid, "but there is none"));
  folder.Write("class/readme.txt", "x");
  EXPECT_THAT(ListImageFolder(folder.path()), FailsWith(kInvalid, "but there is none"));
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

  FolderFeatures Extract(int threads, const ExtractionOptions& options = {}) const {
    const auto extractors = MakeExtractors(MakeBuiltInExtractor, threads).value();
    auto features = ExtractFolder(images_.images, extractors, options);
    EXPECT_THAT(features, IsOk());
    return *std::move(features);
  }

  const TemporaryFolder folder_;
  ImageFolder images_;
};

TEST_F(ExtractFolderTest, DamagedImagesAreRejectedOneByOne) {
  const FolderFeatures result = Extract(1);
  EXPECT_THAT(Ids(result.rejected), ElementsAre("a/10.png", "a/17.png", "b/29.png"));
  EXPECT_THAT(result.rejected[0].reason, HasSubstr("a/10.png: expected an image"));
  ASSERT_EQ(result.features.rows(), 17);
  ASSERT_EQ(result.ids.size(), 17);
  EXPECT_EQ(result.ids[0], "a/11.png");
  EXPECT_EQ(result.labels[7], 0);
  EXPECT_EQ(result.labels[8], 1);
  const auto alone = (*MakeBuiltInExtractor())->Extract(folder_ / "b/28.png");
  EXPECT_EQ(result.features.row(16), *alone);
}

TEST_F(ExtractFolderTest, ResultAndProgressDoNotDependOnThreads) {
  int64_t seen = 0;
  const auto count = [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 20);
    EXPECT_EQ(done, ++seen);
  };
  const FolderFeatures one = Extract(1), many = Extract(5, {.progress = count});
  EXPECT_EQ(seen, 20);
  EXPECT_EQ(one.features, many.features);
  EXPECT_EQ(one.ids, many.ids);
  EXPECT_EQ(one.labels, many.labels);
}

TEST_F(ExtractFolderTest, FatalErrorsAreReturned) {
  EXPECT_EQ(Message(MakeExtractors(MakeBuiltInExtractor, 0).status()),
            "threads must be between 1 and 256, but is 0");
  const auto broken = [] { return absl::UnavailableError("no extractor today"); };
  EXPECT_EQ(MakeExtractors(broken, 2).status(), absl::UnavailableError("no extractor today"));
  const auto extractors = MakeExtractors(MakeBuiltInExtractor, 2).value();
  const auto cancelled = [] { return true; };
  EXPECT_THAT(ExtractFolder(images_.images, extractors, {.cancelled = cancelled}),
              FailsWith(kCancelled));
}

TEST_F(ExtractFolderTest, KeptFeaturesAreReturnedUntilTheirImageOrRecordChanges) {
  const FolderFeatures plain = Extract(1);
  std::filesystem::create_directory(folder_ / "kept");
  const auto extract = [&](const std::string& identity = "one") {
    const auto cache = FeatureCache::Open(folder_ / "kept", identity, 548).value();
    return Extract(2, {.cache = cache.get()}).features;
  };
  EXPECT_EQ(extract(), plain.features);
  const std::string file = std::filesystem::directory_iterator(folder_ / "kept")->path();
  constexpr uintmax_t kRecord = 32 + 4 * 548 + 8;
  EXPECT_EQ(std::filesystem::file_size(file), 17 * kRecord);
  EXPECT_EQ(extract(), plain.features);
  EXPECT_EQ(std::filesystem::file_size(file), 17 * kRecord) << "an image was extracted twice";
  std::filesystem::resize_file(file, 17 * kRecord - 5);  // killed while it wrote
  EXPECT_EQ(extract(), plain.features);
  EXPECT_EQ(std::filesystem::file_size(file), 17 * kRecord);
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(100).put('x');
  EXPECT_EQ(extract(), plain.features) << "a damaged record was believed";
  EXPECT_EQ(std::filesystem::file_size(file), 18 * kRecord);
  folder_.Write("a/11.png", PngOfOneColour(8, 8, 1, 2, 3));
  EXPECT_NE(extract().row(0), plain.features.row(0));
  extract("another");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "kept"), {}), 2);
  EXPECT_THAT(FeatureCache::Open(folder_ / "none", "one", 548),
              FailsWith(kFailedPrecondition, "/none/"));
}

TEST(FeatureCache, SeveralWritersOfAFileMixNothing) {
  const TemporaryFolder folder;
  const auto open = [&] { return FeatureCache::Open(folder / "", "one", 1).value(); };
  const auto key = [](char letter) { return std::string(32, letter); };
  const auto value = [](float number) { return Eigen::RowVectorXf::Constant(1, number).eval(); };
  const auto one = open(), other = open();
  for (const char letter : {'a', 'b', 'c'}) {
    ASSERT_THAT(one->Add(key(letter), value(letter)), IsOk());
    ASSERT_THAT(other->Add(key(letter + 10), value(letter + 10)), IsOk());
  }
  const auto all = open();
  for (const char letter : {'a', 'b', 'c', 'k', 'l', 'm'}) {
    EXPECT_EQ(all->Find(key(letter)), value(letter)) << letter;
  }
  EXPECT_EQ(one->Find(key('b')), value('b'));
  // A record of another image in its place is no feature of it.
  const std::string file = std::filesystem::directory_iterator(folder / "")->path();
  const std::string bytes = ReadFileBytes(file).value();
  constexpr size_t kRecord = 32 + 4 + 8;
  ASSERT_EQ(bytes.size(), 6 * kRecord);
  folder.Write(std::filesystem::path(file).filename(),
               bytes.substr(kRecord, kRecord) + bytes.substr(kRecord));
  EXPECT_EQ(one->Find(key('a')), std::nullopt);
}

}  // namespace
}  // namespace privatemail
