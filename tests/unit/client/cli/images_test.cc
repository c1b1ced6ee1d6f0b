#include "client/cli/images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/features/vector_file.h"
#include "tests/testing/matchers.h"
#include "tests/testing/pictures.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client::cli {
namespace {

using ::testing::ElementsAre;

absl::StatusOr<FolderFeatures> Extract(const TemporaryFolder& folder) {
  ExtractorOptions options;
  options.features_folder = folder / "kept";
  return ExtractFolderFeatures(*ListImageFolder(folder / "images"), options);
}

TEST(FeaturesFolder, ReturnsKeptFeaturesUntilAnImageChanges) {
  const TemporaryFolder folder;
  folder.Write("images/green/1.png", PngOfOneColour(16, 16, 20, 150, 30));
  folder.Write("images/red/2.png", PngOfOneColour(16, 16, 150, 20, 30));
  folder.Write("kept/README", "");
  const auto extract = [&] {
    const auto features = Extract(folder);
    EXPECT_THAT(features, IsOk());
    EXPECT_THAT(features->ids, ElementsAre("green/1.png", "red/2.png"));
    EXPECT_THAT(features->labels, ElementsAre(0, 1));
    return features->features;
  };
  const auto kept = [&] {
    std::vector<std::string> files;
    for (const auto& file : std::filesystem::directory_iterator(folder / "kept")) {
      if (file.path().extension() == ".npy") files.push_back(file.path().string());
    }
    return files;
  };
  const FloatMatrix first = extract();
  ASSERT_EQ(kept().size(), 1u);
  const std::string file = kept().front();
  ASSERT_THAT(WriteNpy(file, FloatMatrix(2 * first)), IsOk());  // shows which are returned
  EXPECT_EQ(extract(), 2 * first);
  folder.Write("images/red/2.png", PngOfOneColour(16, 16, 20, 30, 150));
  EXPECT_NE(extract().row(1), first.row(1));
  EXPECT_EQ(kept().size(), 2u);
  folder.Write("images/red/2.png", PngOfOneColour(16, 16, 150, 20, 30));
  std::filesystem::resize_file(file, 100);  // damaged
  EXPECT_EQ(extract(), first);
}

TEST(FeaturesFolder, KeepsNothingIfAnImageIsRejected) {
  const TemporaryFolder folder;
  folder.Write("images/green/1.png", PngOfOneColour(16, 16, 20, 150, 30));
  folder.Write("images/red/2.png", "not a picture");
  folder.Write("kept/README", "");
  const auto features = Extract(folder);
  ASSERT_THAT(features, IsOk());
  EXPECT_THAT(features->ids, ElementsAre("green/1.png"));
  using Files = std::filesystem::directory_iterator;
  EXPECT_EQ(std::distance(Files(folder / "kept"), Files()), 1);
}

}  // namespace
}  // namespace privatemail::client::cli
