#include "common/features/feature_extractor.h"

#include <limits>

#include "tests/testing/matchers.h"
#include "tests/testing/onnx_model.h"
#include "tests/testing/pictures.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail {
namespace {

using ::testing::EndsWith;
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
  options.scale = .5f;
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
            "onnx:sha256=d69defd94e8049c923ab50bdf4134bd7da68de7fb09d50191576423c2e47558f"
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
  options.scale = .1f;
  options.swap_rb = false;
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
  options.scale = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(MakeOnnxExtractor(options), FailsWith(kInvalid, "scale must be finite"));
  options = SmallOptions(model);
  options.layer = "none";
  EXPECT_THAT(MakeOnnxExtractor(options), FailsWith(kInvalid, "m.onnx: there is no layer 'none'"));
  EXPECT_THAT(MakeOnnxExtractor(SmallOptions(folder / "none.onnx")), FailsWith(kInvalid));
  const std::string half = folder.Write("half.onnx", ChannelMeansModel().substr(0, 40));
  EXPECT_THAT(MakeOnnxExtractor(SmallOptions(half)), FailsWith(kInvalid, "half.onnx: "));
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
  EXPECT_EQ(read.scale, 2);
  EXPECT_FALSE(read.swap_rb);
  EXPECT_EQ(read.layer, "y");
}

TEST(ModelProfile, WrongKeyOrTypeIsNamed) {
  const TemporaryFolder folder;
  const std::pair<const char*, const char*> wrong[] = {
      {"\nmeans = 1", "m.toml line 2: means: expected only size, mean, scale, channels, layer and"},
      {"mean = [1, 2]", "m.toml line 1: mean: expected three numbers in brackets, got [ 1, 2 ]"},
      {"mean = ['a', 2, 3]", "mean: expected three numbers"},
      {"scale = '2'", "scale: expected a number, got '2'"},
      {"size = 128", "size: expected [WIDTH, HEIGHT] in pixels, got 128"},
      {"size = [1.5, 2]", "size: expected [WIDTH, HEIGHT]"},
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
  EXPECT_EQ(ModelPath("./m"), "./m");
  EXPECT_EQ(ModelPath("m.onnx"), "m.onnx");
  EXPECT_THAT(ModelPath("m"), EndsWith("/share/privatemail/models/m.onnx"));
  ::setenv("PRIVATEMAIL_MODELS", "/here", 1);
  EXPECT_EQ(ModelPath("m"), "/here/m.onnx");
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
