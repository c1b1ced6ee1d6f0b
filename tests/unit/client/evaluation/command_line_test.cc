#include "client/evaluation/command_line.h"

#include <algorithm>
#include <filesystem>

#include "client/evaluation/experiments/all.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

using testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

absl::StatusOr<Study> StudyFrom(std::vector<std::string> words) {
  CLI::App app;
  EvaluationOptions options;
  AddEvaluationOptions(app, &options);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  app.parse(words);
  return StudyOf(options);
}

TEST(CommandLine, RefusesWhatWouldBeIgnored) {
  const std::vector<std::string> vectors = {"--vectors", "v.npy", "--labels", "l.npy"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), vectors.begin(), vectors.end());
    return StudyFrom(words);
  };
  EXPECT_THAT(with({"--onnx", "m.onnx"}), FailsWith(kInvalid, "--onnx is for images"));
  EXPECT_THAT(with({"--input-size", "64x64"}), FailsWith(kInvalid, "--input-size"));
  for (const char* flag :
       {"--experiments", "--epsilons", "--anchors-per-class", "--dim", "--bandwidth", "--steps"}) {
    EXPECT_THAT(with({"--tune", flag, "3"}), FailsWith(kInvalid, flag));
    EXPECT_THAT(with({flag, "3"}), FailsWith(kInvalid, "v.npy: no such file"));
  }
  EXPECT_THAT(with({"--tune", "--attacks"}), FailsWith(kInvalid, "--attacks"));
  EXPECT_THAT(with({"--epsilons", "3", "--experiments", "cells"}),
              FailsWith(kInvalid, "--epsilons is of no use to --experiments cells"));
  for (const auto& drawn : {std::vector<std::string>{"--experiments", "cells,recall"},
                            {"--experiments", "cells", "--attacks"}}) {
    std::vector<std::string> words = {"--epsilons", "3"};
    words.insert(words.end(), drawn.begin(), drawn.end());
    EXPECT_THAT(with(words), FailsWith(kInvalid, "v.npy: no such file"));
  }
}

TEST(CommandLine, HelpNamesTheExperiments) {
  CLI::App app;
  EvaluationOptions options;
  AddEvaluationOptions(app, &options);
  EXPECT_THAT(app.help(), HasSubstr("Some of " + ExperimentNames() + ", with commas between"));
  EXPECT_THAT(ExperimentNames(), HasSubstr("inference-privacy, attacks"));
}

TEST(CommandLine, ReadsASizeToItsEnd) {
  const TemporaryFolder folder;
  folder.Write("images/a/1.png", "");
  folder.Write("images/b/2.png", "");
  for (const char* size : {"224x224x3", "224", "224x", "axb"}) {
    const auto study = StudyFrom({"--images", folder / "images", "--onnx", "m.onnx", "--input-size",
                                  size, "--out", folder / "out"});
    EXPECT_THAT(study, FailsWith(kInvalid, "--input-size must be WIDTHxHEIGHT")) << size;
  }
}

TEST(CommandLine, CountsFilesThatAreLeftOut) {
  const TemporaryFolder folder;
  const std::string pixel = "P6\n1 1\n255\nabc";
  for (const char* name : {"images/a/1.ppm", "images/b/2.ppm"}) folder.Write(name, pixel);
  folder.Write("images/readme.txt", "");
  folder.Write("images/b/notes.doc", "");
  testing::internal::CaptureStderr();
  const auto study = StudyFrom({"--images", folder / "images", "--out", folder / "out"});
  const std::string told = testing::internal::GetCapturedStderr();
  ASSERT_THAT(study, IsOk());
  EXPECT_THAT(study->about, HasSubstr("2 classes; 2 files or folders left out"));
  EXPECT_THAT(told, HasSubstr("left out 2 files or folders:\n  b/notes.doc: "));
  EXPECT_TRUE(std::filesystem::exists(folder / "out/features"));
}

TEST(CommandLine, UnpackedImagesDoNotStay) {
  const TemporaryFolder folder;
  std::string bytes;
  for (const char label : {0, 1, 0, 1}) bytes += std::string{0, label} + std::string(3072, 'x');
  const std::string file = folder.Write("test.bin", bytes);
  folder.Write("out/unpacked/07/left-by-an-earlier-run.ppm", "");
  const auto study = StudyFrom({"--preset", "cifar100", "--data", file, "--out", folder / "out"});
  ASSERT_THAT(study, IsOk());
  EXPECT_EQ(study->data.labels.size(), 4u);
  EXPECT_FALSE(std::filesystem::exists(folder / "out/unpacked"));
}

TEST(InFlags, NamesWhatWasTyped) {
  const auto message = [](absl::string_view text) {
    return std::string(InFlags(absl::InvalidArgumentError(text)).message());
  };
  EXPECT_EQ(message("kernel_bandwidth must be positive, but is 0"),
            "--bandwidth must be positive, but is 0");
  EXPECT_EQ(message("k must be 1"), "-k must be 1");
  EXPECT_EQ(message("--delta must be 1"), "--delta must be 1");
  EXPECT_EQ(message("knee must be 1"), "knee must be 1");
  EXPECT_EQ(InFlags(absl::DataLossError("alpha must be 1")),
            absl::DataLossError("--alpha must be 1"));
}

}  // namespace
}  // namespace privatemail::client
