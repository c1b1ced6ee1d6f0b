#include "client/evaluation/data.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>

#include "client/evaluation/command_line.h"
#include "client/evaluation/experiments/experiments.h"
#include "client/flags/names.h"
#include "common/features/feature_extractor.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

using testing::ElementsAre;

TEST(Data, AreUnitRowsWithLabels) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(
      const LabelledRows data,
      ReadLabelledVectors(folder.Write("v.csv", "3,4\n0,2\n"), folder.Write("l.txt", "7\n9\n")));
  EXPECT_DOUBLE_EQ(data.features(0, 0), .6);
  EXPECT_DOUBLE_EQ(data.features(0, 1), .8);
  EXPECT_DOUBLE_EQ(data.features(1, 1), 1);
  EXPECT_THAT(data.labels, ElementsAre(7, 9));
}

TEST(Data, NeedALabelForEveryRow) {
  const TemporaryFolder folder;
  EXPECT_THAT(
      ReadLabelledVectors(folder.Write("v.csv", "3,4\n0,2\n"), folder.Write("l.txt", "7\n")),
      FailsWith(absl::StatusCode::kInvalidArgument, "expected 2, got 1"));
  EXPECT_THAT(
      ReadLabelledVectors(folder.Write("v.csv", "3,4\n0,0\n"), folder.Write("l.txt", "7\n1\n")),
      FailsWith(absl::StatusCode::kInvalidArgument, "vectors row 1"));
}

TEST(Data, ADigestTellsLabelsAndValuesApart) {
  const LabelledRows data{Matrix::Identity(2, 2), {1, 2}};
  LabelledRows other = data;
  EXPECT_EQ(DigestOf(data), DigestOf(other));
  other.labels[0] = 2;
  EXPECT_NE(DigestOf(data), DigestOf(other));
  other = data;
  other.features(0, 1) = .5;
  EXPECT_NE(DigestOf(data), DigestOf(other));
}

TEST(ImageSets, CubIsFoundFromAboveAndFromWithin) {
  const TemporaryFolder folder;
  folder.Write("CUB_200_2011/images/002.Laysan_Albatross/b.jpg", "");
  folder.Write("CUB_200_2011/images/001.Black_footed_Albatross/a.jpg", "");
  folder.Write("CUB_200_2011/images.txt", "1 001.Black_footed_Albatross/a.jpg\n");
  for (const std::string& path : {folder.path(), folder / "CUB_200_2011"}) {
    ASSERT_OK_AND_ASSIGN(const ImageFolder images, ListCub200(path));
    EXPECT_THAT(images.class_names,
                ElementsAre("001.Black_footed_Albatross", "002.Laysan_Albatross"));
    EXPECT_EQ(images.images[1].label, 1);
  }
}

TEST(ImageSets, CarsInTrainAndTestAreTakenTogether) {
  const TemporaryFolder folder;
  for (const char* part : {"train", "test"}) {
    for (const char* name : {"Audi", "BMW"}) {
      folder.Write(std::string("car_data/") + part + "/" + name + "/" + part + ".jpg", "");
    }
  }
  ASSERT_OK_AND_ASSIGN(const ImageFolder images, ListCars196(folder.path()));
  EXPECT_THAT(images.class_names, ElementsAre("Audi", "BMW"));
  ASSERT_EQ(images.images.size(), 4u);
  EXPECT_EQ(images.images[0].id, "test/Audi/test.jpg");
  EXPECT_EQ(images.images[3].id, "train/BMW/train.jpg");
  EXPECT_EQ(images.images[3].label, 1);
  folder.Write("car_data/test/Volvo/1.jpg", "");
  EXPECT_THAT(ListCars196(folder.path()),
              FailsWith(absl::StatusCode::kInvalidArgument, "the same classes"));
}

TEST(ImageSets, CarsThatAreNotSortedAreRefused) {
  const TemporaryFolder folder;
  folder.Write("cars_train/00001.jpg", "");
  folder.Write("cars_test/00001.jpg", "");
  EXPECT_THAT(ListCars196(folder.path()),
              FailsWith(absl::StatusCode::kInvalidArgument, "sort the images by class"));
}

std::string CifarImage(char coarse, char fine, char red) {
  std::string image = {coarse, fine};
  image += std::string(1024, red) + std::string(1024, 0) + std::string(1024, 0);
  return image;
}

TEST(ImageSets, CifarHasItsFineLabels) {
  const TemporaryFolder folder;
  folder.Write("cifar-100-binary/test.bin",
               CifarImage(1, 20, '\xff') + CifarImage(2, 3, '\x80') + CifarImage(1, 20, '\xff'));
  ASSERT_OK_AND_ASSIGN(const ImageFolder images, UnpackCifar100(folder.path(), folder / "scratch"));
  EXPECT_THAT(images.class_names, ElementsAre("03", "20"));
  ASSERT_OK_AND_ASSIGN(const LabelledRows data, DescribeImages(
                                                    images, [] { return MakeBuiltInExtractor(); },
                                                    folder / "kept", nullptr));
  EXPECT_THAT(data.labels, ElementsAre(0, 1, 1));
  EXPECT_EQ(data.features.row(1), data.features.row(2));
  EXPECT_NE(data.features.row(0), data.features.row(1));
}

// Features of 2 values that depend on the image's bytes and on how it calls itself.
class SizeExtractor final : public FeatureExtractor {
 public:
  SizeExtractor(std::string identity, std::atomic<int>* described)
      : identity_(std::move(identity)), described_(described) {}

  absl::StatusOr<Eigen::RowVectorXf> Extract(const std::string& path) override {
    ++*described_;
    if (std::filesystem::file_size(path) == 0) return absl::InvalidArgumentError("empty");
    return Eigen::RowVectorXf{{static_cast<float>(std::filesystem::file_size(path)), 1}};
  }
  int dim() const override { return 2; }
  const std::string& identity() const override { return identity_; }

 private:
  std::string identity_;
  std::atomic<int>* described_;
};

TEST(ImageSets, DescriptionsAreKeptForTheSameImagesAndExtractor) {
  const TemporaryFolder folder;
  folder.Write("images/a/1.png", "12");
  const std::string second = folder.Write("images/b/2.png", "123");
  std::atomic<int> described = 0;
  const auto describe = [&](const char* identity) {
    described = 0;
    const auto rows = DescribeImages(
        *ListImageFolder(folder / "images"),
        [&] { return std::make_unique<SizeExtractor>(identity, &described); }, folder / "kept",
        nullptr);
    EXPECT_THAT(rows, IsOk());
    return rows.value_or(LabelledRows());
  };
  const LabelledRows first = describe("one");
  EXPECT_EQ(described, 2);
  EXPECT_THAT(first.labels, ElementsAre(0, 1));
  const LabelledRows again = describe("one");
  EXPECT_EQ(described, 0);
  EXPECT_EQ(DigestOf(again), DigestOf(first));
  describe("other");
  EXPECT_EQ(described, 2);
  folder.Write("images/b/2.png", "321");  // as long as before
  describe("one");
  EXPECT_EQ(described, 2);
  for (const auto& file : std::filesystem::directory_iterator(folder / "kept")) {
    std::filesystem::resize_file(file.path(), 100);
  }
  EXPECT_EQ(DigestOf(describe("one")), DigestOf(first));
  EXPECT_EQ(described, 2);
  std::ofstream{second};
  EXPECT_THAT(DescribeImages(
                  *ListImageFolder(folder / "images"),
                  [&] { return std::make_unique<SizeExtractor>("one", &described); },
                  folder / "kept", nullptr),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "1 images could not be described, the first being b/2.png: empty"));
}

TEST(ImageSets, ADamagedCifarIsRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT(UnpackCifar100(folder.Write("short.bin", "abc"), folder / "scratch"),
              FailsWith(absl::StatusCode::kInvalidArgument, "got 3 bytes"));
  EXPECT_THAT(UnpackCifar100(folder.Write("label.bin", CifarImage(1, 100, 0)), folder / "scratch"),
              FailsWith(absl::StatusCode::kInvalidArgument, "fine label 100"));
}

using testing::HasSubstr;

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

TEST(WithFlagName, ReplacesParameterByFlagOfCommand) {
  CLI::App app;
  EvaluationOptions options;
  AddEvaluationOptions(app, &options);
  const auto message = [&](absl::string_view text) {
    return std::string(cli::WithFlagName(absl::InvalidArgumentError(text), app).message());
  };
  EXPECT_EQ(message("kernel_bandwidth must be positive, but is 0"),
            "--bandwidth must be positive, but is 0");
  EXPECT_EQ(message("anchors_per_class must be 1"), "--anchors-per-class must be 1");
  EXPECT_EQ(message("k must be 1"), "-k must be 1");
  EXPECT_EQ(message("--delta must be 1"), "--delta must be 1");
  EXPECT_EQ(message("knee must be 1"), "knee must be 1");
  EXPECT_EQ(cli::WithFlagName(absl::DataLossError("alpha must be 1"), app),
            absl::DataLossError("alpha must be 1"));
}

}  // namespace
}  // namespace privatemail::client
