#include <algorithm>
#include <cstdio>
#include <opencv2/dnn.hpp>
#include <opencv2/imgproc.hpp>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "common/base/digests.h"
#include "common/base/files.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/features/feature_extractor.h"
#include "common/features/image_decoder.h"
#include "privatemail/onnx/model_input.pb.h"

namespace privatemail {
namespace {

absl::Status CheckOptions(const OnnxOptions& options) {
  constexpr int kMaxSide = 4096;
  PM_RETURN_IF_ERROR(CheckIntegerBetween("input_width", options.input_width, 1, kMaxSide));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("input_height", options.input_height, 1, kMaxSide));
  for (const float mean : options.mean) {
    PM_RETURN_IF_ERROR(CheckFiniteNonNegative("mean", mean));
  }
  return CheckFinitePositive("scale", options.scale);
}

std::string IdentityText(const OnnxOptions& options, absl::string_view sha256) {
  return absl::StrCat(
      "onnx:sha256=", sha256, ";input=", options.input_width, "x", options.input_height,
      ";mean=", FormatExact(options.mean[0]), ",", FormatExact(options.mean[1]), ",",
      FormatExact(options.mean[2]), ";scale=", FormatExact(options.scale),
      ";channels=", options.swap_rb ? "rgb" : "bgr", ";layer=", absl::CHexEscape(options.layer));
}

// Sets the input's size to that of the model's first input, if the options leave it open.
void ResolveInputSize(const std::string& model_bytes, OnnxOptions* options) {
  if (options->input_width != 0 || options->input_height != 0) return;
  options->input_width = options->input_height = 224;
  onnx::Model model;
  if (!model.ParseFromString(model_bytes)) return;  // OpenCV says what is wrong
  std::set<absl::string_view> weights;
  for (const onnx::Weights& each : model.graph().initializer()) weights.insert(each.name());
  for (const onnx::Input& input : model.graph().input()) {
    if (weights.contains(input.name())) continue;
    const auto& dims = input.type().tensor_type().shape().dim();
    if (dims.size() != 4 || dims[2].dim_value() == 0 || dims[3].dim_value() == 0) return;
    options->input_height = static_cast<int>(dims[2].dim_value());
    options->input_width = static_cast<int>(dims[3].dim_value());
    return;
  }
}

class OnnxExtractor final : public FeatureExtractor {
 public:
  OnnxExtractor(OnnxOptions options, std::string identity, const cv::dnn::Net& net)
      : options_(std::move(options)), identity_(std::move(identity)), net_(net) {}

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
      const cv::Scalar mean(options_.mean[0], options_.mean[1], options_.mean[2]);
      net_.setInput(cv::dnn::blobFromImage(image, options_.scale, image.size(), mean,
                                           options_.swap_rb, /*crop=*/false, CV_32F));
      const cv::Mat values = net_.forward(options_.layer);
      if (values.type() != CV_32F) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": expected float features, got ", cv::typeToString(values.type())));
      }
      return Eigen::RowVectorXf(Eigen::Map<const Eigen::RowVectorXf>(
          values.ptr<float>(), static_cast<Eigen::Index>(values.total())));
    });
  }

  const OnnxOptions options_;
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
  PM_ASSIGN_OR_RETURN(const std::string bytes, ReadFileBytes(given.path));
  OnnxOptions options = given;
  ResolveInputSize(bytes, &options);
  PM_RETURN_IF_ERROR(CheckOptions(options));
  const std::string sha256 = absl::BytesToHexString(Sha256::Of(bytes));
  using Loaded = absl::StatusOr<cv::dnn::Net>;
  PM_ASSIGN_OR_RETURN(
      cv::dnn::Net net, CatchOpenCv(options.path, "cannot be loaded as ONNX", [&]() -> Loaded {
        cv::dnn::Net loaded = cv::dnn::readNetFromONNX(bytes.data(), bytes.size());
        if (loaded.empty()) {
          return absl::InvalidArgumentError(
              absl::StrCat(options.path, ": expected an ONNX model, found no layer in it"));
        }
        return loaded;
      }));
  PM_RETURN_IF_ERROR(CheckLayer(options, net));
  auto extractor = std::make_unique<OnnxExtractor>(options, IdentityText(options, sha256), net);
  PM_RETURN_IF_ERROR(extractor->LearnDim());
  return extractor;
}

std::optional<OnnxOptions> OnnxOptionsOf(absl::string_view identity) {
  const std::string text(identity);
  OnnxOptions options;
  char channels[4] = "";
  int layer = 0;  // where its name begins, which is last and may hold any character
  std::sscanf(text.c_str(),
              "onnx:sha256=%*[0-9a-f];input=%dx%d;mean=%f,%f,%f;scale=%f;channels=%3[a-z];layer=%n",
              &options.input_width, &options.input_height, &options.mean[0], &options.mean[1],
              &options.mean[2], &options.scale, channels, &layer);
  if (layer == 0 || !absl::CUnescape(identity.substr(static_cast<size_t>(layer)), &options.layer)) {
    return std::nullopt;
  }
  options.swap_rb = absl::string_view(channels) == "rgb";
  return options;
}

}  // namespace privatemail
