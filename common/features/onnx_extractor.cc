#include <algorithm>
#include <cstdio>
#include <opencv2/dnn.hpp>
#include <opencv2/imgproc.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/features/feature_extractor.h"
#include "common/features/image_decoder.h"
#include "common/features/onnx_model.h"

namespace privatemail {
namespace {

constexpr int kDefaultSide = 224;  // of an image, for models that state no size

absl::Status CheckOptions(const OnnxOptions& options) {
  constexpr int kMaxSide = 4096;
  PM_RETURN_IF_ERROR(CheckIntegerBetween("input_width", options.input_width, 1, kMaxSide));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("input_height", options.input_height, 1, kMaxSide));
  for (const float mean : options.mean) {
    PM_RETURN_IF_ERROR(CheckFiniteNonNegative("mean", mean));
  }
  for (const float scale : options.scale) {
    PM_RETURN_IF_ERROR(CheckFinitePositive("scale", scale));
  }
  return absl::OkStatus();
}

// One number if the channels share it, else three.
std::string ScaleText(const std::array<float, 3>& scale) {
  if (scale[0] == scale[1] && scale[0] == scale[2]) return FormatExact(scale[0]);
  return absl::StrCat(FormatExact(scale[0]), ",", FormatExact(scale[1]), ",",
                      FormatExact(scale[2]));
}

std::string IdentityText(const OnnxOptions& options, absl::string_view sha256) {
  return absl::StrCat(
      "onnx:sha256=", sha256, ";input=", options.input_width, "x", options.input_height,
      ";mean=", FormatExact(options.mean[0]), ",", FormatExact(options.mean[1]), ",",
      FormatExact(options.mean[2]), ";scale=", ScaleText(options.scale),
      ";channels=", options.swap_rb ? "rgb" : "bgr", ";layer=", absl::CHexEscape(options.layer));
}

class OnnxExtractor final : public FeatureExtractor {
 public:
  OnnxExtractor(OnnxOptions options, bool channels_last, std::string identity,
                const cv::dnn::Net& net)
      : options_(std::move(options)),
        channels_last_(channels_last),
        identity_(std::move(identity)),
        net_(net) {}

  // Runs the network once on a grey image. Call before the other methods.
  absl::Status LearnDim() {
    const cv::Mat grey(options_.input_height, options_.input_width, CV_8UC3, cv::Scalar::all(128));
    PM_ASSIGN_OR_RETURN(const Eigen::RowVectorXf feature, Run(options_.path, grey));
    if (feature.size() == 0) {
      return absl::InvalidArgumentError(absl::StrCat(options_.path, ": the layer has no values"));
    }
    dim_ = static_cast<int>(feature.size());
    return absl::OkStatus();
  }

  absl::StatusOr<Eigen::RowVectorXf> ExtractBytes(const std::string& name,
                                                  absl::string_view bytes) override {
    const cv::Size size(options_.input_width, options_.input_height);
    PM_ASSIGN_OR_RETURN(const cv::Mat image, DecodeImage(name, bytes, size, cv::INTER_LINEAR));
    PM_ASSIGN_OR_RETURN(Eigen::RowVectorXf feature, Run(name, image));
    return ValidateFeature(name, std::move(feature));
  }

  int dim() const override { return dim_; }
  const std::string& identity() const override { return identity_; }

 private:
  absl::StatusOr<Eigen::RowVectorXf> Run(const std::string& path, const cv::Mat& image) {
    using Row = absl::StatusOr<Eigen::RowVectorXf>;
    return CatchOpenCv(path, "the network cannot be run", [&]() -> Row {
      net_.setInput(Input(image));
      const cv::Mat values = net_.forward(options_.layer);
      if (values.type() != CV_32F) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": expected float features, got ", cv::typeToString(values.type())));
      }
      return Eigen::RowVectorXf(Eigen::Map<const Eigen::RowVectorXf>(
          values.ptr<float>(), static_cast<Eigen::Index>(values.total())));
    });
  }

  // The image as the network takes it.
  cv::Mat Input(const cv::Mat& image) const {
    const cv::Scalar mean(options_.mean[0], options_.mean[1], options_.mean[2]);
    cv::Mat input = cv::dnn::blobFromImage(image, /*scalefactor=*/1, image.size(), mean,
                                           options_.swap_rb, /*crop=*/false, CV_32F);
    std::vector<cv::Mat> planes;  // of the input's own memory
    for (int channel = 0; channel < 3; ++channel) {
      planes.emplace_back(image.rows, image.cols, CV_32F, input.ptr<float>(0, channel));
      planes.back() *= options_.scale[static_cast<size_t>(channel)];
    }
    if (!channels_last_) return input;
    cv::Mat pixels;
    cv::merge(planes, pixels);
    return pixels.reshape(1, {1, image.rows, image.cols, 3});
  }

  const OnnxOptions options_;
  const bool channels_last_;
  const std::string identity_;
  cv::dnn::Net net_;
  int dim_ = 0;
};

absl::Status CheckLayer(const OnnxOptions& options, const cv::dnn::Net& net) {
  if (options.layer.empty()) return absl::OkStatus();
  const std::vector<cv::String> names = net.getLayerNames();
  if (std::find(names.begin(), names.end(), options.layer) != names.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      options.path, ": there is no layer '", absl::CHexEscape(options.layer), "'; the last of its ",
      names.size(), " layers is '", names.empty() ? "" : absl::CHexEscape(names.back()), "'"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FeatureExtractor>> MakeOnnxExtractor(const OnnxOptions& given) {
  // Read once, so that the hashed bytes are those that run.
  PM_ASSIGN_OR_RETURN(const OnnxModel model, ReadOnnxModel(given.path));
  OnnxOptions options = given;
  if (options.input_width == 0 && options.input_height == 0) {
    const bool stated = model.width != 0 && model.height != 0;
    options.input_width = stated ? model.width : kDefaultSide;
    options.input_height = stated ? model.height : kDefaultSide;
  }
  PM_RETURN_IF_ERROR(CheckOptions(options));
  if (options.layer.empty() && model.outputs.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.path, ": expected the name of one of its outputs as layer (of the profile ",
        ModelProfilePath(options.path),
        "), since it has several: ", absl::CHexEscape(absl::StrJoin(model.outputs, ", "))));
  }
  const std::string identity = IdentityText(options, absl::BytesToHexString(model.sha256));
  PM_RETURN_IF_ERROR(TryModelInChild(options.path, identity));
  using Loaded = absl::StatusOr<cv::dnn::Net>;
  PM_ASSIGN_OR_RETURN(
      cv::dnn::Net net, CatchOpenCv(options.path, "cannot be loaded as ONNX", [&]() -> Loaded {
        cv::dnn::Net loaded = cv::dnn::readNetFromONNX(model.bytes.data(), model.bytes.size());
        if (loaded.empty()) {
          return absl::InvalidArgumentError(
              absl::StrCat(options.path, ": expected an ONNX model, found no layer in it"));
        }
        return loaded;
      }));
  PM_RETURN_IF_ERROR(CheckLayer(options, net));
  auto extractor = std::make_unique<OnnxExtractor>(options, model.channels_last, identity, net);
  PM_RETURN_IF_ERROR(extractor->LearnDim());
  return extractor;
}

std::optional<OnnxOptions> OnnxOptionsOf(absl::string_view identity) {
  const std::string text(identity);
  OnnxOptions options;
  char channels[4] = "";
  int layer = 0;  // where its name begins, which is last and may hold any character
  int scale = 0;  // where it begins
  std::sscanf(text.c_str(), "onnx:sha256=%*[0-9a-f];input=%dx%d;mean=%f,%f,%f;scale=%n",
              &options.input_width, &options.input_height, &options.mean[0], &options.mean[1],
              &options.mean[2], &scale);
  if (scale == 0) return std::nullopt;
  const char* const rest = text.c_str() + scale;
  const int scales =
      std::sscanf(rest, "%f,%f,%f", &options.scale[0], &options.scale[1], &options.scale[2]);
  if (scales == 1) options.scale.fill(options.scale[0]);
  std::sscanf(rest, "%*[^;];channels=%3[a-z];layer=%n", channels, &layer);
  if (layer != 0) layer += scale;
  if (layer == 0 || !absl::CUnescape(identity.substr(static_cast<size_t>(layer)), &options.layer)) {
    return std::nullopt;
  }
  options.swap_rb = absl::string_view(channels) == "rgb";
  return options;
}

}  // namespace privatemail
