#include "common/features/feature_extractor.h"

#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/matchers.h"
#include "tests/testing/onnx_model.h"
#include "tests/testing/pictures.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail {
namespace {

using ::testing::HasSubstr;

OnnxOptions SmallOptions(const std::string& path) {
  OnnxOptions options;
  options.path = path;
  options.input_width = 4;
  options.input_height = 2;
  return options;
}

TEST(OnnxExtractor, SubtractsMeanThenScalesInChannelOrder) {
  const TemporaryFolder folder;
  const std::string image = folder.Write("red.png", PngOfOneColour(9, 5, 200, 100, 50));
  OnnxOptions options = SmallOptions(folder.Write("m.onnx", ChannelMeansModel()));
  options.mean = {10, 20, 30};
  options.scale.fill(.5f);
  ASSERT_OK_AND_ASSIGN(const auto rgb, MakeOnnxExtractor(options));
  EXPECT_EQ(rgb->dim(), 3);
  EXPECT_TRUE(rgb->Extract(image).value().isApprox(Eigen::RowVector3f(95, 40, 10)));
  options.swap_rb = false;
  ASSERT_OK_AND_ASSIGN(const auto bgr, MakeOnnxExtractor(options));
  EXPECT_TRUE(bgr->Extract(image).value().isApprox(Eigen::RowVector3f(20, 40, 85)));
}

TEST(OnnxExtractor, IdentityHoldsModelDigestAndOptions) {
  const TemporaryFolder folder;
  OnnxOptions size_of_the_model;
  size_of_the_model.path = folder.Write("m.onnx", ChannelMeansModel());
  EXPECT_THAT((*MakeOnnxExtractor(size_of_the_model))->identity(), HasSubstr(";input=4x2;"));
  // SHA-256 of the model's bytes by sha256sum.
  OnnxOptions options = SmallOptions(folder.Write("m.onnx", ChannelMeansModel()));
  EXPECT_EQ((*MakeOnnxExtractor(options))->identity(),
            "onnx:sha256=5b8241abf28191ba5659db5f3de60c9b7e3a35ebfb70f63ad5262bfb4952324e"
            ";input=4x2;mean=127.5,127.5,127.5;scale=0.007843138;channels=rgb;layer=");
  options.swap_rb = false;
  options.mean = {1, 2, 3.25};
  EXPECT_THAT((*MakeOnnxExtractor(options))->identity(),
              HasSubstr(";mean=1,2,3.25;scale=0.007843138;channels=bgr;layer="));
}

TEST(OnnxExtractor, OptionsAreReadBackFromAnIdentity) {
  const TemporaryFolder folder;
  OnnxOptions options = SmallOptions(folder.Write("m.onnx", ChannelMeansModel()));
  options.mean = {1, 2, 3.25};
  options.swap_rb = false;
  options.scale = {.1f, .2f, .3f};
  const std::string identity = (*MakeOnnxExtractor(options))->identity();
  std::optional<OnnxOptions> read = OnnxOptionsOf(identity + "a;b\n");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->layer, "a;b\n");
  read->layer.clear();
  read->path = options.path;
  EXPECT_EQ((*MakeOnnxExtractor(*read))->identity(), identity);
  for (const char* other : {"", "vectors", "builtin:hog-colour/1", "onnx:sha256=00;input=4x2"}) {
    EXPECT_FALSE(OnnxOptionsOf(other).has_value()) << other;
  }
}

TEST(OnnxExtractor, InvalidOptionModelOrLayerIsNamed) {
  const TemporaryFolder folder;
  const std::string model = folder.Write("m.onnx", ChannelMeansModel());
  OnnxOptions options = SmallOptions(model);
  options.input_width = 0;  // and a height
  EXPECT_THAT(MakeOnnxExtractor(options), FailsWith(kInvalid, "input_width must be between"));
  options = SmallOptions(model);
  options.scale[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(MakeOnnxExtractor(options), FailsWith(kInvalid, "scale must be finite"));
  options = SmallOptions(model);
  options.layer = "none";
  EXPECT_THAT(MakeOnnxExtractor(options), FailsWith(kInvalid, "m.onnx: there is no layer 'none'"));
  EXPECT_THAT(MakeOnnxExtractor(SmallOptions(folder / "none.onnx")), FailsWith(kInvalid));
  const std::string half = folder.Write("half.onnx", ChannelMeansModel().substr(0, 40));
  EXPECT_THAT(MakeOnnxExtractor(SmallOptions(half)), FailsWith(kInvalid, "half.onnx: "));
}

// A model of three weights in another file: it multiplies the mean of each channel.
std::string ExternalModel(const std::string& location, const std::string& length) {
  using namespace onnx_bytes;
  const auto entry = [](const std::string& key, const std::string& value) {
    return Text(13, Text(1, key) + Text(2, value));
  };
  return OnnxModelOf(
      {.nodes = {Node("Mul", {"x", "w"}, "m"), Node("GlobalAveragePool", {"m"}, "y")},
       .weights = {Weights("w", {1, 3, 1, 1},
                           entry("location", location) + entry("offset", "4") +
                               entry("length", length) + Number(14, /*EXTERNAL*/ 1))}});
}

TEST(OnnxExtractor, ReadsWeightsBesideTheModel) {
  const TemporaryFolder folder;
  const std::string image = folder.Write("red.png", PngOfOneColour(9, 5, 200, 100, 50));
  OnnxOptions options = SmallOptions(folder.Write("m.onnx", ExternalModel("m.data", "12")));
  options.mean = {0, 0, 0};
  options.scale = {1, 1, .5f};
  EXPECT_THAT(MakeOnnxExtractor(options), FailsWith(kInvalid, folder / "m.data"));
  std::string identity;
  for (const float first : {1.f, 3.f}) {
    const float weights[] = {7, first, 2, 4};
    folder.Write("m.data", std::string(reinterpret_cast<const char*>(weights), sizeof(weights)));
    ASSERT_OK_AND_ASSIGN(const auto extractor, MakeOnnxExtractor(options));
    EXPECT_TRUE(
        extractor->Extract(image).value().isApprox(Eigen::RowVector3f(200 * first, 200, 100)));
    EXPECT_NE(extractor->identity(), std::exchange(identity, extractor->identity()));
  }
  folder.Write("m.onnx", ExternalModel("m.data", "13"));
  EXPECT_THAT(MakeOnnxExtractor(options), FailsWith(kInvalid, "end beyond the 16 bytes of m.data"));
  for (const std::string location : {"../m.data", "/etc/passwd", "a/../m.data", ""}) {
    folder.Write("m.onnx", ExternalModel(location, "12"));
    EXPECT_THAT(MakeOnnxExtractor(options), FailsWith(kInvalid, "in a file of the model's folder"));
  }
}

TEST(OnnxExtractor, FeedsChannelsLast) {
  using namespace onnx_bytes;
  const TemporaryFolder folder;
  OnnxOptions options;
  options.path = folder.Write(
      "m.onnx",
      OnnxModelOf({.nodes = {Node("Transpose", {"x"}, "t", Integers("perm", {0, 3, 1, 2})),
                             Node("GlobalAveragePool", {"t"}, "y")},
                   .inputs = {TensorInfo("x", {1, 2, 4, 3})}}));
  options.mean = {10, 20, 30};
  options.scale = {1, 2, 4};
  ASSERT_OK_AND_ASSIGN(const auto extractor, MakeOnnxExtractor(options));
  EXPECT_THAT(extractor->identity(), HasSubstr(";input=4x2;"));
  EXPECT_TRUE(extractor->Extract(folder.Write("red.png", PngOfOneColour(9, 5, 200, 100, 50)))
                  .value()
                  .isApprox(Eigen::RowVector3f(190, 160, 80)));
}

TEST(OnnxExtractor, UnusableModelIsRefusedByItsFault) {
  using namespace onnx_bytes;
  const std::string x = TensorInfo("x", {1, 3, 2, 4}), y = TensorInfo("y", {1, 3, 1, 1});
  const std::string pool = Node("GlobalAveragePool", {"x"}, "y");
  const std::string none = " bytes that are none";
  const std::pair<std::string, std::string> wrong[] = {
      {OnnxModelOf({.nodes = {Node("Mul", {"x", "w"}, "y")}}), "a node Mul reads 'w', which no"},
      {OnnxModelOf({.nodes = {Node("Add", {"x", "y"}, "z"), Node("Relu", {"z"}, "y")}}),
       "a node Add reads 'y', which no input, weight or earlier node"},
      {OnnxModelOf({.weights = {Weights("w", {3}, Text(9, "eight by"))}}),
       "expected 3 values of its weights 'w', got 2"},
      {OnnxModelOf({.outputs = {TensorInfo("z", {1})}}), "no node gives its output 'z'"},
      {OnnxModelOf({.nodes = {pool, Node("Relu", {"y"}, "z")},
                    .outputs = {y, TensorInfo("z", {1, 3, 1, 1})}}),
       "as layer (of the profile "
       "FOLDER/m.toml), since it has several: y, z"},
      {OnnxModelOf({.inputs = {x, TensorInfo("mask", {1})}}),
       "expected one input, an image, got 2"},
      {OnnxModelOf({.inputs = {TensorInfo("x", {1, 3, 2, 4}, /*uint8*/ 2)}}),
       "expected an input of floats, got 'x' of data type 2"},
      {OnnxModelOf({.inputs = {TensorInfo("x", {1, 1, 2, 4})}}), "got 'x' of 1 x 1 x 2 x 4"},
      {OnnxModelOf({.inputs = {TensorInfo("x", {3, 2, 4})}}), "got 'x' of 3 x 2 x 4"},
      {OnnxModelOf({.inputs = {TensorInfo("x", {1, 3, (uint64_t{1} << 32) + 2, 4})}}),
       "input_height must be between 1 and 4096"},
      {OnnxModelOf({.nodes = {Node("NoSuchOperation", {"x"}, "y")}}), "m.onnx: cannot be loaded"},
      {ChannelMeansModel().substr(0, 60), none},
      {"version https://git-lfs.github.com/spec/v1\n", none},
      {std::string("\x82\x13\xff\x07", 4), none}};
  const TemporaryFolder folder;
  for (const auto& [bytes, message] : wrong) {
    OnnxOptions options;
    options.path = folder.Write("m.onnx", bytes);
    EXPECT_THAT(MakeOnnxExtractor(options),
                FailsWith(kInvalid, absl::StrReplaceAll(message, {{"FOLDER", folder.path()}})));
  }
  folder.Write("m.onnx", wrong[4].first);
  OnnxOptions options = SmallOptions(folder / "m.onnx");
  options.layer = "z";
  EXPECT_THAT(MakeOnnxExtractor(options), IsOk());
}

TEST(OnnxExtractor, FatalModelIsAnErrorWithoutATrialCommand) {
  const TemporaryFolder folder;
  const std::string model = folder.Write("fatal.onnx", FatalModel());
  EXPECT_THAT(MakeOnnxExtractor(SmallOptions(model)),
              FailsWith(kInvalid, "fatal.onnx: expected a model that OpenCV 4"));
}

TEST(OnnxExtractor, IndexOutOfRangeIsNamed) {
  using namespace onnx_bytes;
  const TemporaryFolder folder;
  const std::string axis = Text(5, Text(1, "axis") + Number(3, 1) + Number(20, /*INT*/ 2));
  for (const int64_t index : {-4, -3, 2, 3}) {
    const auto value = static_cast<uint64_t>(index);
    const std::string listed = Number(2, /*INT64*/ 7) + Text(8, "i") + Number(7, value);
    const std::string path =
        folder.Write("m.onnx", OnnxModelOf({.nodes = {Node("Gather", {"x", "i"}, "y", axis)},
                                            .weights = {listed},
                                            .outputs = {TensorInfo("y", {1, 2, 4})}}));
    const auto extractor = MakeOnnxExtractor(SmallOptions(path));
    EXPECT_EQ(extractor.ok(), index >= -3 && index < 3) << extractor.status();
    if (extractor.ok()) continue;
    EXPECT_THAT(extractor, FailsWith(kInvalid, absl::StrCat("expected indices from -3 to 2 of a "
                                                            "node Gather into 'x', got ",
                                                            index)));
  }
}

// The end-to-end test of this runs FatalModel.
TEST(OnnxExtractor, DeathOfItsTrialNamesTheModel) {
  const TemporaryFolder folder;
  // No other test has tried this model.
  const std::string model = OnnxModelOf({.nodes = {onnx_bytes::Node("GlobalMaxPool", {"x"}, "y")}});
  const OnnxOptions options = SmallOptions(folder.Write("m.onnx", model));
  const std::pair<const char*, const char*> ends[] = {
      {"kill -FPE $$", "m.onnx: expected a model that OpenCV 4"},
      {"kill -FPE $$", "(Floating point exception)"},
      {"kill -ALRM $$", "could not be tried within the time"},
      {"exit 0", "ended before it was tried"},
      {"printf 'its fault'", "its fault"},
      {"printf 'good\\n'; kill -SEGV $$", ""}};  // it was run before
  for (const auto& [program, message] : ends) {
    SetModelTrial({"/bin/sh", "-c", program});
    const auto extractor = MakeOnnxExtractor(options);
    EXPECT_EQ(extractor.ok(), *message == '\0') << program;
    EXPECT_THAT(extractor.status().message(), HasSubstr(message));
  }
  SetModelTrial({});
}

TEST(OnnxExtractor, ZeroFeatureIsRejectedByImageName) {
  const TemporaryFolder folder;
  OnnxOptions options = SmallOptions(folder.Write("m.onnx", ChannelMeansModel()));
  options.mean = {7, 7, 7};
  ASSERT_OK_AND_ASSIGN(const auto extractor, MakeOnnxExtractor(options));
  EXPECT_THAT(extractor->Extract(folder.Write("7.png", PngOfOneColour(2, 2, 7, 7, 7))),
              FailsWith(kInvalid, "7.png: feature: all 3 values are zero"));
}

TEST(ModelProfile, IsReadFromTheFileBesideTheModel) {
  const TemporaryFolder folder;
  const std::string model = folder / "m.onnx";
  EXPECT_EQ(ReadModelProfile(model)->scale, OnnxOptions().scale);
  folder.Write("m.toml",
               "size = [4, 2]\nmean = [1, 2, 3.25]\nscale = 2\nchannels = 'bgr'\n"
               "layer = 'y'\ncitation = 'A and B, 2020'\n");
  const OnnxOptions read = ReadModelProfile(model).value();
  EXPECT_EQ(read.path, model);
  EXPECT_EQ(read.input_width, 4);
  EXPECT_EQ(read.input_height, 2);
  EXPECT_EQ(read.mean, (std::array{1.f, 2.f, 3.25f}));
  EXPECT_EQ(read.scale, (std::array{2.f, 2.f, 2.f}));
  EXPECT_FALSE(read.swap_rb);
  EXPECT_EQ(read.layer, "y");
  folder.Write("m.toml", "std = [2, 4, 8]");
  EXPECT_EQ(ReadModelProfile(model)->scale, (std::array{.5f, .25f, .125f}));
}

TEST(ModelProfile, WrongKeyOrTypeIsNamed) {
  const TemporaryFolder folder;
  const std::pair<const char*, const char*> wrong[] = {
      {"\nmeans = 1",
       "m.toml line 2: means: expected only size, mean, std, scale, channels, layer "},
      {"mean = [1, 2]", "m.toml line 1: mean: expected three numbers in brackets, got [ 1, 2 ]"},
      {"mean = ['a', 2, 3]", "mean: expected three numbers"},
      {"std = [0.229, 0.224, 0.225]", "std: expected three numbers of at least 1 in brackets"},
      {"std = [2, 4, 8]\nscale = 1", "m.toml: expected std or scale, got both"},
      {"scale = '2'", "scale: expected a number, got '2'"},
      {"size = 128", "size: expected [WIDTH, HEIGHT] in pixels, got 128"},
      {"size = [1.5, 2]", "size: expected [WIDTH, HEIGHT]"},
      {"size = [0, 2]", "size: expected [WIDTH, HEIGHT]"},
      {"channels = 'gbr'", "channels: expected \"rgb\" or \"bgr\", got 'gbr'"},
      {"layer = 3", "layer: expected a text, got 3"},
      {"scale 2", "m.toml line 1: "}};
  for (const auto& [text, message] : wrong) {
    folder.Write("m.toml", text);
    EXPECT_THAT(ReadModelProfile(folder / "m.onnx"), FailsWith(kInvalid, message));
  }
  folder.Write("m.toml", std::string(5000, 'a') + " = 1");
  EXPECT_THAT(ReadModelProfile(folder / "m.onnx"), FailsWith(kInvalid, "at most 4096 bytes"));
}

TEST(ModelProfile, BareNameIsThatOfAnInstalledModel) {
  EXPECT_THAT(FindModel("m"), FailsWith(kInvalid, "/share/privatemail/models/m.onnx"));
  const TemporaryFolder folder;
  const std::string file = folder.Write("m.onnx", "x");
  folder.Write("n.onnx", "x");
  folder.Write("n.toml", "x");
  EXPECT_EQ(FindModel(file).value(), file);
  ::setenv("PRIVATEMAIL_MODELS", folder.path().c_str(), 1);
  EXPECT_EQ(FindModel("m").value(), file);
  EXPECT_EQ(Message(FindModel("o").status()),
            "model must be a file (with a slash or .onnx) or the name of an installed model (m, "
            "n), but there is no " +
                (folder / "o.onnx") + "; PRIVATEMAIL_MODELS names another folder of models");
  EXPECT_THAT(FindModel("m.onnx"),
              FailsWith(kInvalid, "there is no " + std::filesystem::current_path().string()));
  ::unsetenv("PRIVATEMAIL_MODELS");
}

class BuiltInExtractor : public ::testing::Test {
 protected:
  Eigen::RowVectorXf Feature(const std::string& image) {
    return extractor_->Extract(folder_.Write("image.png", image)).value();
  }

  const TemporaryFolder folder_;
  const std::unique_ptr<FeatureExtractor> extractor_ = MakeBuiltInExtractor().value();
};

TEST_F(BuiltInExtractor, UniformImageHasUnitFeature) {
  for (const unsigned char grey : {0, 119, 128, 255}) {
    const Eigen::RowVectorXf feature = Feature(PngOfOneColour(3, 200, grey, grey, grey));
    EXPECT_EQ(feature.size(), extractor_->dim());
    EXPECT_NEAR(feature.norm(), 1, 1e-5);
  }
}

// Near mid-grey the shape and layout parts are almost zero and have any direction.
TEST_F(BuiltInExtractor, SimilarGreysHaveSimilarFeatures) {
  const Eigen::RowVectorXf mid = Feature(PngOfOneColour(64, 64, 119, 119, 119));
  for (const unsigned char grey : {117, 118, 120, 121}) {
    EXPECT_GT(mid.dot(Feature(PngOfOneColour(64, 64, grey, grey, grey))), .99f);
  }
}

// Black and white bars of 2 pixels: same mean colour everywhere, other gradients.
std::string Bars(bool vertical, int shift) {
  std::string pixels;
  for (int i = 0; i < 64 * 64; ++i) {
    const int position = (vertical ? i % 64 : i / 64) + shift;
    pixels.append(3, position / 2 % 2 ? '\xff' : '\0');
  }
  return RgbPng(64, 64, pixels);
}

// The upper half red and the lower half blue, or the other way round.
std::string Halves(bool red_above) {
  std::string pixels;
  for (int i = 0; i < 64 * 64; ++i) {
    pixels += (i < 32 * 64) == red_above ? "\xc8\x1e\x1e" : "\x1e\x1e\xc8";
  }
  return RgbPng(64, 64, pixels);
}

TEST_F(BuiltInExtractor, ColourShapeAndPositionAreDistinguished) {
  const Eigen::RowVectorXf red = Feature(PngOfOneColour(64, 64, 200, 30, 30));
  EXPECT_GT(red.dot(Feature(PngOfOneColour(64, 64, 180, 30, 30))),
            red.dot(Feature(PngOfOneColour(64, 64, 30, 30, 200))) + .2f);
  const Eigen::RowVectorXf vertical = Feature(Bars(true, 0));
  EXPECT_GT(vertical.dot(Feature(Bars(true, 1))), vertical.dot(Feature(Bars(false, 0))) + .2f);
  EXPECT_LT(Feature(Halves(true)).dot(Feature(Halves(false))), .8f);
}

}  // namespace
}  // namespace privatemail
